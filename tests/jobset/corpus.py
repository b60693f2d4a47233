"""JobSets to compare controllers with: the original's own examples, and random valid specs."""

import random
import re

import yaml


def examples(module):
    """{name: JobSet} of all that the original's module shows: its samples, and what its design
    documents hold between ```yaml and ```."""
    found = {}
    for path in sorted([*module.glob("config/samples/*.yaml"), *module.glob("keps/*/README.md")]):
        text = path.read_text()
        blocks = [text] if path.suffix == ".yaml" else re.findall(r"```yaml\n(.*?)```", text, re.S)
        for document in (d for block in blocks for d in _documents(block)):
            if (document.get("spec") or {}).get("replicatedJobs"):
                found[f"{path.parent.name.lower()[:30]}-{len(found)}"] = document
    return found


def _documents(block):
    try:
        documents = list(yaml.safe_load_all(block))
    except yaml.YAMLError:  # a sketch, not YAML
        return []
    return [d for d in documents if isinstance(d, dict) and d.get("kind") == "JobSet"
            and str(d.get("apiVersion")).startswith("jobset.x-k8s.io/")]


def random_jobset(seed, strict=False):
    """A valid JobSet that uses any mix of the fields; strict: of those that the original knows by
    default, and none of ours."""
    rng = random.Random(seed)
    names = ["a", "b", "c"][:rng.randint(1, 3)]
    in_order = rng.random() < 0.2
    jobs = [_replicated_job(rng, name, names[:i], in_order) for i, name in enumerate(names)]
    spec = {"replicatedJobs": jobs}
    if in_order:
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    if rng.random() < 0.5:
        spec["network"] = _some(rng, {"enableDNSHostnames": rng.random() < 0.7,
                                      "subdomain": "net", "publishNotReadyAddresses": False})
    if rng.random() < 0.5:
        spec["successPolicy"] = {"operator": rng.choice(["All", "Any"]),
                                 "targetReplicatedJobs": rng.sample(names, rng.randint(0, len(names)))}
    if rng.random() < 0.7:
        spec["failurePolicy"] = _failure_policy(rng, names)
    if rng.random() < 0.2:
        spec["suspend"] = True
    if rng.random() < 0.4:
        target = rng.choice(jobs)
        spec["coordinator"] = _some(rng, {
            "jobIndex": rng.randrange(max(target.get("replicas", 1), 1)),
            "podIndex": rng.randrange(target["template"]["spec"]["completions"]),
        }) | {"replicatedJob": target["name"]}
        if target.get("replicas", 1) == 0:
            del spec["coordinator"]
    if rng.random() < 0.2:
        spec["ttlSecondsAfterFinished"] = 3600
    if rng.random() < 0.2:
        _add_claim(rng, spec)
    metadata = {"name": "train", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    annotations = {}
    if rng.random() < 0.3:
        annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] = "rack"
        if rng.random() < 0.5:
            annotations["alpha.jobset.sigs.k8s.io/node-selector"] = "true"
    if strict:
        for rule in spec.get("failurePolicy", {}).get("rules", []):
            rule["action"] = rule["action"].replace("RestartJobAnd", "RestartJobSetAnd")
            if rule["action"] == "RestartJob":
                rule["action"] = "RestartJobSet"
    else:
        # A JobSet of ours makes its Jobs when it is resumed; with this, as the original does.
        annotations["grapnel.dev/create-suspended-jobs"] = "true"
    metadata["annotations"] = annotations
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata,
            "spec": spec}


def restart_job():
    """Each failed Job is made again alone, as often as the whole may be restarted."""
    jobset = random_jobset(0)
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    jobset["spec"] = {
        "failurePolicy": {"maxRestarts": 3, "rules": [{"name": "alone", "action": "RestartJob"}]},
        "replicatedJobs": [{"name": "w", "replicas": 3, "template": {"spec": {
            "parallelism": 1, "completions": 1, "template": pod}}}]}
    return jobset


def _some(rng, members):
    return {k: v for k, v in members.items() if rng.random() < 0.6}


def _replicated_job(rng, name, earlier, in_order):
    pods = rng.randint(1, 3)
    pod_spec = {"containers": [{"name": "main", "image": "busybox",
                                "ports": [{"containerPort": 80}]}]}
    pod_spec |= _some(rng, {"restartPolicy": "Never", "nodeSelector": {"pool": "x"},
                            "tolerations": [{"key": "t", "operator": "Exists"}],
                            "terminationGracePeriodSeconds": 5, "hostNetwork": True})
    template = {"spec": pod_spec}
    if rng.random() < 0.5:
        template["metadata"] = _some(rng, {"labels": {"app": "x"}, "annotations": {"note": "y"}})
    job_spec = {"parallelism": pods, "completions": pods, "template": template}
    job_spec |= _some(rng, {"backoffLimit": rng.randint(0, 6), "activeDeadlineSeconds": 600,
                            "completionMode": "Indexed"})
    job = {"name": name, "template": {"spec": job_spec}}
    if rng.random() < 0.4:
        job["template"]["metadata"] = _some(rng, {
            "labels": {"team": "z"},
            "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone", "k": "v"}})
    job |= _some(rng, {"replicas": rng.randint(1, 4), "groupName": rng.choice(["g", "h"])})
    if earlier and not in_order and rng.random() < 0.3:
        job["dependsOn"] = [{"name": rng.choice(earlier),
                             "status": rng.choice(["Ready", "Complete"])}]
    return job


def _failure_policy(rng, names):
    policy = _some(rng, {"maxRestarts": rng.randint(0, 3),
                         "restartStrategy": rng.choice(["Recreate", "BlockingRecreate"])})
    if rng.random() < 0.6:
        policy["rules"] = [_rule(rng, names, i) for i in range(rng.randint(1, 3))]
    return policy


def _rule(rng, names, index):
    rule = {"action": rng.choice(["FailJobSet", "RestartJobSet",
                                  "RestartJobSetAndIgnoreMaxRestarts", "RestartJob",
                                  "RestartJobAndIgnoreMaxRestarts"]),
            "name": f"rule{index}"}
    return rule | _some(rng, {
        "onJobFailureReasons": rng.sample(["BackoffLimitExceeded", "DeadlineExceeded",
                                           "PodFailurePolicy"], 2),
        "onJobFailureMessagePatterns": [rng.choice(["exit code 4[0-9]", "^never$", ""])],
        "targetReplicatedJobs": rng.sample(names, 1)})


def _add_claim(rng, spec):
    policy = {"templates": [{"metadata": {"name": "data", "labels": {"l": "1"}},
                             "spec": {"accessModes": ["ReadWriteOnce"],
                                      "resources": {"requests": {"storage": "1Gi"}}}}]}
    if rng.random() < 0.5:
        policy["retentionPolicy"] = {"whenDeleted": rng.choice(["Delete", "Retain"])}
    spec["volumeClaimPolicies"] = [policy]
    container = rng.choice(spec["replicatedJobs"])["template"]["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]


# ---- specs with a fault

def _first(spec):
    return spec["replicatedJobs"][0]


def _rules(spec):
    policy = spec.setdefault("failurePolicy", {})
    return policy.setdefault("rules", [{"action": "RestartJobSet", "name": "only"}])


FAULTS = [
    lambda s, r: s.setdefault("network", {}).update(subdomain=r.choice(["Net", "a.b", "1a", "a" * 64])),
    lambda s, r: s.update(managedBy=r.choice(["kueue", "a/", "/b", "a.io/" + "x" * 60, "A/b"])),
    lambda s, r: _first(s).update(name=r.choice(["A", "a_b", "x" * 60, "a" * 52])),
    lambda s, r: _first(s).update(groupName=r.choice(["G", "g" * 64, "1g"])),
    lambda s, r: _first(s).update(replicas=2_000_000_000),
    lambda s, r: s.update(coordinator={"replicatedJob": r.choice(["nobody", "a"]),
                                       "jobIndex": r.choice([0, 9, -1]),
                                       "podIndex": r.choice([0, 9, -1])}),
    lambda s, r: s.update(successPolicy={"operator": "All", "targetReplicatedJobs": ["nobody"]}),
    lambda s, r: s.update(successPolicy={"operator": "Some"}),
    lambda s, r: _rules(s)[0].update(targetReplicatedJobs=["nobody"]),
    lambda s, r: _rules(s)[0].update(onJobFailureReasons=["Boredom"]),
    lambda s, r: _rules(s)[0].update(name=r.choice(["a-b", "1", "x" * 129, "a,"])),
    lambda s, r: _rules(s).append(dict(_rules(s)[0])),
    lambda s, r: _rules(s)[0].update(action="Nothing"),
    lambda s, r: s.update(failurePolicy={"rules": [{"action": "RestartJob", "name": "r"}]}) or
    _first(s).update(replicas=1025),
    lambda s, r: s.update(failurePolicy={"restartStrategy": r.choice(["InPlaceRestart", "Never"])}),
    lambda s, r: _first(s).update(dependsOn=[{"name": "b", "status": "Ready"}]),
    lambda s, r: s["replicatedJobs"][-1].update(dependsOn=[{"name": "z", "status": "Ready"}]),
    lambda s, r: s["replicatedJobs"].append(dict(_first(s))),
    lambda s, r: s.update(ttlSecondsAfterFinished=-1),
    lambda s, r: s.update(volumeClaimPolicies=[{"templates": [{"metadata": {"name": r.choice(
        ["unmounted", "Bad", "x" * 60])}, "spec": {}}]}]),
    lambda s, r: _first(s)["template"]["spec"].update(parallelism=r.choice(["two", 1.5])),
    lambda s, r: _first(s).pop("template"),
    lambda s, r: _first(s).pop("name"),
    lambda s, r: s.update(replicatedJobs="none"),
    lambda s, r: s.update(suspend="yes"),
    lambda s, r: None,
]


def broken_jobset(seed, strict=False):
    """A random JobSet with one of the known faults, or now and then with none."""
    rng = random.Random(seed)
    jobset = random_jobset(seed, strict)
    FAULTS[seed % len(FAULTS)](jobset["spec"], rng)
    return jobset
