"""`grapnel operator` on a real kube-apiserver: the real Job controller, and nodes that pretend."""

import http.client
import json
import pathlib
import re
import tempfile
import time

import pytest
import yaml

from .grapnel import Grapnel

NAMESPACE = "grapnel-system"


def experiment(name: str, namespace: str) -> dict:
    return {
        "apiVersion": "grapnel.dev/v1alpha1",
        "kind": "Experiment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "operator": "jax",
            "image": "none",
            "command": "true",
            "types": {"worker": {"count": 2, "resources": {"cpus": 1, "ramRatio": 1}}},
        },
    }


class Operator:
    """Our operator in a process of its own, until the end of the `with`, where SIGTERM ends it."""

    def __init__(self, kubeconfig, folder: pathlib.Path, namespace):
        program = Grapnel(folder)
        self.log = folder / "operator.log"
        self.code = None
        self._process = program.start(
            "operator", "--kubeconfig", kubeconfig, "--leader-elect-namespace", namespace,
            "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0", log=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self.code = self._process.wait(timeout=60)
        finally:
            self._process.kill()
        assert self.code == 0, self.log.read_text()[-5000:]

    def running(self):
        return self._process.poll() is None

    def address(self, what):
        """(host, port) of what it serves, from its log."""
        def found():
            for line in self.log.read_text().splitlines():
                if '"serving"' in line and f'"{what}"' in line:
                    fields = json.loads(line)
                    return fields["host"], int(fields["port"])
            assert self.running(), self.log.read_text()[-5000:]
            return None

        return wait_for(found)


@pytest.fixture(scope="module")
def installed(control_plane):
    """What `grapnel install` puts into a cluster. There is no kubelet: the operator runs beside it."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Grapnel(pathlib.Path(folder))("install", "--print", "--no-webhooks",
                                                "--namespace", NAMESPACE)
    assert printed.returncode == 0, printed.stderr
    objects = [o for o in yaml.safe_load_all(printed.stdout) if o["kind"] != "Deployment"]
    control_plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(objects))
    for name in ("experiments.grapnel.dev", "jobsets.jobset.x-k8s.io"):
        control_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")


@pytest.fixture(scope="module")
def operator(control_plane, installed):
    """Our operator at work on the shared cluster, with the rights it is installed with and no more."""
    account = control_plane.kubeconfig_for(f"system:serviceaccount:{NAMESPACE}:grapnel",
                                           ["system:serviceaccounts"])
    with tempfile.TemporaryDirectory() as folder:
        with Operator(account, pathlib.Path(folder), NAMESPACE) as operator:
            yield operator


def wait_for(check, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, "not within %d s" % seconds
        time.sleep(0.1)


def create(control_plane, what):
    status, answer = control_plane.request(
        "POST", f"/apis/grapnel.dev/v1alpha1/namespaces/{what['metadata']['namespace']}/experiments",
        what)
    assert status == 201, answer


def get_experiment(control_plane, namespace, name):
    return control_plane.request(
        "GET", f"/apis/grapnel.dev/v1alpha1/namespaces/{namespace}/experiments/{name}")[1]


def ended(control_plane, namespace, name):
    """The experiment, once it has ended."""
    found = get_experiment(control_plane, namespace, name)
    return found.get("status", {}).get("endTime") and found


def events_of(control_plane, namespace, name):
    _, found = control_plane.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return [e for e in found["items"]
            if e["regarding"]["kind"] == "Experiment" and e["regarding"]["name"] == name]


def test_an_experiment_becomes_jobs_and_succeeds(control_plane, namespace, operator):
    create(control_plane, experiment("first", namespace))

    def done():
        assert operator.running(), "the operator ended"
        return ended(control_plane, namespace, "first")

    found = wait_for(done)
    assert found["status"]["phase"] == "Succeeded", json.dumps(found["status"])
    _, jobset = control_plane.request(
        "GET", f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets/first")
    assert jobset["status"]["terminalState"] == "Completed"
    _, job = control_plane.request("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/first-worker-0")
    assert job["status"]["succeeded"] == 2


def test_an_invalid_experiment_fails_with_the_reason(control_plane, namespace, operator):
    wrong = experiment("wrong", namespace)
    wrong["spec"]["types"] = {"Worker": wrong["spec"]["types"]["worker"]}
    create(control_plane, wrong)
    status = wait_for(lambda: ended(control_plane, namespace, "wrong"))["status"]
    assert status["phase"] == "Failed"
    assert status["reason"] == "InvalidSpec"
    assert "spec.types.Worker: unknown type for operator 'jax'" in status["message"]


# ---- what people and their tools see


def get(address, path):
    """(status, text) of one of the operator's own pages."""
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_metrics_under_the_names_that_dashboards_know(control_plane, namespace, operator):
    create(control_plane, experiment("measured", namespace))
    wait_for(lambda: ended(control_plane, namespace, "measured"))
    status, text = get(operator.address("metrics"), "/metrics")
    assert status == 200
    for series in ('workqueue_adds_total{controller="experiment",name="experiment"}',
                   'workqueue_depth{controller="jobset",name="jobset",priority="0"}',
                   'workqueue_queue_duration_seconds_count{controller="jobset",name="jobset"}',
                   'controller_runtime_reconcile_total{controller="experiment",result="success"}',
                   'controller_runtime_reconcile_errors_total{controller="jobset"}',
                   'controller_runtime_reconcile_time_seconds_count{controller="jobset"}',
                   f'jobset_completed_total{{jobset_name="measured",namespace="{namespace}"}} 1',
                   f'jobset_terminal_state{{jobset_name="measured",namespace="{namespace}",'
                   'terminal_state="Completed"} 1',
                   'leader_election_master_status{name="grapnel"} 1'):
        assert series in text, text
    host = control_plane.url.removeprefix("https://")
    assert f'rest_client_requests_total{{code="201",host="{host}",method="POST"}}' in text
    done = re.search(r'reconcile_total\{controller="experiment",result="success"\} (\d+)', text)
    assert int(done[1]) > 0


def test_its_requests_have_a_priority_level_of_their_own(control_plane, namespace, operator):
    def dispatched():
        text = control_plane.request("GET", "/metrics", timeout=30)[1]
        found = re.findall(r'apiserver_flowcontrol_dispatched_requests_total\{flow_schema="([^"]+)",'
                           r'priority_level="([^"]+)"\} (\d+)', text)
        return {(schema, level): int(count) for schema, level, count in found}

    before = dispatched()
    create(control_plane, experiment("counted", namespace))
    wait_for(lambda: ended(control_plane, namespace, "counted"))
    # Experiment, JobSet, Service and Job are written one after the other.
    assert dispatched()["grapnel", "grapnel"] - before.get(("grapnel", "grapnel"), 0) >= 4


def test_health_is_told_apart_from_readiness(operator):
    assert get(operator.address("health"), "/healthz") == (200, "ok")
    wait_for(lambda: get(operator.address("health"), "/readyz") == (200, "ok"))
    assert get(operator.address("health"), "/readyz?verbose")[1].splitlines() == [
        "[+]ping ok", "[+]caches ok", "readyz check passed"]


def test_unready_names_the_kind_that_is_missing(control_plane, tmp_path):
    """Whoever may not read Pods is alive, and says what it lacks."""
    with Operator(control_plane.kubeconfig_for("powerless"), tmp_path, "default") as powerless:
        assert get(powerless.address("health"), "/healthz")[0] == 200

        def told():
            status, text = get(powerless.address("health"), "/readyz")
            return status == 500 and "is forbidden" in text and text

        assert "[-]caches failed: " in wait_for(told)


def test_events_are_recorded(control_plane, namespace, operator):
    create(control_plane, experiment("told", namespace))
    wait_for(lambda: ended(control_plane, namespace, "told"))

    def reasons():
        found = events_of(control_plane, namespace, "told")
        return {"Pending", "Succeeded"} <= {e["reason"] for e in found} and found

    for event in wait_for(reasons):
        assert event["reportingController"] == "grapnel"
        assert event["regarding"]["kind"] == "Experiment"
        assert event["regarding"]["uid"] and event["reportingInstance"] and event["eventTime"]


def test_a_refusal_becomes_a_condition_and_an_event_and_does_not_loop(control_plane, namespace,
                                                                      operator):
    set_quota(control_plane, namespace, {"count/jobsets.jobset.x-k8s.io": "0"})
    create(control_plane, experiment("refused", namespace))
    status = wait_for(lambda: refused(control_plane, namespace, "refused"))
    assert status["phase"] == "Pending"
    assert "quota: none" in status["message"]
    before = requests_of(operator, "403")
    time.sleep(10)
    assert requests_of(operator, "403") - before <= 5, "tries are a back-off apart"

    def told():
        found = [e for e in events_of(control_plane, namespace, "refused")
                 if e["reason"] == "FailedCreate"]
        return any(e.get("series", {}).get("count", 1) >= 2 for e in found) and found

    events = wait_for(told)
    assert len(events) <= 2, "what repeats is one event with a count; a quota has two words for no"
    assert all(e["type"] == "Warning" for e in events)

    control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}/resourcequotas/none")
    wait_for(lambda: ended(control_plane, namespace, "refused"), seconds=120)


def test_a_quota_that_leaves_no_room_for_pods_is_named(control_plane, namespace, operator):
    """The server takes the Job; only its controller hears the refusal."""
    set_quota(control_plane, namespace, {"pods": "0"})
    create(control_plane, experiment("no-room", namespace))
    status = wait_for(lambda: refused(control_plane, namespace, "no-room"))
    assert status["phase"] == "Pending"
    assert status["message"] == ("0 of 2 processes are up; pods are refused: exceeded quota: none, "
                                 "requested: pods=1, used: pods=0, limited: pods=0")

    control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}/resourcequotas/none")
    wait_for(lambda: ended(control_plane, namespace, "no-room"), seconds=120)


def refused(control_plane, namespace, name):
    """Its status, once it says that something was refused."""
    status = get_experiment(control_plane, namespace, name).get("status", {})
    return status.get("reason") == "Refused" and status


def set_quota(control_plane, namespace, hard):
    """A quota called `none`, in force when this returns."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    assert control_plane.request("POST", path, {"metadata": {"name": "none"},
                                                "spec": {"hard": hard}})[0] == 201
    wait_for(lambda: "hard" in control_plane.request("GET", f"{path}/none")[1].get("status", {}))


def requests_of(operator, code):
    _, text = get(operator.address("metrics"), "/metrics")
    return sum(int(n) for n in re.findall(
        rf'rest_client_requests_total\{{code="{code}"[^}}]*\}} (\d+)', text))


def test_logs_are_json_lines_that_name_their_object(operator):
    lines = [json.loads(line) for line in operator.log.read_text().splitlines()]
    assert any(line["msg"] == "cache synced" and line["kind"] == "JobSet" for line in lines)
    about = [line for line in lines if "namespace" in line]
    assert about and all(line["kind"] and line["name"] for line in about)
    assert all(line.keys() >= {"ts", "level", "msg"} for line in lines)


def test_sigterm_gives_the_lease_back(control_plane, namespace, installed, tmp_path):
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/grapnel"
    with Operator(control_plane.kubeconfig, tmp_path, namespace) as one:
        wait_for(lambda: control_plane.request("GET", lease)[1].get("spec", {})
                 .get("holderIdentity"))
    _, found = control_plane.request("GET", lease)
    assert not found["spec"].get("holderIdentity")
    assert found["spec"]["leaseDurationSeconds"] == 1
    assert one.code == 0
