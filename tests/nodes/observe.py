"""What can be seen of a pod, with what differs from cluster to cluster named instead of shown."""

import re

from pods.cluster import Api

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
GENERATED = re.compile(r"kube-api-access-\w+")
ENDPOINT = re.compile(r"[0-9a-f]{64}")


def fields_of(cluster: Api, pod):
    """{name: value} of all that is to agree."""
    status = pod["status"]
    found = {"phase": status.get("phase"), "reason": status.get("reason"), "message": status.get("message"),
             "quality": status.get("qosClass"),
             "conditions": [f"{c['type']}={c['status']} {c.get('reason', '')}".strip()
                            for c in status.get("conditions", [])],
             "addresses": [len(status.get("podIPs", [])), len(status.get("hostIPs", []))],
             "fields": sorted(set(status) - {"reason", "message"})}
    for condition in status.get("conditions", []):
        found[f"conditions.{condition['type']}.message"] = condition.get("message")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(kind, []):
            found.update({f"{one['name']}.{key}": value for key, value in _container(one).items()})
            found.update({f"{one['name']}.{key}": value for key, value in _printed(cluster, pod, one).items()})
    names = _names(cluster, pod)
    return {key: _named(value, names) for key, value in found.items() if value is not None}


def _container(status):
    shown = {"ready": status["ready"], "started": status.get("started"), "restarts": status["restartCount"],
             "image": status["image"], "fields": sorted(status), "has-run": bool(status.get("containerID"))}
    for which in ("state", "lastState"):
        for kind, details in status.get(which, {}).items():
            shown[which] = kind
            for key, value in details.items():
                is_time = key in ("startedAt", "finishedAt", "containerID")
                shown[f"{which}.{key}"] = bool(value) if is_time else value
    return shown


def _printed(cluster, pod, status):
    """`key=value` lines by their keys, other lines by their number."""
    if not status.get("containerID"):
        return {}
    text = cluster.output(pod["metadata"]["name"], status["name"])
    shown = {"log.ends-with-newline": text.endswith("\n") if text else None}
    rest = []
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[\w./-]{1,80}", key) and f"says.{key}" not in shown:
            shown[f"says.{key}"] = value
        else:
            rest.append(line if len(line) < 200 else f"{line[:20]}… {len(line)} characters")
    if rest:
        shown["lines"] = rest
    return shown


def _names(cluster, pod):
    """[(text, name)] of what another cluster calls otherwise."""
    status = pod["status"]
    names = [(pod["metadata"]["uid"], "<uid>"), (status.get("podIP"), "<pod address>"),
             (cluster.dns, "<dns>"), (pod["spec"].get("nodeName"), "<node>"), (status.get("hostIP"), "<node address>")]
    _, services = cluster.request("GET", "/api/v1/namespaces/default/services")
    names += [(s["spec"].get("clusterIP"), f"<address of {s['metadata']['name']}>") for s in services["items"]
              if s["spec"].get("clusterIP") not in (None, "None")]
    return sorted(((text, name) for text, name in names if text), key=lambda pair: -len(pair[0]))


def _named(value, names):
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if not isinstance(value, str):
        return value
    for text, name in names:
        value = re.sub(rf"(?<![\w.]){re.escape(text)}(?![\w]|\.\d)", name, value)
    value = TIME.sub("<time>", value)
    return GENERATED.sub("kube-api-access-<name>", ENDPOINT.sub("<id>", value))
