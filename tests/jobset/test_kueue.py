"""JobSets of ours in queues of the real Kueue: admitted, taken back, and admitted on other nodes."""

import pytest

from jobset.behaviour import pod_template, stages
from jobset.controllers import GROUP, Ours, wait_until
from jobset.kueue import API, Kueue
from kube.control_plane import ControlPlane
from kube.needs import build_or_skip

WORKLOADS = f"{API}/namespaces/default/workloads"
CLUSTER_QUEUE = f"{API}/clusterqueues/all"
FLAVOURS = ("spot", "reserved")


@pytest.fixture(scope="module")
def cluster():
    build_or_skip("control-plane", "kwok", "kueue")
    with ControlPlane(controllers=True, kwok_stages=stages(), kwok_nodes=1) as cluster:
        for flavour in FLAVOURS:
            cluster.add_nodes(1, prefix=flavour, labels={f"example.com/{flavour}": "true"})
        with Ours(cluster), Kueue(cluster):
            make_queue(cluster)
            yield cluster


def quota(spot, reserved):
    return [{"coveredResources": ["cpu"], "flavors": [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": cpus}]}
        for name, cpus in (("spot", spot), ("reserved", reserved))]}]


def make_queue(cluster):
    def create(kind, name, **spec):
        where = "namespaces/default/localqueues" if kind == "LocalQueue" else f"{kind.lower()}s"
        status, answer = cluster.request("POST", f"{API}/{where}", {
            "apiVersion": API.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name},
            "spec": spec})
        assert status == 201, answer
    for flavour in FLAVOURS:
        create("ResourceFlavor", flavour, nodeLabels={f"example.com/{flavour}": "true"},
               tolerations=[{"key": f"example.com/{flavour}", "operator": "Exists"}])
    create("ClusterQueue", "all", namespaceSelector={}, resourceGroups=quota(2, 0))
    create("LocalQueue", "queue", clusterQueue="all")


def change(cluster, path, spec):
    status, answer = cluster.request("PATCH", path, {"spec": spec},
                                     content_type="application/merge-patch+json")
    assert status == 200, answer


def submit(cluster, name, behaviour):
    """Two Jobs of one pod that takes a CPU, in the queue."""
    template = pod_template(behaviour)
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {
                "parallelism": 1, "completions": 1, "template": template}}}]}}
    status, answer = cluster.request("POST", f"{GROUP}/namespaces/default/jobsets", body)
    assert status == 201, answer


def status_of(cluster, name):
    return cluster.request("GET", f"{GROUP}/namespaces/default/jobsets/{name}")[1].get("status", {})


def jobs_of(cluster, name):
    path = f"/apis/batch/v1/namespaces/default/jobs?labelSelector=jobset.sigs.k8s.io/jobset-name={name}"
    return cluster.request("GET", path)[1]["items"]


def running_on(cluster, name):
    """The flavours of the nodes on which its pods run, once there are two."""
    path = f"/api/v1/namespaces/default/pods?labelSelector=jobset.sigs.k8s.io/jobset-name={name}"
    pods = [p for p in cluster.request("GET", path)[1]["items"]
            if p["status"].get("phase") == "Running" and "deletionTimestamp" not in p["metadata"]]
    return len(pods) == 2 and {p["spec"]["nodeName"].rsplit("-", 1)[0] for p in pods}


def workload(cluster, name):
    """{type: status} of the conditions of its Workload."""
    for item in cluster.request("GET", WORKLOADS)[1]["items"]:
        if item["metadata"]["ownerReferences"][0]["name"] == name:
            return {c["type"]: c["status"] for c in item["status"].get("conditions", [])}
    return {}


def tell(cluster, name):
    return f"{workload(cluster, name)} {status_of(cluster, name)}"


def expect(cluster, name, condition, what):
    try:
        wait_until(condition, what, seconds=60)
    except TimeoutError:
        raise AssertionError(f"{what}\n{tell(cluster, name)}") from None


def test_waits_runs_and_gives_its_place_to_the_next(cluster):
    submit(cluster, "first", "linger")
    submit(cluster, "second", "succeed")
    expect(cluster, "first", lambda: running_on(cluster, "first") == {"spot"}, "does not run")
    assert workload(cluster, "second").get("Admitted") != "True" and not jobs_of(cluster, "second")
    for name in ("first", "second"):
        expect(cluster, name, lambda: status_of(cluster, name).get("terminalState") == "Completed",
               "does not complete")
        expect(cluster, name, lambda: workload(cluster, name).get("Finished") == "True",
               "Kueue does not see its end")
    jobs = jobs_of(cluster, "first")
    assert len(jobs) == 2
    assert all("queue-name" not in label for job in jobs for label in job["metadata"]["labels"]), \
        "its Jobs are queued by themselves"


def test_runs_on_other_nodes_when_it_is_admitted_again(cluster):
    submit(cluster, "moved", "run")
    expect(cluster, "moved", lambda: running_on(cluster, "moved") == {"spot"}, "does not run")
    expect(cluster, "moved", lambda: workload(cluster, "moved").get("PodsReady") in (None, "True"),
           "Kueue does not see that its pods are ready")
    # The whole queue is stopped, and has quota on other nodes when it goes on.
    change(cluster, CLUSTER_QUEUE, {"stopPolicy": "HoldAndDrain"})
    expect(cluster, "moved", lambda: [j["spec"]["suspend"] for j in jobs_of(cluster, "moved")] == [True] * 2
           and running_on(cluster, "moved") is False, "is not suspended")
    change(cluster, CLUSTER_QUEUE, {"resourceGroups": quota(0, 2)})
    change(cluster, CLUSTER_QUEUE, {"stopPolicy": "None"})
    expect(cluster, "moved", lambda: running_on(cluster, "moved") == {"reserved"},
           "does not run on the other nodes")
    jobs = jobs_of(cluster, "moved")
    assert len(jobs) == 2
    for job in jobs:
        pod = job["spec"]["template"]["spec"]
        assert pod["nodeSelector"] == {"example.com/reserved": "true"}
        assert [t["key"] for t in pod["tolerations"]] == ["example.com/reserved"]
    assert status_of(cluster, "moved")["restarts"] == 0
