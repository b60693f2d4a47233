"""Objects that several suites use."""


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata},
            "data": data or {}}


def pod(name, command="sleep 1000", **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata},
            "spec": pod_spec(command)}


def pod_spec(command, restart_policy="Never"):
    return {"restartPolicy": restart_policy, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "host", "command": ["sh", "-c", command],
                            "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}]}


def job(name, command, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": {"spec": pod_spec(command)}, **spec}}


def deployment(name, command="sleep 1000", replicas=2, **spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": pod_spec(command, restart_policy="Always")}, **spec}}


def owned(child, owner, **reference):
    """The child with this owner, an object as the server answered it."""
    child["metadata"].setdefault("ownerReferences", []).append({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], **reference})
    return child


def definition(plural, kind, group="stable.example.com", **version):
    """A CustomResourceDefinition of one version, v1."""
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "description": "What is wanted.", "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 3, "description": "How many."},
            "color": {"type": "string"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": schema}, **version}]}}
