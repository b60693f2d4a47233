"""A JobSet of one-pod Jobs: created, completed, and restarted as a whole."""

import http.client
import json
import ssl
import threading
import time

from jobset.controllers import GROUP, Original, Ours

CONTROLLERS = {"original": Original, "grapnel": Ours}
NAMESPACE = "default"
# By then flow control has shared its seats out to an operator that was just installed, as it has to one
# that has been there: it does so every ten seconds.
REST_S = 12


def jobset(name, size, groups=1, held=False, namespace=NAMESPACE):
    """`size` Jobs in as many ReplicatedJobs as `groups` says. With `held`, its pods are never
    scheduled, so that its Jobs go on for ever."""
    pod = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": "none"}]}}
    if held:
        pod["spec"]["schedulingGates"] = [{"name": "grapnel.dev/bench"}]
    job = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": pod}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"failurePolicy": {"maxRestarts": 1},
                     "replicatedJobs": [
                         {"name": f"w{i or ''}", "replicas": size // groups, "template": {"spec": job}}
                         for i in range(groups)]}}


def jobsets_beside(body):
    return f"{GROUP}/namespaces/{body['metadata']['namespace']}/jobsets"


def status_of(cluster, body):
    path = f"{jobsets_beside(body)}/{body['metadata']['name']}"
    return cluster.request("GET", path, timeout=60)[1].get("status", {})


def active_jobs(cluster, body):
    return sum(s["active"] for s in status_of(cluster, body).get("replicatedJobsStatus", []))


def connect(cluster):
    context = ssl.create_default_context(cafile=cluster.ca_file)
    return http.client.HTTPSConnection(cluster.url.removeprefix("https://"), timeout=60,
                                       context=context)


def wait(condition, pause=0.25, seconds=1800):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "takes too long"
        time.sleep(pause)


def submit(cluster, body):
    status, answer = cluster.request("POST", jobsets_beside(body), body, timeout=60)
    assert status == 201, answer


def bare(cluster, size, connections=64):
    """Yields (phase, seconds) of as many Jobs, such as ours would make, behind the same Service: made
    by a program that does nothing else, and left to themselves."""
    with Ours(cluster):
        submit(cluster, jobset("bare", 1))
        path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
        wait(lambda: cluster.request("GET", f"{path}/bare-w-0")[0] == 200)
        _, job = cluster.request("GET", f"{path}/bare-w-0")
    labels = job["spec"]["template"]["metadata"]["labels"]
    job = json.dumps({
        "metadata": {name: job["metadata"][name] for name in ("name", "labels", "annotations")},
        "spec": job["spec"] | {"selector": None, "template": job["spec"]["template"] | {
            "metadata": {"annotations": job["spec"]["template"]["metadata"]["annotations"],
                         "labels": {k: v for k, v in labels.items() if k.startswith("jobset")}}}}})
    numbers = iter(range(1, size + 1))
    lock = threading.Lock()

    def work():
        connection = connect(cluster)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return connection.close()
            connection.request("POST", path, job.replace("bare-w-0", f"bare-w-{number}"),
                               {"Authorization": f"Bearer {cluster.token}",
                                "Content-Type": "application/json"})
            answer = connection.getresponse()
            assert answer.status == 201, answer.read()
            answer.read()

    threads = [threading.Thread(target=work) for _ in range(connections)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield "create", time.monotonic() - began
    unfinished = f"{path}?fieldSelector=status.successful%3D0&limit=1"
    wait(lambda: not cluster.request("GET", unfinished, timeout=60)[1]["items"], pause=2)
    yield "complete", time.monotonic() - began


def run(cluster, meter, size, groups):
    """Yields (phase, numbers)."""
    size -= size % groups
    meter.start()
    time.sleep(REST_S)
    yield "idle", meter.stop()

    def until(condition, pause=0.25):
        wait(lambda: meter.check() and condition(), pause)

    def creation(count):
        until(lambda: meter.requests() >= size, pause=0.1)
        until(lambda: len(meter.created("jobs")) >= count, pause=0.1)
        numbers = meter.stop(at=meter.created("jobs")[count - 1])
        return numbers | {"jobs_per_s": size / numbers["wall_s"]}

    meter.start()
    train = jobset("train", size, groups)
    submit(cluster, train)
    yield "create", creation(size)
    until(lambda: status_of(cluster, train).get("terminalState") == "Completed")
    yield "complete", meter.stop()

    # One Job fails, and all are made again. In a namespace of its own: for each Job that changes, the
    # Job controller looks through all pods of the namespace, also those that have ended.
    again = jobset("again", size, groups, held=True, namespace="again")
    status, answer = cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "again"}})
    assert status == 201, answer
    submit(cluster, again)
    until(lambda: len(meter.created("jobs")) >= 2 * size)
    until(lambda: active_jobs(cluster, again) == size)
    time.sleep(REST_S)
    meter.start()
    fail_one_job(cluster, again)
    yield "restart", creation(3 * size)


def fail_one_job(cluster, body):
    """As the Job controller would say it."""
    name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}-w-0"
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
