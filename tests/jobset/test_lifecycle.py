"""The same lives of JobSets on a real control plane and on the laptop cluster.

`scene` is a namespace of its own on one of the two. What one of them cannot show is marked so.
"""

import base64
import calendar
import itertools
import time

import pytest

from jobset.behaviour import pod_template
from jobset.worlds import JOBSET_NAME, LaptopWorld, RealWorld
from kube.needs import build_or_skip

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def real():
    build_or_skip("control-plane", "kwok")
    with RealWorld() as world:
        yield world


@pytest.fixture(scope="module")
def laptop():
    with LaptopWorld() as world:
        yield world


class Scene:
    """One JobSet, called `train`, and what becomes of it."""

    def __init__(self, world, namespace):
        self.world = world
        self.namespace = namespace

    def submit(self, *replicated_jobs, annotations=None, **spec):
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                "metadata": {"name": "train", "annotations": annotations or {}},
                "spec": {"replicatedJobs": list(replicated_jobs)} | spec}
        return self.world.create("jobsets", self.namespace, body)

    def jobset(self):
        return self.world.get("jobsets", self.namespace, "train")

    def status(self):
        return (self.jobset() or {}).get("status", {})

    def list(self, kind):
        return self.world.list(kind, self.namespace)

    def jobs(self):
        """{name: Job} of those that are not about to go."""
        return {j["metadata"]["name"]: j for j in self.list("jobs")
                if "deletionTimestamp" not in j["metadata"]}

    def pods(self, job=""):
        return [p for p in self.list("pods") if p["metadata"]["name"].startswith(job)
                and "deletionTimestamp" not in p["metadata"]]

    def wait(self, check, what="", seconds=60):
        def tell():
            jobs = {name: job.get("status") for name, job in self.jobs().items()}
            pods = {p["metadata"]["name"]: p.get("status", {}).get("phase") for p in self.list("pods")}
            return f"{what}\nstatus {self.status()}\njobs {jobs}\npods {pods}"
        return self.world.wait(check, tell, seconds)

    def end(self, state, seconds=60):
        """The status, once the JobSet has ended this way."""
        def ended():
            status = self.status()
            return status.get("terminalState") and status
        status = self.wait(ended, f"does not end as {state}", seconds)
        assert status["terminalState"] == state, status
        return status

    def condition(self, kind):
        found = [c for c in self.status().get("conditions", []) if c["type"] == kind]
        return found[0] if found else {}

    def change(self, spec):
        return self.world.patch("jobsets", self.namespace, "train", {"spec": spec})

    def reasons(self):
        return {e["reason"] for e in self.list("events") if e["regarding"]["kind"] == "JobSet"}


@pytest.fixture(params=["real", "laptop"])
def scene(request):
    world = request.getfixturevalue(request.param)
    name = f"scene-{next(NUMBERS)}"
    status, answer = world.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert status == 201, answer
    # Whoever comes first: the cluster's own controller, or we.
    world.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts",
                  {"metadata": {"name": "default"}})
    yield Scene(world, name)
    world.request("DELETE", f"/api/v1/namespaces/{name}")


def replicated(name, behaviour="succeed", replicas=1, pods=1, **more):
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0,
            "template": pod_template(behaviour)}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}} | more


def failed_because(status):
    return next(c["reason"] for c in status["conditions"] if c["type"] == "Failed")


# ---- success

def test_success(scene):
    scene.submit(replicated("w", replicas=2, pods=2), replicated("driver"))
    service = scene.wait(lambda: scene.world.get("services", scene.namespace, "train"), "no Service")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {JOBSET_NAME: "train"}
    status = scene.end("Completed")
    assert {(s["name"], s["succeeded"]) for s in status["replicatedJobsStatus"]} == \
        {("w", 2), ("driver", 1)}
    assert status["restarts"] == 0
    assert set(scene.jobs()) == {"train-w-0", "train-w-1", "train-driver-0"}
    assert "AllJobsCompleted" in scene.reasons()


def test_success_of_any_target_ends_the_rest(scene):
    scene.submit(replicated("w", "run", replicas=2), replicated("driver", "linger"),
                 successPolicy={"operator": "Any", "targetReplicatedJobs": ["driver"]})
    scene.end("Completed")
    scene.wait(lambda: set(scene.jobs()) == {"train-driver-0"}, "the others still run")


# ---- failure

def test_failure_without_a_policy(scene):
    scene.submit(replicated("w", "run"), replicated("bad", "fail"))
    status = scene.end("Failed")
    assert failed_because(status) == "FailedJobs"
    assert "train-bad-0" in scene.condition("Failed")["message"]
    scene.wait(lambda: set(scene.jobs()) == {"train-bad-0"}, "the others still run")


@pytest.mark.parametrize("strategy", ["Recreate", "BlockingRecreate"])
def test_restart_of_all(scene, strategy):
    scene.submit(replicated("w", "fail-once"), replicated("other", "linger"),
                 failurePolicy={"maxRestarts": 2, "restartStrategy": strategy})
    first = scene.wait(lambda: scene.jobs().get("train-other-0"), "no Job")
    status = scene.end("Completed")
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)
    job = scene.jobs()["train-other-0"]
    assert job["metadata"]["uid"] != first["metadata"]["uid"]
    assert job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] == "1"


def set_ready(world, node, status):
    """As the node's controller does when the node no longer answers, or answers again."""
    answer = world.request("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"conditions": [
        {"type": "Ready", "status": status, "reason": "Test", "message": "set by a test"}]}},
        "application/strategic-merge-patch+json")
    assert answer[0] == 200, answer


@pytest.mark.only("real")  # the laptop's node cannot be lost: it is the same process
def test_a_node_is_lost_during_a_restart_that_blocks(scene):
    """Its pod was deleted while the node was still Ready, and no event of the pod follows."""
    world = scene.world
    scene.submit(replicated("w", "run", replicas=2),
                 failurePolicy={"maxRestarts": 1, "restartStrategy": "BlockingRecreate"},
                 annotations={"grapnel.dev/stuck-deletion-timeout": "1s"})

    def running():
        pods = {p["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"]: p for p in scene.pods()
                if p["status"].get("phase") == "Running"}
        return len(pods) == 2 and pods
    first = scene.wait(running, "no pods")
    failed, stuck = first["0"]["metadata"]["name"], first["1"]["metadata"]["name"]
    node = first["1"]["spec"]["nodeName"]
    world.cluster.pause("kwok")  # from now on no pod ends
    try:
        status, answer = world.request(
            "PATCH", world.path("pods", scene.namespace, failed) + "/status",
            {"status": {"phase": "Failed"}}, "application/merge-patch+json")
        assert status == 200, answer

        def is_overdue():
            """Deleted, and its second is over: the operator has found it on a node that answers."""
            pod = world.get("pods", scene.namespace, stuck)
            deleted = pod["metadata"].get("deletionTimestamp")
            return deleted and time.time() > calendar.timegm(
                time.strptime(deleted, "%Y-%m-%dT%H:%M:%SZ")) + 3
        scene.wait(is_overdue, "the pod is not deleted")
        assert scene.status()["restarts"] == 1 and scene.jobs() == {}, "it does not block"
        set_ready(world, node, "Unknown")
        scene.wait(lambda: set(scene.jobs()) == {"train-w-0", "train-w-1"}, "the restart hangs")
    finally:
        world.cluster.resume("kwok")
        set_ready(world, node, "True")
    again = scene.wait(running, "the pods are not made again")
    assert {p["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"]
            for p in again.values()} == {"1"}


def test_no_more_restarts_than_allowed(scene):
    scene.submit(replicated("w", "fail"), failurePolicy={"maxRestarts": 1})
    status = scene.end("Failed")
    assert failed_because(status) == "ReachedMaxRestarts"
    assert status["restarts"] == 1


def test_rule_fails_the_jobset(scene):
    scene.submit(replicated("w", "fail"), replicated("x", "run"), failurePolicy={
        "maxRestarts": 5, "rules": [
            {"name": "other", "action": "RestartJobSet", "targetReplicatedJobs": ["x"]},
            {"name": "stop", "action": "FailJobSet",
             "onJobFailureReasons": ["BackoffLimitExceeded"]}]})
    status = scene.end("Failed")
    assert failed_because(status) == "FailJobSetFailurePolicyAction"
    assert status["restarts"] == 0


def test_rule_restarts_without_counting(scene):
    scene.submit(replicated("w", "fail-once"), failurePolicy={"maxRestarts": 0, "rules": [
        {"name": "free", "action": "RestartJobSetAndIgnoreMaxRestarts"}]})
    status = scene.end("Completed")
    assert status["restarts"] == 1
    assert status.get("restartsCountTowardsMax", 0) == 0


def test_rule_by_message(scene):
    scene.submit(replicated("w", "fail"), failurePolicy={"maxRestarts": 1, "rules": [
        {"name": "never", "action": "FailJobSet", "onJobFailureMessagePatterns": ["^no such text$"]},
        {"name": "limit", "action": "FailJobSet", "onJobFailureMessagePatterns": ["backoff limit"]}]})
    assert failed_because(scene.end("Failed")) == "FailJobSetFailurePolicyAction"


@pytest.mark.parametrize("action, limit", [("RestartJob", 1), ("RestartJobAndIgnoreMaxRestarts", 0)])
def test_restart_of_one_job(scene, action, limit):
    scene.submit(replicated("w", "fail-once-alone"), replicated("other", "linger"),
                 failurePolicy={"maxRestarts": limit, "rules": [{"name": "alone", "action": action}]})
    first = scene.wait(lambda: scene.jobs().get("train-other-0"), "no Job")
    status = scene.end("Completed")
    assert status["restarts"] == 0
    assert scene.jobs()["train-other-0"]["metadata"]["uid"] == first["metadata"]["uid"]
    assert scene.jobs()["train-w-0"]["metadata"]["labels"][
        "jobset.sigs.k8s.io/job-restart-attempt"] == "1"


# ---- suspension

def test_suspended_from_the_start(scene):
    """No Jobs until it is resumed, and then with what was changed meanwhile."""
    scene.submit(replicated("w", pods=2), suspend=True)
    scene.wait(lambda: scene.condition("Suspended").get("status") == "True", "is not suspended")
    assert scene.list("jobs") == [] and scene.list("services") == []
    job = scene.jobset()["spec"]["replicatedJobs"][0]
    template = job["template"]["spec"]["template"]
    template.setdefault("metadata", {}).setdefault("labels", {})["queue"] = "q"
    template["spec"]["tolerations"] = [{"key": "t", "operator": "Exists"}]
    scene.change({"replicatedJobs": [job]})
    scene.change({"suspend": False})
    scene.end("Completed")
    pod = scene.jobs()["train-w-0"]["spec"]["template"]
    assert pod["metadata"]["labels"]["queue"] == "q"
    assert {"key": "t", "operator": "Exists"} in pod["spec"]["tolerations"]
    assert scene.condition("Suspended")["status"] == "False"


def test_suspended_while_it_runs(scene):
    scene.submit(replicated("w", "run", pods=2))
    scene.wait(lambda: len(scene.pods()) == 2, "no pods")
    scene.change({"suspend": True})
    scene.wait(lambda: scene.list("pods") == [], "pods are still there")
    assert scene.jobs()["train-w-0"]["spec"]["suspend"] is True
    scene.wait(lambda: scene.condition("Suspended").get("status") == "True", "is not suspended")
    job = scene.jobset()["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["metadata"]["annotations"]["note"] = "second"
    scene.change({"replicatedJobs": [job], "suspend": False})
    scene.wait(lambda: len(scene.pods()) == 2, "no pods after it was resumed")
    assert all(p["metadata"]["annotations"]["note"] == "second" for p in scene.pods())


def test_let_go_again_on_other_nodes(scene):
    """As Kueue does: it takes back what it wrote, and the next time chooses another flavour."""
    def let_go(**where):
        job = scene.jobset()["spec"]["replicatedJobs"][0]
        job["template"]["spec"]["template"]["spec"] |= where
        scene.change({"replicatedJobs": [job], "suspend": False})
        [pod] = scene.wait(scene.pods, "no pod")
        keys = {t["key"] for t in pod["spec"].get("tolerations", [])}
        return pod["spec"]["nodeSelector"], keys, pod["spec"].get("schedulingGates", [])
    scene.submit(replicated("w", "run"), suspend=True)
    spot = {"key": "spot", "operator": "Exists"}
    first = let_go(nodeSelector={"flavour": "spot"}, tolerations=[spot], schedulingGates=[{"name": "q.io/q"}])
    assert first[0] == {"flavour": "spot"} and "spot" in first[1] and first[2] == [{"name": "q.io/q"}]
    job = scene.jobset()["spec"]["replicatedJobs"][0]
    for member in ("nodeSelector", "tolerations", "schedulingGates"):
        del job["template"]["spec"]["template"]["spec"][member]
    scene.change({"replicatedJobs": [job], "suspend": True})
    scene.wait(lambda: scene.list("pods") == [], "pods are still there")
    again = let_go(nodeSelector={"pool": "reserved"})
    assert again[0] == {"pool": "reserved"} and "spot" not in again[1] and again[2] == []


# ---- order

def test_startup_in_order(scene):
    scene.submit(replicated("a", "linger"), replicated("b"),
                 startupPolicy={"startupPolicyOrder": "InOrder"})
    scene.end("Completed")
    created = {name: job["metadata"]["creationTimestamp"] for name, job in scene.jobs().items()}
    ready = scene.world.list("pods", scene.namespace, f"{JOBSET_NAME}=train")
    first = next(p for p in ready if p["metadata"]["name"].startswith("train-a"))
    assert created["train-b-0"] >= first["metadata"]["creationTimestamp"]
    assert scene.condition("StartupPolicyCompleted")["status"] == "True"


@pytest.mark.parametrize("status", ["Ready", "Complete"])
def test_depends_on(scene, status):
    scene.submit(replicated("a", "linger"),
                 replicated("b", dependsOn=[{"name": "a", "status": status}]))
    scene.wait(lambda: scene.jobs().get("train-b-0"), "the second never starts")
    done = scene.jobs()["train-a-0"]["status"].get("succeeded", 0)
    assert done == (1 if status == "Complete" else 0)
    scene.end("Completed")


# ---- the rest of the spec

def test_coordinator(scene):
    scene.submit(replicated("w", "run", replicas=2, pods=2),
                 coordinator={"replicatedJob": "w", "jobIndex": 1, "podIndex": 0},
                 network={"subdomain": "net"})
    scene.wait(lambda: len(scene.pods()) == 4, "no pods")
    for pod in scene.pods():
        assert pod["metadata"]["labels"]["jobset.sigs.k8s.io/coordinator"] == "train-w-1-0.net"
        assert pod["spec"]["subdomain"] == "net"
    assert scene.world.get("services", scene.namespace, "net")


def test_time_to_live(scene):
    scene.submit(replicated("w"), ttlSecondsAfterFinished=1)
    scene.wait(lambda: scene.list("jobs"), "no Job")
    scene.wait(lambda: scene.jobset() is None, "it is still there")
    scene.wait(lambda: scene.list("jobs") == [] and scene.list("pods") == [], "Jobs are still there")


def test_elastic(scene):
    scene.submit(replicated("w", "run", pods=1))
    scene.wait(lambda: len(scene.pods()) == 1, "no pod")
    job = scene.jobset()["spec"]["replicatedJobs"][0]
    for count in (3, 2):
        job["template"]["spec"] |= {"parallelism": count, "completions": count}
        scene.change({"replicatedJobs": [job]})
        scene.wait(lambda: len(scene.pods()) == count, f"not {count} pods")
    assert scene.status()["restarts"] == 0


def test_volume_claims(scene):
    def policy(name, kept):
        return {"templates": [{"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],
            "retentionPolicy": {"whenDeleted": kept}}
    job = replicated("w", "run")
    job["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [
        {"name": name, "mountPath": f"/{name}"} for name in ("scratch", "model")]
    scene.submit(job, volumeClaimPolicies=[policy("scratch", "Delete"), policy("model", "Retain")])

    def claims():
        return {c["metadata"]["name"] for c in scene.list("persistentvolumeclaims")
                if "deletionTimestamp" not in c["metadata"]}
    scene.wait(lambda: claims() == {"scratch-train", "model-train"}, "no claims")
    scene.wait(lambda: scene.jobs(), "no Job")
    volumes = scene.jobs()["train-w-0"]["spec"]["template"]["spec"]["volumes"]
    assert {v["persistentVolumeClaim"]["claimName"] for v in volumes} == claims()
    scene.world.delete("jobsets", scene.namespace, "train")
    scene.wait(lambda: claims() == {"model-train"}, lambda: f"claims: {claims()}")


def test_managed_by_another(scene):
    scene.submit(replicated("w"), managedBy="kueue.x-k8s.io/multikueue")
    scene.world.create("jobsets", scene.namespace, {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "ours"},
        "spec": {"replicatedJobs": [replicated("w")]}})
    scene.wait(lambda: "ours-w-0" in scene.jobs(), "the other has no Job")
    assert set(scene.jobs()) == {"ours-w-0"}
    assert scene.status() == {}


def test_deletion(scene):
    scene.submit(replicated("w", "run", replicas=2, pods=2))
    scene.wait(lambda: len(scene.pods()) == 4, "no pods")
    scene.world.delete("jobsets", scene.namespace, "train")
    for kind in ("jobs", "pods", "services"):
        scene.wait(lambda: scene.list(kind) == [], f"{kind} are left")
    assert scene.jobset() is None


def test_gang(scene):
    scene.submit(replicated("w", "run", replicas=2, pods=2),
                 annotations={"grapnel.dev/gang-scheduler": "volcano"})
    group = scene.wait(lambda: scene.list("podgroups"), "no PodGroup")[0]
    assert group["spec"]["minMember"] == 4
    job = scene.wait(lambda: scene.jobs().get("train-w-0"), "no Job")
    assert job["spec"]["template"]["spec"]["schedulerName"] == "volcano"


# ---- placement

def rack_of(scene, pod):
    _, node = scene.world.request("GET", f"/api/v1/nodes/{pod['spec']['nodeName']}")
    return node["metadata"]["labels"].get("rack")


@pytest.mark.only("real")  # one node is one rack
def test_exclusive_placement(scene):
    job = replicated("w", "run", replicas=2, pods=2)
    # Each pod takes more than half a node, so that a leader and its follower are on two.
    container = job["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "600"}}
    scene.submit(job, annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})

    def placed():
        pods = scene.pods()
        return len(pods) == 4 and all(p["spec"].get("nodeName") for p in pods) and pods
    pods = scene.wait(placed, "not all pods have a node")
    racks = {job: {rack_of(scene, p) for p in pods if p["metadata"]["name"].startswith(job)}
             for job in ("train-w-0", "train-w-1")}
    assert sorted(map(sorted, racks.values())) == [["blue"], ["red"]]

    # The leader's node changes its rack: its follower is in the wrong one, and goes. Labels of nodes
    # alone wake nobody, for they hardly ever change.
    leader = next(p for p in pods if p["metadata"]["name"].startswith("train-w-0-0"))
    stray = next(p for p in pods if p["metadata"]["name"].startswith("train-w-0-1"))
    node = f"/api/v1/nodes/{leader['spec']['nodeName']}"
    scene.world.request("PATCH", node, {"metadata": {"labels": {"rack": "green"}}},
                        "application/merge-patch+json")
    scene.change({"ttlSecondsAfterFinished": 1000})
    scene.wait(lambda: all(p["metadata"]["uid"] != stray["metadata"]["uid"] for p in scene.pods()),
               "the stray follower is still there")


def priorities(scene):
    return {p["metadata"]["labels"].get("jobset.sigs.k8s.io/priority") for p in scene.pods()}


@pytest.fixture
def classes(scene):
    """Priority classes `seven`, and `five` for pods that name none."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    names = {"seven": 7, "five": 5}
    for name, value in names.items():
        status, answer = scene.world.request("POST", path, {
            "metadata": {"name": name}, "value": value, "globalDefault": name == "five"})
        assert status == 201, answer
    pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    probe = f"{scene.world.path('pods', scene.namespace)}?dryRun=All"

    def priority():
        return scene.world.request("POST", probe, pod)[1].get("spec", {}).get("priority", 0)
    scene.wait(lambda: priority() == 5, "admission does not know the default class")
    yield
    for name in names:
        scene.world.request("DELETE", f"{path}/{name}")
    scene.wait(lambda: priority() == 0, "admission still knows the default class")


def test_pods_say_their_priority(scene):
    scene.submit(replicated("w", "run"))
    scene.wait(scene.pods, "no pod")
    assert priorities(scene) == {"0"}


def test_pods_say_the_priority_of_their_class(scene, classes):
    named = replicated("named", "run")
    named["template"]["spec"]["template"]["spec"]["priorityClassName"] = "seven"
    scene.submit(named, replicated("other", "run"))
    scene.wait(lambda: len(scene.pods()) == 2, "no pods")
    assert priorities(scene) == {"7", "5"}


@pytest.mark.only("real")  # where it is another process
@pytest.mark.parametrize("annotations", [
    pytest.param({}, id="anywhere"),
    pytest.param({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
                  "alpha.jobset.sigs.k8s.io/node-selector": "true"}, id="on labelled nodes")])
def test_pods_are_made_again_while_the_operator_is_down(scene, annotations):
    job = replicated("w", "run")
    job["template"]["spec"]["backoffLimit"] = 3
    scene.submit(job, annotations=annotations)
    [first] = scene.wait(scene.pods, "no pod")
    scene.world.operator.stop(graceful=True)
    try:
        scene.world.delete("pods", scene.namespace, first["metadata"]["name"])
        scene.wait(lambda: any(p["metadata"]["uid"] != first["metadata"]["uid"]
                               for p in scene.pods()), "the pod is not made again")
    finally:
        scene.world.ours.run()


# ---- Experiments

def test_experiment(scene):
    def experiment(name, **spec):
        scene.world.create("experiments", scene.namespace, {
            "apiVersion": "grapnel.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": name},
            "spec": {"operator": "jobset", "image": "none", "command": "true",
                     "types": {"worker": {"count": 1, "resources": {"cpus": 0.1, "ramRatio": 1}}}}
            | spec})
    experiment("short", ttlSecondsAfterFinished=1)
    # No node has as much: it waits until it is cancelled.
    experiment("stopped", types={"worker": {"count": 1, "resources": {"cpus": 5000, "ramRatio": 1}}})
    experiment("other", command="sleep 0.5")
    get = scene.world.get
    scene.wait(lambda: any(p["metadata"]["name"].startswith("stopped") for p in scene.pods()), "no pod")
    scene.world.patch("experiments", scene.namespace, "stopped", {"spec": {"cancel": True}})
    scene.wait(lambda: get("experiments", scene.namespace, "short") is None, "it is still there")
    scene.wait(lambda: get("experiments", scene.namespace, "other")["status"].get("phase")
               == "Succeeded", "does not succeed")
    scene.wait(lambda: get("experiments", scene.namespace, "stopped")["status"].get("phase")
               == "Cancelled", "is not cancelled")


# ---- what a wrong spec leads to

def invalid_specs():
    """(what to submit, the field at fault)"""
    good = replicated("w")
    def wrong(field, value, path, **more):
        return pytest.param([good | {field: value}], more, path, id=path)
    return [
        wrong("name", "Bad_Name", "spec.replicatedJobs[0].name"),
        wrong("groupName", "G", "spec.replicatedJobs[0].groupName"),
        pytest.param([good], {"coordinator": {"replicatedJob": "nobody"}}, "spec.coordinator",
                     id="coordinator"),
        pytest.param([good], {"successPolicy": {"operator": "All",
                                                "targetReplicatedJobs": ["nobody"]}},
                     "spec.successPolicy.targetReplicatedJobs", id="successPolicy"),
        pytest.param([good], {"failurePolicy": {"rules": [
            {"name": "a-b", "action": "FailJobSet"}]}}, "spec.failurePolicy.rules[0].name", id="rule"),
        pytest.param([good], {"network": {"subdomain": "a.b"}}, "spec.network.subdomain",
                     id="subdomain"),
        pytest.param([good], {"managedBy": "nobody"}, "spec.managedBy", id="managedBy"),
    ]


@pytest.fixture
def without_webhooks(scene):
    scene.world.ours.remove_webhooks()
    yield
    scene.world.ours.restore_webhooks()


@pytest.mark.parametrize("jobs, more, path", invalid_specs())
def test_an_invalid_spec_is_refused_at_admission(scene, jobs, more, path):
    body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "train"}, "spec": {"replicatedJobs": jobs} | more}
    status, answer = scene.world.request("POST", scene.world.path("jobsets", scene.namespace), body)
    assert status == 422, answer
    assert any(c["field"].startswith(path) for c in answer["details"]["causes"]), answer
    assert path in answer["message"]


def test_an_invalid_experiment_is_refused_at_admission(scene):
    body = {"apiVersion": "grapnel.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "e"},
            "spec": {"operator": "jax", "image": "none", "command": "true",
                     "types": {"Worker": {"count": 1, "resources": {"cpus": 1, "ramRatio": 1}}}}}
    status, answer = scene.world.request("POST", scene.world.path("experiments", scene.namespace),
                                         body)
    assert status == 422, answer
    assert answer["details"]["causes"][0]["field"] == "spec.types.Worker", answer


def test_what_may_not_change_is_refused_at_admission(scene):
    scene.submit(replicated("w", "run"))
    path = scene.world.path("jobsets", scene.namespace, "train")
    status, answer = scene.world.request("PATCH", path, {"spec": {"replicatedJobs": [
        replicated("w", "succeed")]}}, "application/merge-patch+json")
    assert status == 422, answer
    assert answer["details"]["causes"][0]["field"].startswith("spec.replicatedJobs"), answer


def test_defaults_are_set_at_admission(scene):
    made = scene.submit(replicated("w"), failurePolicy={"rules": [{"action": "FailJobSet"}]})
    assert made["spec"]["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"


# Of a JobSet that is another controller's we say nothing.
@pytest.mark.only("real")  # the laptop cluster always asks
@pytest.mark.parametrize("jobs, more, path",
                         [spec for spec in invalid_specs() if spec.id != "managedBy"])
def test_an_invalid_spec_fails_with_the_reason_where_no_webhook_is(scene, without_webhooks, jobs,
                                                                   more, path):
    scene.submit(*jobs, **more)
    failed = scene.wait(lambda: scene.condition("Failed"), "no condition")
    assert failed["reason"] == "InvalidSpec", failed
    assert path in failed["message"]
    scene.wait(lambda: "InvalidSpec" in scene.reasons(), "no event")
    # And that is all: nothing is tried again and again.
    version = scene.jobset()["metadata"]["resourceVersion"]
    time.sleep(2)
    assert scene.jobset()["metadata"]["resourceVersion"] == version
    assert scene.list("jobs") == []


# ---- the webhooks' certificate

def test_a_spoiled_certificate_is_replaced(real):
    """As one that is about to end would be; all replicas find the new one in the Secret."""
    where = ("secrets", "grapnel-system", "grapnel-webhook")
    before = real.get(*where)["data"]
    real.patch(*where, {"data": {"tls.crt": base64.b64encode(b"no certificate").decode()}})
    real.operator.stop(graceful=True)
    real.ours.run()  # returns when the API server has been answered
    after = real.get(*where)["data"]
    assert after["tls.key"] != before["tls.key"]
    authorities = base64.b64decode(after["ca.crt"]).decode()
    assert base64.b64decode(before["ca.crt"]).decode() in authorities, "the old one is still trusted"


# ---- permissions; the last test, for it looks back on all others

# Used only after an answer was lost.
RARE = {"get"}
# Asked for by admission plugins that this cluster lacks; besides the patch by which an apply creates;
# when the same event comes again.
NEVER_SEEN = {("update", "jobset.x-k8s.io", "jobsets/finalizers"),
              ("update", "grapnel.dev", "experiments/finalizers"),
              ("create", "scheduling.volcano.sh", "podgroups"),
              ("patch", "events.k8s.io", "events")}


def granted(world):
    for document in world.ours.install_objects():
        if document["kind"] in ("ClusterRole", "Role"):
            for rule in document["rules"]:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for verb in rule["verbs"]:
                            yield verb, group, resource


def test_permissions_are_those_that_are_used(real, request):
    ran = {item.name for item in request.session.items if item.module is request.module}
    if len(ran) < len([name for name in globals() if name.startswith("test_")]):
        pytest.skip("only after all other tests of this module")
    done = real.requests_of_operator()
    assert not [what for *what, forbidden in done if forbidden], "a permission is missing"
    used = {(verb, group, resource) for verb, group, resource, _ in done}
    allowed = set(granted(real))
    assert used <= allowed
    never = {p for p in allowed - used if p[0] not in RARE} - NEVER_SEEN
    assert not never, f"granted and never used: {sorted(never)}"


def test_the_operator_ends_well(real):
    real.operator.stop(graceful=True)
    log = real.operator.log.read_text(errors="replace")
    assert "AddressSanitizer" not in log and "runtime error:" not in log, log[-5000:]
