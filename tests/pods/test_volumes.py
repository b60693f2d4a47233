"""Every kind of volume, at its mount path."""

import base64
import json
import os
import pathlib
import tempfile
import time

import pytest

from .cluster import condition, config_map, container, pod, secret


def mount(name, path, **fields):
    return {"name": name, "mountPath": path, **fields}


def test_an_empty_dir_is_shared_by_the_containers_of_a_pod(cluster, name):
    thing = pod(name, "cat /data/word; ls -A /data | wc -l", volumes=[{"name": "v", "emptyDir": {}}],
                volumeMounts=[mount("v", "/data")])
    thing["spec"]["initContainers"] = [container("ls -A /in | wc -l > /in/count; echo sesame > /in/word", "first",
                                                 volumeMounts=[mount("v", "/in")])]
    assert cluster.run(thing) == "sesame\n2\n"


def test_an_empty_dir_outlives_a_restart(cluster, name):
    assert_script = "echo x >> /data/runs; [ $(wc -l < /data/runs) = 2 ] || exit 1; [ ! -e /opt/mark ] || exit 3; echo ok"
    cluster.create(pod(name, assert_script + "; touch /opt/mark", restart="OnFailure",
                       volumes=[{"name": "v", "emptyDir": {}}], volumeMounts=[mount("v", "/data")]))
    assert cluster.ends(name)["status"]["phase"] == "Succeeded"


def test_memory_of_a_size(cluster, name):
    out = cluster.run(pod(name, """
stat -f -c %T /mem; df -k --output=size /mem /dev/shm | grep -v K
dd if=/dev/zero of=/mem/big bs=1M count=32 2>&1 | grep -c 'No space'""",
                          volumes=[{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
                                   {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "128Mi"}}],
                          volumeMounts=[mount("m", "/mem"), mount("shm", "/dev/shm")]))
    assert out.split() == ["tmpfs", "16384", "131072", "1"]


def test_memory_that_containers_share(cluster, name):
    thing = pod(name, "stat -f -c %T /mem; cat /mem/word", restart="Never",
                volumes=[{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
                volumeMounts=[mount("m", "/mem")])
    thing["spec"]["initContainers"] = [container("echo sesame > /m/word", "first", volumeMounts=[mount("m", "/m")])]
    assert cluster.run(thing) == "tmpfs\nsesame\n"


def test_shared_memory_is_the_pods_own(cluster, name):
    out = cluster.run(pod(name, "df -k --output=size /dev/shm | tail -1; ls -A /dev/shm | wc -l; touch /dev/shm/x"))
    assert out.split() == ["65536", "0"]


def test_a_host_path(cluster, name):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        pathlib.Path(folder, "in").write_text("from the host\n")
        out = cluster.run(pod(name, "cat /h/in; echo from a pod > /h/out; touch /ro/x 2>&1 | grep -c 'Read-only'",
                              volumes=[{"name": "h", "hostPath": {"path": folder, "type": "Directory"}},
                                       {"name": "sub", "hostPath": {"path": f"{folder}/new/er", "type": "DirectoryOrCreate"}}],
                              volumeMounts=[mount("h", "/h"), mount("h", "/ro", readOnly=True), mount("sub", "/s")]))
        assert out == "from the host\n1\n"
        assert pathlib.Path(folder, "out").read_text() == "from a pod\n"
        assert pathlib.Path(folder, "new", "er").is_dir()


def test_a_host_path_that_is_not_what_was_said(cluster, name):
    cluster.create(pod(name, "true", volumes=[{"name": "h", "hostPath": {"path": "/etc/passwd", "type": "Directory"}}],
                       volumeMounts=[mount("h", "/h")]))
    told = cluster.wait(lambda: [e for e in cluster.events(name) if e["reason"] == "FailedMount"], "an event")
    assert "hostPath type check failed: /etc/passwd is not a" in (told[0].get("message") or told[0].get("note"))
    cluster.delete("Pod", name)


def test_files_with_modes_items_and_sub_paths(cluster, name):
    cluster.create(config_map(name, {"a": "1\n", "b": "2\n"}), secret(name, {"word": "sesame\n"}))
    out = cluster.run(pod(name, """
ls /all | tr '\\n' ' '; cat /all/a
stat -L -c %a /all/a /some/deep/er /secret/word
ls /some; cat /some/deep/er
cat /one/file; ls /one | tr '\\n' ' '
touch /all/x 2>&1 | grep -c Read-only""", volumes=[
        {"name": "all", "configMap": {"name": name}},
        {"name": "some", "configMap": {"name": name, "items": [{"key": "b", "path": "deep/er", "mode": 0o600}]}},
        {"name": "secret", "secret": {"secretName": name, "defaultMode": 0o400}},
        {"name": "no", "configMap": {"name": "nowhere", "optional": True}}],
        volumeMounts=[mount("all", "/all"), mount("some", "/some"), mount("secret", "/secret"), mount("no", "/no"),
                      mount("all", "/one/file", subPath="a")]))
    assert out.splitlines() == ["a b 1", "644", "600", "400", "deep", "2", "1", "file 1"]


def test_projected_volumes_and_tokens(cluster, name):
    cluster.create(config_map(name, {"a": "1\n"}), secret(name, {"word": "sesame\n"}))
    out = cluster.run(pod(name, """
cat /p/a /p/word /p/labels /p/limit; echo
cat /p/token; echo
cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo
ls /var/run/secrets/kubernetes.io/serviceaccount | tr '\\n' ' '""", labels={"x": "y"},
                          resources={"limits": {"memory": "64Mi"}}, spec={"serviceAccountName": "default"},
                          volumes=[{"name": "p", "projected": {"sources": [
                              {"configMap": {"name": name}}, {"secret": {"name": name}},
                              {"downwardAPI": {"items": [
                                  {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                                  {"path": "limit", "resourceFieldRef": {"containerName": "main",
                                                                         "resource": "limits.memory",
                                                                         "divisor": "1Mi"}}]}},
                              {"serviceAccountToken": {"path": "token", "audience": "me",
                                                       "expirationSeconds": 600}}]}}],
                          volumeMounts=[mount("p", "/p")]))
    lines = out.splitlines()
    assert lines[:2] == ["1", "sesame"]
    assert lines[2] == 'x="y"64'
    assert len(lines[3]) > 20
    assert lines[4:] == ["default", "ca.crt namespace token "]


def test_a_claim_outlives_its_pods(cluster, name):
    cluster.create(claim(name))
    volume = {"name": "c", "persistentVolumeClaim": {"claimName": name}}
    assert cluster.run(pod(f"{name}-a", "echo kept > /c/file; mkdir -p /c/sub", volumes=[volume],
                           volumeMounts=[mount("c", "/c")])) == ""
    cluster.delete("Pod", f"{name}-a")
    cluster.gone(f"{name}-a")
    assert cluster.run(pod(f"{name}-b", "cat /c/file; touch /s/x", volumes=[volume],
                           volumeMounts=[mount("c", "/c"), mount("c", "/s", subPath="sub")])) == "kept\n"
    assert cluster.run(pod(f"{name}-c", "ls /c/sub", volumes=[volume], volumeMounts=[mount("c", "/c")])) == "x\n"


def claim(name, **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}}


@pytest.mark.only("root", "user")  # elsewhere that is a provisioner's affair
def test_a_claim_is_bound_at_once_and_its_files_go_with_it(cluster, name):
    cluster.create(claim(name, storageClassName="of-the-cluster"))
    cluster.wait(lambda: cluster.get("PersistentVolumeClaim", name)["status"]["phase"] == "Bound", "it is bound")
    bound = cluster.get("PersistentVolumeClaim", name)
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    volume_name = f"pvc-{bound['metadata']['uid']}"
    assert bound["spec"]["volumeName"] == volume_name
    row = cluster.kubectl("get", "pvc", name, "--no-headers").stdout.split()
    assert row[:6] == [name, "Bound", volume_name, "1Gi", "RWO", "of-the-cluster"]
    made = cluster.get("PersistentVolume", volume_name)
    assert made["status"]["phase"] == "Bound" and made["spec"]["claimRef"]["name"] == name
    folder = pathlib.Path(made["spec"]["hostPath"]["path"])

    cluster.create(pod(name, "mkdir /c/deep; echo x > /c/deep/file; chmod 0 /c/deep; sleep 1000",
                       volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": name}}],
                       volumeMounts=[mount("c", "/c")]))
    cluster.phase(name, "Running")
    cluster.wait(lambda: (folder / "deep").exists(), "files are where the volume says")
    cluster.delete("PersistentVolumeClaim", name)
    time.sleep(1)
    held = cluster.get("PersistentVolumeClaim", name)
    assert held["metadata"]["deletionTimestamp"] and held["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (folder / "deep").exists(), "a pod uses it"

    late = f"{name}-late"
    cluster.create(pod(late, "true", volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": name}}]))
    cluster.wait_for_pod(late, lambda p: "is being deleted" in json.dumps(p["status"]), "is told why it waits")
    cluster.delete("Pod", late)
    cluster.delete("Pod", name)
    cluster.wait(lambda: cluster.get("PersistentVolumeClaim", name) is None, "the claim is gone")
    cluster.wait(lambda: cluster.get("PersistentVolume", volume_name) is None, "the volume is gone")
    cluster.wait(lambda: not folder.exists(), "the files are gone")


def test_a_pod_waits_for_its_claim(cluster, name):
    cluster.create(pod(name, "echo here > /c/x; cat /c/x", volumeMounts=[mount("c", "/c")],
                       volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": name}}]))
    waiting = cluster.wait_for_pod(name, lambda p: condition(p, "PodScheduled") == "False", "waits")
    message = next(c["message"] for c in waiting["status"]["conditions"] if c["type"] == "PodScheduled")
    assert message.startswith(f'0/1 nodes are available: persistentvolumeclaim "{name}" not found.')
    cluster.create(claim(name))
    assert cluster.ends(name)["status"]["phase"] == "Succeeded"
    assert cluster.output(name) == "here\n"


def test_a_claim_takes_a_volume_that_somebody_made(cluster, name):
    """With its directory, which stays: the volume is only released."""
    with tempfile.TemporaryDirectory(prefix="grapnel-volume-") as folder:
        os.chmod(folder, 0o777)
        pathlib.Path(folder, "data").write_text("of the host\n")
        volume = f"{name}-{'root' if cluster.is_root else 'user'}"
        cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
                        "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                                 "storageClassName": "manual", "hostPath": {"path": folder}}})
        cluster.create(claim(name, storageClassName="manual"))
        assert cluster.run(pod(name, "cat /c/data", volumeMounts=[mount("c", "/c")],
                               volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": name}}])) == "of the host\n"
        bound = cluster.get("PersistentVolumeClaim", name)
        assert bound["spec"]["volumeName"] == volume and bound["status"]["capacity"] == {"storage": "5Gi"}
        cluster.delete("Pod", name)
        cluster.gone(name)
        cluster.delete("PersistentVolumeClaim", name)
        cluster.wait(lambda: cluster.get("PersistentVolume", volume)["status"]["phase"] == "Released", "it is released")
        assert pathlib.Path(folder, "data").exists()
        cluster.delete("PersistentVolume", volume)


def test_files_follow_their_source(cluster, name):
    cluster.create(config_map(name, {"a": "old\n"}), secret(name, {"b": "old\n"}))
    cluster.create(pod(name, """
until grep -q new /m/a && grep -q new /s/b && grep -q 2 /d/labels; do sleep 0.1; done; ls /m; cat /fixed""",
                       labels={"v": "1"},
                       volumes=[{"name": "m", "configMap": {"name": name}}, {"name": "s", "secret": {"secretName": name}},
                                {"name": "d", "downwardAPI": {"items": [
                                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}],
                       volumeMounts=[mount("m", "/m"), mount("s", "/s"), mount("d", "/d"),
                                     mount("m", "/fixed", subPath="a")]))
    cluster.phase(name, "Running")
    cluster.patch("ConfigMap", name, {"data": {"a": "new\n", "c": "more\n"}})
    cluster.patch("Secret", name, {"data": {"b": base64.b64encode(b"new\n").decode()}})
    cluster.patch("Pod", name, {"metadata": {"labels": {"v": "2"}}})
    assert cluster.ends(name, timeout=90)["status"]["phase"] == "Succeeded"
    assert cluster.output(name) == "a\nc\nold\n"


@pytest.mark.parametrize("path", ["../up", "/abs", "a/../../b"])
def test_a_sub_path_stays_inside(cluster, name, path):
    thing = pod(name + str(abs(hash(path)) % 1000), "true", volumes=[{"name": "v", "emptyDir": {}}],
                volumeMounts=[mount("v", "/v", subPath=path)])
    status, answer = cluster.request("POST", "/api/v1/namespaces/default/pods", thing)
    if status == 201:
        found = cluster.wait_for_pod(thing["metadata"]["name"], lambda p: "invalid subPath" in json.dumps(p["status"]),
                                     "is refused")
        assert found["status"]["phase"] == "Pending"
        cluster.delete("Pod", thing["metadata"]["name"])
    else:
        assert status == 422, answer
