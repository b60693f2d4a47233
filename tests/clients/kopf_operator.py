"""An operator as people write them with kopf: for each Bowl a ConfigMap, and a finalizer."""

import os

import kopf
import kubernetes

GROUP = os.environ["BOWL_GROUP"]


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = True
    kubernetes.config.load_kube_config()


@kopf.on.create(GROUP, "v1", "bowls")
def fill(spec, name, namespace, body, patch, **_):
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-content"},
             "data": {"size": str(spec["size"])}}
    kopf.adopt(child)
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, child)
    kopf.info(body, reason="Filled", message=f"{name} is full")
    patch.status["phase"] = "Full"


@kopf.on.update(GROUP, "v1", "bowls", field="spec.size")
def refill(new, name, namespace, **_):
    kubernetes.client.CoreV1Api().patch_namespaced_config_map(
        f"{name}-content", namespace, {"data": {"size": str(new)}})


@kopf.on.delete(GROUP, "v1", "bowls")
def empty(name, namespace, **_):
    kubernetes.client.CoreV1Api().create_namespaced_config_map(
        namespace, {"metadata": {"name": f"{name}-is-gone"}})
