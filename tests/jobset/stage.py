"""A cluster in which tests play the Job controller and the garbage collector themselves.

Nothing runs but the API server and the controller under test, so that each step is decided by the
test alone: Jobs become ready, succeed or fail when it says so, and what is deleted in the
foreground goes when it says so.
"""

import copy
import json
import random
import time

from jobset.controllers import GROUP

NOW = "2026-01-01T00:00:00Z"
REASONS = ["BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"]
MESSAGES = ["Job has reached the specified backoff limit", "exit code 42", "exit code 1"]


class Stage:
    def __init__(self, cluster, quiet=1.0):
        self.cluster = cluster
        self.quiet = quiet

    # ---- objects

    def list(self, kind, namespace=None):
        prefix = {"jobsets": GROUP, "jobs": "/apis/batch/v1", "events": "/apis/events.k8s.io/v1"}
        base = prefix.get(kind, "/api/v1")
        path = f"{base}/namespaces/{namespace}/{kind}" if namespace else f"{base}/{kind}"
        status, answer = self.cluster.request("GET", path, timeout=60)
        assert status == 200, answer
        return answer["items"]

    def create_namespace(self, name):
        self.cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def submit(self, namespace, jobset):
        """(HTTP status, answer)"""
        body = copy.deepcopy(jobset)
        body["metadata"]["namespace"] = namespace
        return self.cluster.request("POST", f"{GROUP}/namespaces/{namespace}/jobsets", body,
                                    timeout=60)

    def clear(self, namespaces):
        """Everything in these namespaces goes; no garbage collector would do it."""
        for kind, base in (("jobsets", GROUP), ("jobs", "/apis/batch/v1"), ("services", "/api/v1"),
                           ("persistentvolumeclaims", "/api/v1"), ("events", "/apis/events.k8s.io/v1")):
            for item in self.list(kind):
                meta = item["metadata"]
                if meta["namespace"] not in namespaces:
                    continue
                path = f"{base}/namespaces/{meta['namespace']}/{kind}/{meta['name']}"
                self.cluster.request("DELETE", path, {"propagationPolicy": "Background"})
                if meta.get("finalizers"):
                    self.change(path, lambda found: found["metadata"].update(finalizers=[]))

    def change(self, path, edit, subresource=""):
        """Reads, edits and writes until no other writer came between."""
        for _ in range(50):
            status, found = self.cluster.request("GET", path)
            if status == 404:
                return
            edit(found)
            status, answer = self.cluster.request("PUT", path + subresource, found)
            if status in (200, 404):
                return
            assert status == 409, (path, answer)
        raise AssertionError(f"{path}: always in conflict")

    @staticmethod
    def job_path(job):
        meta = job["metadata"]
        return f"/apis/batch/v1/namespaces/{meta['namespace']}/jobs/{meta['name']}"

    # ---- what the Job controller and the garbage collector do

    def make_ready(self, job):
        def edit(found):
            pods = found["spec"]["parallelism"]
            found["status"] = {"startTime": NOW, "active": pods, "ready": pods,
                               "uncountedTerminatedPods": {}}
        self.change(self.job_path(job), edit, "/status")

    def succeed(self, job):
        def edit(found):
            done = [{"type": t, "status": "True", "reason": "CompletionsReached",
                     "message": "Reached expected number of succeeded pods",
                     "lastTransitionTime": NOW, "lastProbeTime": NOW}
                    for t in ("SuccessCriteriaMet", "Complete")]
            count = found["spec"].get("completions", 1)
            found["status"] = {"startTime": NOW, "completionTime": NOW, "succeeded": count,
                               "completedIndexes": "0" if count == 1 else f"0-{count - 1}",
                               "uncountedTerminatedPods": {}, "conditions": done}
        self.change(self.job_path(job), edit, "/status")

    def fail(self, job, reason, message, when=NOW):
        def edit(found):
            failed = [{"type": t, "status": "True", "reason": reason, "message": message,
                       "lastTransitionTime": when, "lastProbeTime": when}
                      for t in ("FailureTarget", "Failed")]
            found["status"] = {"startTime": NOW, "failed": 1, "uncountedTerminatedPods": {},
                               "conditions": failed}
        self.change(self.job_path(job), edit, "/status")

    def finish_deletions(self):
        """What is in foreground deletion has no dependents here: it goes."""
        def edit(found):
            found["metadata"]["finalizers"] = [f for f in found["metadata"].get("finalizers", [])
                                               if f != "foregroundDeletion"]
        for job in self.list("jobs"):
            if "deletionTimestamp" in job["metadata"]:
                self.change(self.job_path(job), edit)

    # ---- time

    def settle(self, limit=180):
        """Waits until nothing has changed for a while."""
        end = time.monotonic() + limit
        seen, since = None, time.monotonic()
        while time.monotonic() - since < self.quiet:
            assert time.monotonic() < end, "does not come to rest"
            self.finish_deletions()
            now = [(o["metadata"]["uid"], o["metadata"]["resourceVersion"])
                   for kind in ("jobsets", "jobs", "services") for o in self.list(kind)]
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(0.15)


def is_finished(job):
    return any(c["type"] in ("Complete", "Failed") for c in job.get("status", {}).get("conditions", []))


class Play:
    """What happens to one JobSet, step by step: first its script, then what its seed decides from
    what is there."""

    # Each as often as its number says.
    ACTS = {"ready": 40, "succeed": 25, "fail": 20, "suspend": 8, "resume": 15, "scale": 5}

    def __init__(self, stage, namespace, seed, script=(), strict=False):
        self.stage = stage
        self.script = list(script)
        # Behind a gate of the original.
        self.acts = {a: n for a, n in self.ACTS.items() if not (strict and a == "scale")}
        self.namespace = namespace
        self.rng = random.Random(seed)
        self.told = []

    def step(self):
        jobs = sorted((j for j in self.stage.list("jobs", self.namespace)
                       if not is_finished(j) and "deletionTimestamp" not in j["metadata"]),
                      key=lambda j: j["metadata"]["name"])
        running = [j for j in jobs if not j["spec"].get("suspend")]
        act = self.script.pop(0) if self.script else self.rng.choices(
            list(self.acts), list(self.acts.values()))[0]
        if act in ("suspend", "resume"):
            self._suspend(act == "suspend")
        elif act == "scale":
            self._scale()
        elif act == "ready":
            for job in running:
                self.stage.make_ready(job)
        elif act == "succeed-all":
            for job in running:
                self.stage.succeed(job)
        elif running:
            for job in self.rng.sample(running, self.rng.randint(1, len(running))):
                if act == "succeed":
                    self.stage.succeed(job)
                else:
                    self.stage.fail(job, self.rng.choice(REASONS), self.rng.choice(MESSAGES),
                                    f"2026-01-01T00:00:{self.rng.randint(10, 59)}Z")
                if act == "fail" or self._one_success_is_enough():
                    break  # what came second would come too late, or not
        self.told.append((act, [j["metadata"]["name"] for j in running]))

    def _one_success_is_enough(self):
        jobsets = self.stage.list("jobsets", self.namespace)
        return jobsets and jobsets[0]["spec"].get("successPolicy", {}).get("operator") == "Any"

    def _path(self):
        jobsets = self.stage.list("jobsets", self.namespace)
        return jobsets and f"{GROUP}/namespaces/{self.namespace}/jobsets/{jobsets[0]['metadata']['name']}"

    def _suspend(self, on):
        if path := self._path():
            self.stage.change(path, lambda jobset: jobset["spec"].update(suspend=on))

    def _scale(self):
        count = self.rng.randint(1, 4)

        def edit(jobset):
            if jobset.get("status", {}).get("terminalState"):
                return
            for replicated in jobset["spec"].get("replicatedJobs", []):
                spec = replicated["template"]["spec"]
                if spec.get("completionMode", "Indexed") == "Indexed" and "coordinator" not in jobset["spec"]:
                    spec["parallelism"] = spec["completions"] = count
        if path := self._path():
            self.stage.change(path, edit)


# ---- what is compared

def snapshot(stage, namespace, strict=False):
    """Everything a user can see of it, without what differs from run to run; unless strict, also
    without what is meant to differ."""
    found = {}
    uids = {}
    for kind in ("jobsets", "jobs", "services", "persistentvolumeclaims"):
        for item in stage.list(kind, namespace):
            name = f"{kind}/{item['metadata']['name']}"
            uids[item["metadata"]["uid"]] = name
            found[name] = _plain(kind, item, strict)
    text = json.dumps(found, sort_keys=True)
    for uid, name in uids.items():
        text = text.replace(uid, f"<uid of {name}>")
    result = json.loads(text)
    # A controller that reads an old cache creates again what it has created; that is no news.
    result["events"] = sorted({(e["type"], e["reason"], e.get("note", ""))
                               for e in stage.list("events", namespace)
                               if e["regarding"]["kind"] == "JobSet"
                               and not e.get("note", "").endswith("already exists")})
    return json.loads(json.dumps(result))


def _plain(kind, item, strict):
    meta = item["metadata"]
    annotations = {k: v for k, v in meta.get("annotations", {}).items()
                   if k != "batch.kubernetes.io/job-tracking"}
    plain = {"labels": meta.get("labels", {}), "annotations": annotations,
             "owners": meta.get("ownerReferences", []), "spec": item.get("spec", {}),
             "deleting": "deletionTimestamp" in meta}
    if kind == "jobsets":
        plain["spec"] = _as_go_writes_it(plain["spec"])
        plain["status"] = _without_times(item.get("status", {}))
    if kind == "jobs":
        # The original merges them in the order of a map, which is another every time.
        tolerations = plain["spec"]["template"]["spec"].get("tolerations", [])
        tolerations.sort(key=lambda toleration: json.dumps(toleration, sort_keys=True))
    return plain if strict else _without_what_is_meant(kind, plain, item)


def _without_what_is_meant(kind, plain, item):
    if kind == "jobsets":
        plain["spec"] = _plain_spec(plain["spec"])
        for key in ("conditions", "replicatedJobsStatus"):
            if key in plain["status"]:
                plain["status"][key].sort(key=lambda entry: entry.get("name", entry.get("type")))
    if kind == "jobs":
        if not _restarts_alone(item):
            _forget(plain, "jobset.sigs.k8s.io/job-restart-attempt")
        # The original's webhook sets it, when pods are made.
        _forget(plain, "jobset.sigs.k8s.io/priority")
    return plain


def _restarts_alone(job):
    return job["metadata"]["labels"].get("jobset.sigs.k8s.io/job-restart-attempt", "0") != "0"


def _forget(value, key):
    if isinstance(value, dict):
        value.pop(key, None)
        for member in value.values():
            _forget(member, key)
    elif isinstance(value, list):
        for element in value:
            _forget(element, key)


def _without_times(status):
    status = copy.deepcopy(status)
    for condition in status.get("conditions", []):
        condition.pop("lastTransitionTime", None)
    return status


def _without_empty(value):
    if isinstance(value, dict):
        plain = {k: _without_empty(v) for k, v in value.items()}
        return {k: v for k, v in plain.items() if v not in ({}, None)}
    return [_without_empty(v) for v in value] if isinstance(value, list) else value


def _as_go_writes_it(spec):
    """The original's webhook sends the whole object back: its encoder writes empty objects and nulls
    where nothing was, and amounts as text. None of it means anything else."""
    spec = _without_empty(spec)
    for replicated in spec.get("replicatedJobs", []):
        for container in _containers(replicated):
            for amounts in container.get("resources", {}).values():
                for name in amounts:
                    amounts[name] = str(amounts[name])
    return spec


def _containers(replicated):
    pod = replicated["template"].get("spec", {}).get("template", {}).get("spec", {})
    return pod.get("containers", []) + pod.get("initContainers", [])


def _plain_spec(spec):
    """The original's schema knows all of a pod and sets the default of a port's protocol; a pod
    template is carried through whole by ours, and its defaults are set in the Job."""
    for replicated in spec.get("replicatedJobs", []):
        for container in _containers(replicated):
            for port in container.get("ports", []):
                if port.get("protocol") == "TCP":
                    del port["protocol"]
    # Without our webhook, a rule without a name stays so; it is known by its place all the same.
    for index, rule in enumerate(spec.get("failurePolicy", {}).get("rules", [])):
        rule.setdefault("name", f"failurePolicyRule{index}")
    for policy in spec.get("volumeClaimPolicies", []):
        for claim in policy.get("templates", []):
            claim.pop("status", None)
    return spec


def differences(a, b, path=""):
    """Lines that say where two snapshots differ."""
    if type(a) is not type(b):
        return [f"{path}: {a!r} and {b!r}"]
    if isinstance(a, dict):
        lines = []
        for key in sorted(a.keys() | b.keys()):
            if key not in a or key not in b:
                lines.append(f"{path}.{key}: only in the {'second' if key not in a else 'first'}: "
                             f"{json.dumps(a.get(key, b.get(key)))[:300]}")
            else:
                lines += differences(a[key], b[key], f"{path}.{key}")
        return lines
    if isinstance(a, list) and len(a) == len(b):
        return [line for i, (x, y) in enumerate(zip(a, b)) for line in differences(x, y, f"{path}[{i}]")]
    return [] if a == b else [f"{path}: {json.dumps(a)[:400]} and {json.dumps(b)[:400]}"]
