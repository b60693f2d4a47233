"""What a container is told: arguments, environment, working directory, user."""

from .cluster import config_map, container_status, pod, secret


def variable(name, value=None, **source):
    return {"name": name, **({"value": value} if value is not None else {"valueFrom": source})}


def test_variables_come_from_everywhere(cluster, name):
    cluster.create(config_map(name, {"a": "1", "b": "2"}), secret(name, {"word": "sesame"}))
    out = cluster.run(pod(
        name, "env", labels={"app": "x", "a/b": "c"}, annotations={"note": "n"},
        resources={"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "250m", "memory": "32Mi"}},
        envFrom=[{"prefix": "X_", "configMapRef": {"name": name}}, {"secretRef": {"name": name}},
                 {"configMapRef": {"name": "nowhere", "optional": True}}],
        env=[variable("PLAIN", "v"), variable("BOTH", "$(PLAIN)-$(X_a)-$$(PLAIN)-$(NONE)"),
             variable("KEY", configMapKeyRef={"name": name, "key": "b"}),
             variable("WORD", secretKeyRef={"name": name, "key": "word"}),
             variable("NAME", fieldRef={"fieldPath": "metadata.name"}),
             variable("NS", fieldRef={"fieldPath": "metadata.namespace"}),
             variable("UID_", fieldRef={"fieldPath": "metadata.uid"}),
             variable("LABEL", fieldRef={"fieldPath": "metadata.labels['a/b']"}),
             variable("NOTE", fieldRef={"fieldPath": "metadata.annotations['note']"}),
             variable("IP", fieldRef={"fieldPath": "status.podIP"}),
             variable("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
             variable("CPU", resourceFieldRef={"resource": "limits.cpu"}),
             variable("MILLI", resourceFieldRef={"resource": "requests.cpu", "divisor": "1m"}),
             variable("MEMORY", resourceFieldRef={"resource": "limits.memory", "divisor": "1Mi"})]))
    told = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    status = cluster.get("Pod", name)
    expected = {"PLAIN": "v", "BOTH": "v-1-$(PLAIN)-$(NONE)", "X_a": "1", "X_b": "2", "word": "sesame",
                "KEY": "2", "WORD": "sesame", "NAME": name, "NS": "default", "LABEL": "c", "NOTE": "n",
                "UID_": status["metadata"]["uid"], "IP": status["status"]["podIP"],
                "NODE": status["spec"]["nodeName"], "CPU": "2", "MILLI": "250", "MEMORY": "64", "HOSTNAME": name}
    assert {k: told.get(k) for k in expected} == expected


def test_what_is_missing_is_named_and_waited_for(cluster, name):
    cluster.create(pod(name, "echo $A", env=[variable("A", configMapKeyRef={"name": name, "key": "a"})]))
    waiting = cluster.wait_for_pod(
        name, lambda p: (container_status(p) or {}).get("state", {}).get("waiting", {}).get("message"), "waits")
    state = container_status(waiting)["state"]["waiting"]
    assert state == {"reason": "CreateContainerConfigError", "message": f'configmap "{name}" not found'}
    cluster.create(config_map(name, {"a": "here"}))
    assert cluster.ends(name)["status"]["phase"] == "Succeeded"
    assert cluster.output(name) == "here\n"


def test_arguments_are_expanded_and_the_directory_is_as_asked(cluster, name):
    thing = pod(name, "", workingDir="/usr/share", env=[variable("WHO", "you")])
    thing["spec"]["containers"][0].update(command=["sh", "-c", 'pwd; echo "$@"', "sh"], args=["hi $(WHO)", "$$(WHO)"])
    assert cluster.run(thing) == "/usr/share\nhi you $(WHO)\n"


def test_a_working_directory_is_made(cluster, name):
    assert cluster.run(pod(name, "pwd", workingDir="/opt/not/there")) == "/opt/not/there\n"


def test_what_a_pod_writes_is_its_own(cluster, name):
    script = "[ ! -e /tmp/mark ] && [ ! -e /opt/mark ] && touch /tmp/mark /opt/mark && ls /tmp/mark /opt/mark"
    assert cluster.run(pod(f"{name}-a", script)) == "/opt/mark\n/tmp/mark\n"
    assert cluster.run(pod(f"{name}-b", script)) == "/opt/mark\n/tmp/mark\n"


def test_a_pod_sees_its_own_processes_only(cluster, name):
    out = cluster.run(pod(name, "ls /proc | grep -c '^[0-9]*$'; echo $$"))
    count, pid = map(int, out.split())
    assert pid == 1 and count <= 4


def test_a_program_that_is_not_there(cluster, name):
    thing = pod(name, "")
    thing["spec"]["containers"][0]["command"] = ["no-such-program"]
    cluster.create(thing)
    ended = cluster.ends(name)
    state = container_status(ended)["state"]["terminated"]
    assert ended["status"]["phase"] == "Failed"
    assert state["exitCode"] == 128 and state["reason"] == "StartError"
    assert 'exec: "no-such-program": executable file not found in $PATH' in state["message"]


def test_another_user(cluster, name):
    out = cluster.run(pod(name, "id -u; id -g; id -G; touch /etc/x 2>/dev/null || echo no",
                          spec={"securityContext": {"runAsUser": 1234, "runAsGroup": 5678, "fsGroup": 42}}))
    if cluster.is_root:
        assert out.splitlines() == ["1234", "5678", "5678 42", "no"]
    else:  # an ordinary user has only one user to give
        assert out.splitlines()[:2] == ["0", "0"]
