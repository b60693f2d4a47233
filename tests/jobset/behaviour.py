"""Pods that behave as a test wants it, the same on kwok's nodes and as real processes.

A behaviour is written down twice: as a script that a real process runs, and as an annotation by
which kwok's stages choose a pod's end.
"""

import yaml

ANNOTATION = "grapnel.dev/test-behaviour"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
JOB_ATTEMPT = "jobset.sigs.k8s.io/job-restart-attempt"
EXIT_CODE = 42

# In words: what the script does is what the stages below do.
SCRIPTS = {
    "succeed": "sleep 0.3",
    "fail": f"sleep 0.3; exit {EXIT_CODE}",
    "run": "sleep 1000",
    "linger": "sleep 4",
    "fail-once": f"sleep 0.3; [ $ATTEMPT != 0 ] || exit {EXIT_CODE}",
    "fail-once-alone": f"sleep 0.3; [ $JOB_ATTEMPT != 0 ] || exit {EXIT_CODE}",
}


def pod_template(behaviour):
    def label(name, key):
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}}}
    environment = [label("ATTEMPT", ATTEMPT)]
    if behaviour == "fail-once-alone":
        environment.append(label("JOB_ATTEMPT", JOB_ATTEMPT))
    return {"metadata": {"annotations": {ANNOTATION: behaviour}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                     "automountServiceAccountToken": False,
                     "containers": [{"name": "main", "image": "none", "env": environment,
                                     "command": ["sh", "-c", SCRIPTS[behaviour]]}]}}


def stages():
    """What kwok does with such pods, as YAML; takes the place of its own `pod-complete`."""
    def label(key, *values, operator="In"):
        return {"key": f'.metadata.labels["{key}"]', "operator": operator, "values": list(values)}
    made = [_end("pod-complete", "succeed", 0),
            _end("pod-fail", "fail", EXIT_CODE),
            _end("pod-complete-late", "linger", 0, delay=4000)]
    for name, key in (("fail-once", ATTEMPT), ("fail-once-alone", JOB_ATTEMPT)):
        made += [_end(f"pod-{name}", name, EXIT_CODE, label(key, "0")),
                 _end(f"pod-{name}-over", name, 0, label(key, "0", operator="NotIn"))]
    # Pods of others, such as an Experiment's.
    made.append(_end("pod-complete-plain", None, 0))
    return yaml.safe_dump_all(made)


def _end(name, behaviour, code, *conditions, delay=300):
    annotation = f'.metadata.annotations["{ANNOTATION}"]'
    chosen = {"key": annotation, "operator": "In", "values": [behaviour]} if behaviour else \
        {"key": annotation, "operator": "DoesNotExist"}
    selector = [{"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                {"key": ".status.phase", "operator": "In", "values": ["Running"]},
                {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]},
                chosen, *conditions]
    status = """{{ $now := Now }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  started: false
  state:
    terminated:
      exitCode: CODE
      finishedAt: {{ $now | Quote }}
      reason: REASON
      startedAt: {{ $now | Quote }}
{{ end }}
phase: PHASE
"""
    words = ("Succeeded", "Completed") if code == 0 else ("Failed", "Error")
    status = status.replace("CODE", str(code)).replace("PHASE", words[0]).replace("REASON", words[1])
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name},
            "spec": {"resourceRef": {"apiGroup": "v1", "kind": "Pod"},
                     "selector": {"matchExpressions": selector},
                     "delay": {"durationMilliseconds": delay},
                     "next": {"statusTemplate": status}}}
