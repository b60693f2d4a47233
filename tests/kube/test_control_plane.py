"""The fixture keeps its promises: it comes up, survives what tests do to it, and leaves nothing."""

import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from kube import control_plane as module
from kube.control_plane import ControlPlane, KubectlFailed
from kube.processes import StartFailed
from kube.programs import Programs


def wait_until(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def alive(pid):
    """Whether the process runs; a zombie, which only waits to be reaped, does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def flag_of(cluster, name):
    with open(f"/proc/{cluster.pids()['apiserver']}/cmdline") as command:
        flags = dict(f.lstrip("-").split("=", 1) for f in command.read().split("\0") if "=" in f)
    return flags[name]


def put_config_map(cluster, namespace, name, value):
    status, answer = cluster.request(
        "POST", f"/api/v1/namespaces/{namespace}/configmaps",
        {"metadata": {"name": name}, "data": {"value": value}})
    assert status == 201, answer
    return answer["metadata"]["resourceVersion"]


def config_map(cluster, namespace, name):
    status, answer = cluster.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    return answer["data"]["value"] if status == 200 else None


def test_kubectl_works(control_plane):
    version = json.loads(control_plane.kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == version["clientVersion"]["gitVersion"]
    assert version["serverVersion"]["minor"] == "33"
    with pytest.raises(KubectlFailed, match="not found"):
        control_plane.kubectl("get", "configmap", "no-such")


def test_kubectl_reads_its_input(control_plane, namespace):
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
                           "data": {"value": "from stdin"}})
    control_plane.kubectl("-n", namespace, "apply", "-f", "-", input=manifest)
    assert config_map(control_plane, namespace, "c") == "from stdin"


def test_job_on_a_fake_node_completes(control_plane, namespace):
    control_plane.kubectl("-n", namespace, "create", "job", "work", "--image=none", "--", "true")
    control_plane.kubectl("-n", namespace, "wait", "--for=condition=complete", "job/work",
                          "--timeout=20s")


def test_pods_on_fake_nodes_have_logs_and_run_commands(control_plane, namespace):
    control_plane.kubectl("-n", namespace, "run", "pod", "--image=none")
    control_plane.kubectl("-n", namespace, "wait", "--for=condition=ready", "pod/pod")
    control_plane.log_from_pods("hello")
    assert "hello\n" in control_plane.kubectl("-n", namespace, "logs", "pod")
    output = control_plane.kubectl("-n", namespace, "exec", "-i", "pod", "--",
                                   "sh", "-c", "read line; echo got $line", input="abc\n")
    assert output == "got abc\n"


@pytest.mark.parametrize("user, groups, credential", [
    ("alice", ["team-a"], "token"),
    ("bob", ["team-b"], "client-certificate"),
])
def test_others_have_only_their_rights(control_plane, namespace, user, groups, credential):
    kubeconfig = control_plane.kubeconfig_for(user, groups)
    assert f"{credential}: " in kubeconfig.read_text()

    def as_user(*arguments):
        return control_plane.kubectl("--kubeconfig", kubeconfig, "-n", namespace, *arguments)

    who = json.loads(as_user("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert who["username"] == user
    assert set(groups) <= set(who["groups"])
    with pytest.raises(KubectlFailed, match="Forbidden"):
        as_user("get", "pods")
    control_plane.kubectl("-n", namespace, "create", "rolebinding", "view", "--clusterrole=view",
                          f"--group={groups[0]}")
    wait_until(lambda: succeeds(as_user, "get", "pods"))  # the authorizer hears of it by a watch


def succeeds(kubectl, *arguments):
    try:
        kubectl(*arguments)
        return True
    except KubectlFailed:
        return False


def test_state_survives_a_restart_of_the_api_server(control_plane, namespace):
    put_config_map(control_plane, namespace, "before", "1")
    url, before = control_plane.url, control_plane.pids()
    # From a thread that ends: the kernel's death signal must not be tied to it.
    restart = threading.Thread(target=control_plane.restart_apiserver)
    restart.start()
    restart.join()
    assert control_plane.ready() and control_plane.url == url
    assert config_map(control_plane, namespace, "before") == "1"
    after = control_plane.pids()
    assert before.keys() == after.keys()
    assert before["apiserver"] != after["apiserver"] and before["etcd"] == after["etcd"]


def test_state_survives_a_restart_of_etcd(control_plane, namespace):
    put_config_map(control_plane, namespace, "before", "1")
    control_plane.stop_etcd()
    wait_until(lambda: not control_plane.ready())
    control_plane.start_etcd()
    wait_until(control_plane.ready)
    assert config_map(control_plane, namespace, "before") == "1"
    control_plane.restart_etcd()
    put_config_map(control_plane, namespace, "after", "2")


def test_a_paused_api_server_hangs_until_resumed(control_plane):
    control_plane.pause("apiserver")
    try:
        with pytest.raises(TimeoutError):
            control_plane.request("GET", "/readyz", timeout=0.5)
    finally:
        control_plane.resume("apiserver")
    wait_until(control_plane.ready)


def test_compaction_expires_continue_tokens_and_old_watches(control_plane, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    old = put_config_map(control_plane, namespace, "a", "1")
    put_config_map(control_plane, namespace, "b", "2")
    _, page = control_plane.request("GET", f"{path}?limit=1")
    put_config_map(control_plane, namespace, "c", "3")
    control_plane.compact_etcd()
    status, answer = control_plane.request(
        "GET", f"{path}?limit=1&continue={page['metadata']['continue']}")
    assert (status, answer["reason"]) == (410, "Expired")
    control_plane.restart_apiserver()
    status, event = control_plane.request(
        "GET", f"{path}?watch=1&resourceVersion={old}&timeoutSeconds=1")
    assert status == 410 or (event["type"], event["object"]["code"]) == ("ERROR", 410)


class Command:
    """`control_plane.py up`, as a developer or a bench runs it."""

    def __init__(self, folder):
        self.kubeconfig = folder / "admin.kubeconfig"
        self.process = subprocess.Popen([sys.executable, module.__file__, "up", "--dir", folder],
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == f"export KUBECONFIG={self.kubeconfig}\n"
        self.children = [pid for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
                         for pid in (thread / "children").read_text().split()]
        assert len(self.children) == 2

    def end(self, how):
        self.process.send_signal(how)
        code = self.process.wait(20)
        wait_until(lambda: not any(alive(pid) for pid in self.children), timeout=5)
        return code


def test_the_command_stops_when_told_to(kube_programs, tmp_path):
    assert Command(tmp_path).end(signal.SIGTERM) == 0


def test_nothing_is_left_by_a_killed_command_nor_by_stop(kube_programs, tmp_path):
    command = Command(tmp_path)
    subprocess.run([Programs().path("kubectl"), "--kubeconfig", command.kubeconfig,
                    "create", "configmap", "kept", "--from-literal=value=1"], check=True)
    command.end(signal.SIGKILL)
    # The folder is as good as before; the next cluster on it goes on from there.
    with ControlPlane(tmp_path, feature_gates={"WatchList": True},
                      compaction_interval="5s") as cluster:
        assert config_map(cluster, "default", "kept") == "1"
        assert flag_of(cluster, "feature-gates") == "WatchList=true"
        assert flag_of(cluster, "etcd-compaction-interval") == "5s"
        pids = cluster.pids()
        assert set(pids) == {"etcd", "apiserver"}
        cluster.pause("etcd")  # even what does not answer is ended
    assert not any(alive(pid) for pid in pids.values())


def test_a_failed_start_shows_the_log_and_leaves_nothing(kube_programs):
    cluster = ControlPlane(apiserver_args=["--no-such-flag"])
    with pytest.raises(StartFailed, match="apiserver.*\n(.*\n)*.*unknown flag: --no-such-flag"):
        cluster.start()
    assert cluster.pids() == {}
    assert not cluster.directory.exists()
