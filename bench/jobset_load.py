"""A JobSet of one-pod Jobs: created, completed, and restarted as a whole."""

import http.client
import json
import ssl
import threading
import time

from jobset.controllers import GROUP, Original, Ours

CONTROLLERS = {"original": Original, "grapnel": Ours}
NAMESPACE = "default"


def jobset(name, size, held=False):
    """With `held`, its pods are never scheduled, so that its Jobs go on for ever."""
    pod = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": "none"}]}}
    if held:
        pod["spec"]["schedulingGates"] = [{"name": "grapnel.dev/bench"}]
    job = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": pod}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"failurePolicy": {"maxRestarts": 1},
                     "replicatedJobs": [{"name": "w", "replicas": size, "template": {"spec": job}}]}}


def status_of(cluster, name):
    _, found = cluster.request("GET", f"{GROUP}/namespaces/{NAMESPACE}/jobsets/{name}", timeout=60)
    return found.get("status", {})


def count_jobs(cluster, attempt):
    """Only names are asked for, so that looking costs the API server little."""
    selector = f"jobset.sigs.k8s.io%2Frestart-attempt%3D{attempt}"
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs?labelSelector={selector}&resourceVersion=0"
    connection = connect(cluster)
    try:
        connection.request("GET", path, headers={
            "Authorization": f"Bearer {cluster.token}",
            "Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
        return len(json.loads(connection.getresponse().read())["items"] or [])
    finally:
        connection.close()


def connect(cluster):
    context = ssl.create_default_context(cafile=cluster.ca_file)
    return http.client.HTTPSConnection(cluster.url.removeprefix("https://"), timeout=60,
                                       context=context)


def wait(condition, seconds=900):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "takes too long"
        time.sleep(0.25)


def submit(cluster, body):
    status, answer = cluster.request("POST", f"{GROUP}/namespaces/{NAMESPACE}/jobsets", body,
                                     timeout=60)
    assert status == 201, answer


def bare(cluster, size, connections=16):
    """Seconds in which a program that does nothing else creates as many Jobs."""
    template = jobset("bare", 1)["spec"]["replicatedJobs"][0]["template"]["spec"] | {"suspend": True}
    numbers = iter(range(size))
    lock = threading.Lock()

    def work():
        connection = connect(cluster)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return connection.close()
            body = {"metadata": {"name": f"bare-{number}"}, "spec": template}
            connection.request("POST", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", json.dumps(body),
                               {"Authorization": f"Bearer {cluster.token}",
                                "Content-Type": "application/json"})
            connection.getresponse().read()

    threads = [threading.Thread(target=work) for _ in range(connections)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


def run(cluster, meter, size):
    """Yields (phase, numbers)."""
    meter.start()
    time.sleep(3)
    yield "idle", meter.stop()

    meter.start()
    submit(cluster, jobset("train", size))
    wait(lambda: count_jobs(cluster, 0) >= size)
    numbers = meter.stop()
    yield "create", numbers | {"jobs_per_s": size / numbers["wall_s"]}
    wait(lambda: status_of(cluster, "train").get("terminalState") == "Completed")
    yield "complete", meter.stop()

    # One Job fails, and all are made again.
    submit(cluster, jobset("again", size, held=True))
    wait(lambda: count_jobs(cluster, 0) >= 2 * size)
    wait(lambda: [s["active"] for s in status_of(cluster, "again")["replicatedJobsStatus"]] == [size])
    meter.start()
    fail_one_job(cluster, "again-w-0")
    wait(lambda: count_jobs(cluster, 1) >= size)
    numbers = meter.stop()
    yield "restart", numbers | {"jobs_per_s": size / numbers["wall_s"]}


def fail_one_job(cluster, name):
    """As the Job controller would say it."""
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
    answer = "it never starts"
    for _ in range(200):
        _, job = cluster.request("GET", path)
        if started := job.get("status", {}).get("startTime"):
            job["status"] = {"startTime": started, "failed": 1, "uncountedTerminatedPods": {},
                             "conditions": [{"type": t, "status": "True", "message": "bench",
                                             "reason": "BackoffLimitExceeded",
                                             "lastTransitionTime": started}
                                            for t in ("FailureTarget", "Failed")]}
            status, answer = cluster.request("PUT", path + "/status", job)
            if status == 200:
                return
        time.sleep(0.05)
    raise AssertionError(answer)
