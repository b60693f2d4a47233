"""Who runs, and who waits with which words."""

from .cluster import Cluster, pod


def asks(**resources):
    return {"resources": {"requests": resources}}


def priority_class(name, **fields):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1000,
            **fields}


def unscheduled(cluster, name):
    """What the scheduler says of a pod that waits."""
    def said(p):
        return [c for c in p["status"].get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "False"]

    waiting = cluster.wait_for_pod(name, said, "waits")
    assert waiting["status"]["phase"] == "Pending" and "nodeName" not in waiting["spec"]
    condition = said(waiting)[0]
    assert condition["reason"] == "Unschedulable"
    return condition["message"]


def test_what_does_not_fit_waits_and_says_why(cluster, name):
    rows = {"cpu": (asks(cpu="1000"), {}, "Insufficient cpu"),
            "memory": (asks(memory="100Ti"), {}, "Insufficient memory"),
            "gpu": ({"resources": {"limits": {"nvidia.com/gpu": "1"}}}, {}, "Insufficient nvidia.com/gpu"),
            "selector": ({}, {"nodeSelector": {"disk": "fast"}}, "node(s) didn't match Pod's node affinity/selector")}
    for key, (fields, spec, _) in rows.items():
        cluster.create(pod(f"{name}-{key}", "true", spec=spec, **fields))
    for key, (_, _, words) in rows.items():
        assert unscheduled(cluster, f"{name}-{key}").startswith(f"0/1 nodes are available: 1 {words}."), key
        cluster.delete("Pod", f"{name}-{key}")


def test_a_selector_that_matches(cluster, name):
    cluster.run(pod(name, "true", spec={"nodeSelector": {"kubernetes.io/hostname": cluster.node, "kubernetes.io/os": "linux"}}))


def test_room_that_is_given_back_is_used(cluster, name):
    cpus = int(cluster.get("Node", cluster.node)["status"]["allocatable"]["cpu"])
    cluster.create(pod(f"{name}-first", "sleep 1000", **asks(cpu=str(cpus))))
    cluster.phase(f"{name}-first", "Running")
    cluster.create(pod(f"{name}-second", "true", **asks(cpu=str(cpus))))
    assert "Insufficient cpu" in unscheduled(cluster, f"{name}-second")
    cluster.delete("Pod", f"{name}-first")
    cluster.ends(f"{name}-second")


def test_the_important_go_first(cluster, name):
    cpus = cluster.get("Node", cluster.node)["status"]["allocatable"]["cpu"]
    cluster.create(pod(f"{name}-holder", "sleep 1000", **asks(cpu=cpus)))
    cluster.phase(f"{name}-holder", "Running")
    cluster.create(pod(f"{name}-low", "date +%s%N", **asks(cpu=cpus)))
    unscheduled(cluster, f"{name}-low")
    cluster.create(priority_class(name, preemptionPolicy="Never"))
    cluster.create(pod(f"{name}-high", "date +%s%N", spec={"priorityClassName": name}, **asks(cpu=cpus)))
    unscheduled(cluster, f"{name}-high")
    cluster.delete("Pod", f"{name}-holder")
    for key in ("low", "high"):
        cluster.ends(f"{name}-{key}")
    assert int(cluster.output(f"{name}-high")) < int(cluster.output(f"{name}-low"))
    cluster.delete("PriorityClass", name)


def test_the_unimportant_make_room(cluster, name):
    cpus = cluster.get("Node", cluster.node)["status"]["allocatable"]["cpu"]
    cluster.create(pod(f"{name}-low", "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done",
                       **asks(cpu=cpus)))
    cluster.wait(lambda: cluster.get("Pod", f"{name}-low")["status"].get("phase") == "Running" and
                 cluster.output(f"{name}-low"), "it runs")
    cluster.create(priority_class(name))
    cluster.create(pod(f"{name}-high", "true", spec={"priorityClassName": name}, **asks(cpu=cpus)))
    cluster.ends(f"{name}-high")
    cluster.gone(f"{name}-low")
    told = [e for e in cluster.events(f"{name}-low") if e["reason"] == "Preempted"]
    assert len(told) == 1, cluster.events(f"{name}-low")
    cluster.delete("PriorityClass", name)


def test_a_machine_smaller_than_what_is_asked(kubectl_program):
    with Cluster() as plain:
        cpus = int(plain.get("Node", "laptop")["status"]["allocatable"]["cpu"])
    with Cluster(options=["--oversubscribe", "4"]) as cluster:
        assert int(cluster.get("Node", "laptop")["status"]["allocatable"]["cpu"]) == 4 * cpus
        cluster.run(pod("large", "true", **asks(cpu=str(4 * cpus))))
        assert "4 times" in cluster.log()
