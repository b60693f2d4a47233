"""Ray in plain pods: a head and its workers start at once on Ray's own ports, as on Kubernetes."""

import pathlib

from pods.cluster import SOAK, pod, service

PROGRAMS = pathlib.Path(__file__).parent / "programs"
CLUSTERS = 2 if SOAK else 1
WORKERS = 3 if SOAK else 2
COMMON = "--num-cpus=1 --object-store-memory=100000000 --disable-usage-stats"


def ray_pod(name, group, script, python, folder):
    mounts = {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}},
                          {"name": "signs", "hostPath": {"path": str(folder)}},
                          {"name": "programs", "hostPath": {"path": str(PROGRAMS)}}],
              "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "signs", "mountPath": "/signs"},
                               {"name": "programs", "mountPath": "/programs"}]}
    # On a busy machine Ray gives up after 30 s: it is started again, as operators do.
    thing = pod(name, script, labels={"ray": group}, restart="OnFailure" if "worker" in name else "Never", **mounts,
                env=[{"name": "PATH", "value": f"{pathlib.Path(python).parent}:/usr/bin:/bin"}])
    thing["spec"].update(terminationGracePeriodSeconds=10, hostname=name, subdomain=group)
    return thing


def start(cluster, group, *place):
    """The head runs a driver, too, and ends with it; workers stay until they are deleted."""
    cluster.create(service(group, {"ray": group}, port=6379, headless=True, publishNotReadyAddresses=True))
    cluster.create(ray_pod(f"{group}-head", group,
                           f"until ray start --head --port=6379 --dashboard-host=0.0.0.0 {COMMON}; do ray stop --force; done; "
                           f"python /programs/ray_sum.py {WORKERS + 1} /signs", *place))
    # By the shell: six Pythons that start again and again would take the head's time.
    wait = f"until bash -c '</dev/tcp/{group}-head.{group}/6379' 2>/dev/null; do sleep 0.3; done"
    for i in range(WORKERS):
        # What every Ray operator's init container does: the head serves before workers ask.
        cluster.create(ray_pod(f"{group}-worker-{i}", group,
                               f"{wait}; exec ray start --address={group}-head.{group}:6379 {COMMON} --block", *place))


def test_ray_clusters_side_by_side(cluster, python, tmp_path):
    """Each starts all its nodes at once; one after the other, for eight at once take two CPUs longer than Ray waits."""
    groups = [f"ray-{i}" for i in range(CLUSTERS)]
    for group in groups:
        start(cluster, group, python, tmp_path)
        cluster.wait((tmp_path / f"{group}-head").exists, f"all nodes of {group} are there", timeout=180)
    (tmp_path / "go").touch()
    for group in groups:
        head = cluster.ends(f"{group}-head", timeout=180)
        said = cluster.output(f"{group}-head")
        hosts = [f"{group}-head", *(f"{group}-worker-{i}" for i in range(WORKERS))]
        assert head["status"]["phase"] == "Succeeded" and f"ray: {' '.join(hosts)}" in said, said
    for group in groups:
        for i in range(WORKERS):
            cluster.delete("Pod", f"{group}-worker-{i}")
            cluster.gone(f"{group}-worker-{i}", timeout=60)
