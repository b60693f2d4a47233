"""Pods to be run on the laptop cluster and on a real kubelet, whose results are to agree.

A case is a few objects and the moment at which its pods are looked at. Scripts print `key=value` lines: each
becomes a field of what is observed, and so has a name by which a difference can be spoken of.
"""

import dataclasses
from collections.abc import Callable

from pods.cluster import condition, config_map, container, container_status, is_ready, pod, secret, service

PYTHON = "/usr/bin/python3"
FAST = {"periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 1}


def ended(thing):
    """All is over: phase and containers."""
    statuses = thing["status"].get("containerStatuses", [])
    return thing["status"].get("phase") in ("Succeeded", "Failed") and not any("running" in s["state"] for s in statuses)


def waits(reason, name="main"):
    """Not yet while the kubelet itself still waits: it says so with the same reason."""
    def found(thing):
        waiting = (container_status(thing, name) or {}).get("state", {}).get("waiting", {})
        return waiting.get("reason") == reason and "timed out waiting" not in waiting.get("message", "")
    return found


def restarted(thing):
    status = container_status(thing) or {}
    return status.get("restartCount") == 1 and "running" in status["state"]


def runs_unready(thing):
    return thing["status"].get("phase") == "Running" and "running" in container_status(thing)["state"]


@dataclasses.dataclass
class Case:
    name: str
    objects: list
    until: Callable = ended
    at_once: bool = False  # look the moment it holds; otherwise when all has come to rest

    @property
    def pods(self):
        return [thing["metadata"]["name"] for thing in self.objects if thing["kind"] == "Pod"]


CASES = []


def case(name, *objects, **options):
    CASES.append(Case(name, list(objects), **options))


def of_one(name, script, *others, until=ended, at_once=False, **fields):
    """A case of one pod."""
    case(name, *others, pod(name, script, **fields), until=until, at_once=at_once)


def variable(name, value=None, **source):
    return {"name": name, **({"value": value} if value is not None else {"valueFrom": source})}


def field(name, path):
    return variable(name, fieldRef={"fieldPath": path})


def mount(name, path, **fields):
    return {"name": name, "mountPath": path, **fields}


def with_init(thing, *containers):
    thing["spec"]["initContainers"] = list(containers)
    return thing


def command(thing, *words, args=None):
    main = thing["spec"]["containers"][0]
    main["command"] = list(words)
    if args is not None:
        main["args"] = args
    return thing


# Arguments and environment.

case("arguments", command(
    pod("arguments", "", env=[variable("A", "one"), variable("B", "$(A) two"), variable("EMPTY", "")]),
    "sh", "-c", 'i=0; for a; do i=$((i+1)); echo "$i=$a"; done', "sh",
    args=["$(A)", "$$(A)", "$$$(A)", "$(NONE)", "x$(B)y", "$(A", "$", "$$", "$(EMPTY)", "", "a b", "$(A)$(B)"]))

of_one("variables-in-order", "env | grep -E '^V_' | sort",
       env=[variable("V_A", "$(V_B)"), variable("V_B", "b"), variable("V_C", "$(V_B)-$(V_A)"), variable("V_D", "1"),
            variable("V_D", "2"), variable("V_E", "$(V_D)"), variable("V_QUOTES", "a'b\"c"), variable("V_EMPTY", ""),
            variable("V_SELF", "$(V_SELF)"), variable("V_HOST", "$(KUBERNETES_SERVICE_PORT)")])

of_one("variables-from-maps", "env | grep -E '^(P_|a|b|k|s)' | sort",
       config_map("from-maps-1", {"a": "map 1", "b": "map 1", "key.with-dots": "x"}),
       config_map("from-maps-2", {"b": "map 2"}), secret("from-maps", {"s": "secret", "a": "secret"}),
       envFrom=[{"configMapRef": {"name": "from-maps-1"}}, {"configMapRef": {"name": "from-maps-2"}},
                {"prefix": "P_", "configMapRef": {"name": "from-maps-1"}}, {"secretRef": {"name": "from-maps"}},
                {"secretRef": {"name": "nowhere", "optional": True}}],
       env=[variable("b", "own"), variable("kept", "$(s)"),
            variable("sometimes", secretKeyRef={"name": "nowhere", "key": "x", "optional": True})])

of_one("variables-from-fields", "env | grep ^F_ | sort", labels={"app": "x", "a/b": "c"}, annotations={"note": "line"},
       spec={"serviceAccountName": "default"},
       env=[field("F_NAME", "metadata.name"), field("F_NS", "metadata.namespace"), field("F_UID", "metadata.uid"),
            field("F_LABEL", "metadata.labels['a/b']"), field("F_NOTE", "metadata.annotations['note']"),
            field("F_NONE", "metadata.labels['none']"), field("F_NODE", "spec.nodeName"),
            field("F_ACCOUNT", "spec.serviceAccountName"), field("F_IP", "status.podIP"),
            field("F_IPS", "status.podIPs"), field("F_HOST", "status.hostIP"), field("F_HOSTS", "status.hostIPs")])

of_one("variables-from-resources", "env | grep ^R_ | sort",
       resources={"limits": {"cpu": "1500m", "memory": "100Mi"}, "requests": {"cpu": "250m", "memory": "33554433"}},
       env=[variable(f"R_{name}", resourceFieldRef={"resource": resource, **({"divisor": d} if d else {})})
            for name, resource, d in (
                ("CPU", "limits.cpu", None), ("CPU_M", "limits.cpu", "1m"), ("RCPU", "requests.cpu", None),
                ("RCPU_M", "requests.cpu", "1m"), ("MEM", "limits.memory", None), ("MEM_M", "limits.memory", "1Mi"),
                ("RMEM_M", "requests.memory", "1Mi"), ("RMEM_K", "requests.memory", "1k"))])

of_one("all-variables", "env | grep -vE '^(PWD|SHLVL|_)=' | sort", spec={"enableServiceLinks": False})

of_one("working-directory", "echo pwd=$(pwd); echo home=$HOME; ls -d . ", workingDir="/opt/made/for-it")

of_one("standard-input", "read x; echo code=$?; echo umask=$(umask); [ -t 1 ]; echo terminal=$?")

of_one("a-terminal", "[ -t 0 ] && [ -t 1 ]; echo terminal=$?; echo TERM=$TERM", tty=True, stdin=True)

# Endings.

case("exit-codes", *(pod(f"exit-{key}", script) for key, script in {
    "0": "exit 0", "1": "exit 1", "7": "exit 7", "255": "exit 255", "child-kill": "sh -c 'kill -9 $$'; exit $?", "segv": "sh -c 'kill -SEGV $$'", "term": "sh -c 'kill -TERM $$'"}.items()))

case("no-such-program", command(pod("no-such-program", ""), "no-such-program", "x"))
case("no-such-path", command(pod("no-such-path", ""), "/no/such/path"))
case("not-a-program", command(pod("not-a-program", ""), "/etc/passwd"))
case("a-folder-as-program", command(pod("a-folder-as-program", ""), "/usr"))

of_one("out-of-memory", f"exec {PYTHON} -c 'x = bytearray(300 << 20)'", resources={"limits": {"memory": "64Mi"}})

case("last-words",
     pod("words-file", "printf farewell > /dev/termination-log; exit 1"),
     pod("words-and-success", "printf fine > /dev/termination-log"),
     pod("words-path", "printf elsewhere > /opt/words", terminationMessagePath="/opt/words"),
     pod("words-log", "echo first; echo last; exit 1", terminationMessagePolicy="FallbackToLogsOnError"),
     pod("words-log-unused", "echo last", terminationMessagePolicy="FallbackToLogsOnError"),
     pod("words-long", "head -c 5000 /dev/zero | tr '\\0' x > /dev/termination-log; exit 1"),
     pod("words-log-long", "for i in $(seq 200); do echo line $i is one of many; done; exit 1",
         terminationMessagePolicy="FallbackToLogsOnError"))

of_one("deadline", "trap 'exit 5' TERM; while :; do sleep 0.05; done",
       spec={"activeDeadlineSeconds": 2, "terminationGracePeriodSeconds": 20})

of_one("deadline-ignored", "trap '' TERM; while :; do sleep 0.05; done", spec={"activeDeadlineSeconds": 1})

case("one-of-two-fails", {**(two := pod("one-of-two-fails", "exit 4")), "spec": {
    **two["spec"], "containers": [two["spec"]["containers"][0], container("exit 0", "good")]}})

# Restarts.

RUNS = "echo x >> /v/runs; n=$(wc -l < /v/runs); echo run=$n; "
SHARED = {"volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": [mount("v", "/v")]}

of_one("restart-on-failure", RUNS + "[ $n = 2 ] || exit 3", restart="OnFailure", **SHARED)
of_one("restart-always", RUNS + "[ $n = 2 ] || exit 0; sleep 1000", restart="Always", until=restarted, **SHARED)
of_one("crash-loop", "echo run; exit 6", restart="Always", until=waits("CrashLoopBackOff"), at_once=True)

# Init containers and sidecars.

case("init", with_init(pod("init", "cat /v/order", **SHARED),
                       *(container(f"echo {n}=1 >> /v/order", n, volumeMounts=[mount("v", "/v")])
                         for n in ("first", "second"))))
case("init-fails", with_init(pod("init-fails", "echo never"), container("exit 3", "first"),
                             container("echo never", "second")))
case("init-fails-once", with_init(pod("init-fails-once", "echo done=1", restart="OnFailure", **SHARED),
                                  container(RUNS + "[ $n = 2 ] || exit 3", "first", volumeMounts=[mount("v", "/v")])))
case("init-waits", with_init(pod("init-waits", "true"), container("sleep 1000", "first")), until=lambda p:
     "running" in (container_status(p, "first") or {"state": {}})["state"])
SIDE = "trap 'echo bye=1; exit 0' TERM; touch /v/up; while :; do sleep 0.1; done"
case("sidecar", with_init(
    pod("sidecar", "[ -e /v/up ]; echo up=$?", **SHARED, spec={"terminationGracePeriodSeconds": 10}),
    container(SIDE, "side", restartPolicy="Always", volumeMounts=[mount("v", "/v")],
              startupProbe={"exec": {"command": ["test", "-e", "/v/up"]}, **FAST, "failureThreshold": 30})))
case("sidecar-beside", with_init(
    pod("sidecar-beside", "sleep 1000"),
    container("sleep 1000", "side", restartPolicy="Always")), until=is_ready)
case("sidecar-of-a-failure", with_init(
    pod("sidecar-of-a-failure", "exit 9", spec={"terminationGracePeriodSeconds": 10}, **SHARED),
    container(SIDE, "side", restartPolicy="Always", volumeMounts=[mount("v", "/v")])))

# Probes and hooks.

of_one("ready", "sleep 1000", until=is_ready)
of_one("ready-by-command", "sleep 1; touch /tmp/ok; sleep 1000",
       readinessProbe={"exec": {"command": ["test", "-e", "/tmp/ok"]}, **FAST}, until=is_ready)
of_one("ready-by-http", f"mkdir -p /srv/www; exec {PYTHON} -m http.server --directory /srv/www 8000 2> /dev/null",
       ports=[{"name": "web", "containerPort": 8000}], readinessProbe={"httpGet": {"path": "/", "port": "web"}, **FAST},
       startupProbe={"tcpSocket": {"port": 8000}, **FAST, "failureThreshold": 60}, until=is_ready)
of_one("never-ready", "sleep 1000", readinessProbe={"exec": {"command": ["false"]}, **FAST}, until=runs_unready)
of_one("never-started", "sleep 1000", startupProbe={"exec": {"command": ["false"]}, **FAST, "failureThreshold": 1000},
       until=runs_unready)
of_one("not-alive", "trap 'exit 8' TERM; while :; do sleep 0.1; done",
       livenessProbe={"exec": {"command": ["false"]}, "initialDelaySeconds": 1, **FAST},
       spec={"terminationGracePeriodSeconds": 20})
of_one("readiness-gate", "sleep 1000", spec={"readinessGates": [{"conditionType": "example.com/open"}]},
       until=lambda p: condition(p, "ContainersReady") == "True")
of_one("start-hook", "while [ ! -e /tmp/hooked ]; do sleep 0.1; done; echo hooked=1",
       lifecycle={"postStart": {"exec": {"command": ["touch", "/tmp/hooked"]}}})
of_one("start-hook-fails", "sleep 1000", lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "exit 3"]}}})

# Names.

HOSTS = r"grep -v '^#' /etc/hosts | sed 's/\t/ /g; s/^/hosts: /'; "
RESOLVE = "grep -vE '^#' /etc/resolv.conf | sed 's/^/resolv: /'; "
of_one("names", f"echo short=$(hostname); echo long=$(hostname -f); cat /etc/hostname; {HOSTS}{RESOLVE}",
       spec={"hostname": "me", "subdomain": "group",
             "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["far", "away"]}, {"ip": "10.1.2.4", "hostnames": ["b"]}]})
of_one("names-by-default", f"echo short=$(hostname); echo long=$(hostname -f); {HOSTS}{RESOLVE}")
of_one("name-as-long-as-can-be-" + "x" * 60, "hostname")
of_one("names-in-full", "hostname", spec={"hostname": "me", "subdomain": "group", "setHostnameAsFQDN": True})
of_one("resolver-of-its-own", RESOLVE, spec={"dnsPolicy": "None", "dnsConfig": {
    "nameservers": ["10.9.8.7"], "searches": ["one.example", "two.example"],
    "options": [{"name": "ndots", "value": "2"}]}})
of_one("resolver-with-more", RESOLVE, spec={"dnsConfig": {"searches": ["more.example"],
                                                         "options": [{"name": "ndots", "value": "3"}]}})

LOOK_UP = f"""exec {PYTHON} -u -c '
import socket, sys, time
for name in sys.argv[1:]:
    for attempt in range(100):  # names come a moment after their pods
        try:
            found = sorted({{a[4][0] for a in socket.getaddrinfo(name, None, socket.AF_INET)}})
        except socket.gaierror as error:
            found = error.strerror
        if isinstance(found, list) or name.startswith("none"):
            break
        time.sleep(0.1)
    print(name, found, sep="=")
' """
case("look-up", service("lookup", {"app": "look-up"}, headless=True), service("lookup-one", {"app": "look-up"}),
     pod("look-up", LOOK_UP + "me me.lookup me.lookup.default me.lookup.default.svc.cluster.local lookup "
         "lookup-one lookup-one.default.svc localhost kubernetes.default none.default.svc.cluster.local none.lookup.default.svc.cluster.local",
         labels={"app": "look-up"}, spec={"hostname": "me", "subdomain": "lookup"}))

case("service-variables", service("links", {"app": "nobody"}, port=8080, target=80),
     {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "links-more"},
      "spec": {"ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]}},
     service("links-headless", {"app": "nobody"}, headless=True),
     pod("service-variables", "env | grep -E '^(LINKS|KUBERNETES)' | sort"))
of_one("no-service-variables", "env | grep -E '^(LINKS|KUBERNETES)' | sort", spec={"enableServiceLinks": False})

# Volumes.

SHOW = "stat -c 'folder=%a' {0}; find {0} -mindepth 1 -printf '%P=%y %m %U:%G %l\\n' | sed -E 's/\\.\\.(2[0-9_.]+|data-\\w+)/..DATA/g' | sort"
case("empty-dirs", pod(
    "empty-dirs", "stat -c '%n=%a %u:%g' /disk /memory; stat -f -c '%n-kind=%T' /memory; "
    "df -k --output=size /memory | tail -1; touch /disk/x && echo disk=ok; touch /ro/x 2>/dev/null || echo ro=refused",
    volumes=[{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    volumeMounts=[mount("disk", "/disk"), mount("memory", "/memory"), mount("disk", "/ro", readOnly=True)]))
case("shared-memory", pod("shared-memory", "df -k --output=size /dev/shm | tail -1; stat -c %a /dev/shm; ls -A /dev/shm"))
case("config-map-volume", config_map("files", {"a": "1\n", "b.txt": "2\n"}), pod(
    "config-map-volume", f"{SHOW.format('/all')}; cat /some/deep/er /one/file; "
    "find /some/ -mindepth 1 -printf 'some/%P=%y %m %l\\n' | sed -E 's/\\.\\.(2[0-9_.]+|data-\\w+)/..DATA/g' | sort; "
    "stat -L -c '%n=%a' /all/a /some/deep/er /modes/a; touch /all/x 2>&1 | sed 's/.*: //'",
    volumes=[{"name": "all", "configMap": {"name": "files"}},
             {"name": "some", "configMap": {"name": "files", "items": [{"key": "b.txt", "path": "deep/er", "mode": 0o600}]}},
             {"name": "modes", "configMap": {"name": "files", "defaultMode": 0o440}},
             {"name": "no", "configMap": {"name": "nowhere", "optional": True}}],
    volumeMounts=[mount("all", "/all"), mount("some", "/some"), mount("modes", "/modes"), mount("no", "/no"),
                  mount("all", "/one/file", subPath="a")]))
case("secret-volume", secret("hidden", {"word": "sesame"}), pod(
    "secret-volume", f"{SHOW.format('/s')}; cat /s/word; echo; stat -f -c kind=%T /s",
    volumes=[{"name": "s", "secret": {"secretName": "hidden", "defaultMode": 0o400}}], volumeMounts=[mount("s", "/s")]))
DOWNWARD = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}},
            {"path": "in/name", "fieldRef": {"fieldPath": "metadata.name"}},
            {"path": "label", "fieldRef": {"fieldPath": "metadata.labels['app']"}},
            {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}},
            {"path": "memory", "resourceFieldRef": {"containerName": "main", "resource": "requests.memory"}}]
case("downward-volume", pod(
    "downward-volume", f"{SHOW.format('/d')}; for f in labels annotations in/name label cpu memory; do "
    "grep -v kubernetes.io/config /d/$f | sed \"s#^#$f: #\"; done; echo own=$(grep -c kubernetes.io/config /d/annotations)", labels={"app": "x", "b": "2"},
    annotations={"text": "two\nlines \"quoted\" \\ é", "z": ""},
    resources={"limits": {"cpu": "250m", "memory": "64Mi"}}, volumes=[{"name": "d", "downwardAPI": {"items": DOWNWARD}}],
    volumeMounts=[mount("d", "/d")]))
TOKEN = f"""{PYTHON} -c '
import base64, json
parts = open("/p/token").read().split(".")
if len(parts) != 3:
    print("jwt", "no", sep="=")
    raise SystemExit
part = parts[1]
claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
print("audience", claims["aud"], sep="=")
print("lasts", claims["exp"] - claims["iat"], sep="=")
print("subject", claims["sub"], sep="=")
about = claims["kubernetes.io"]
print("about", sorted(about), about["namespace"], about["pod"]["name"], about["serviceaccount"]["name"], sep="=")
print("fields", sorted(claims), sep="=")'"""
case("projected-volume", config_map("pieces", {"a": "1"}), secret("pieces", {"b": "2"}), pod(
    "projected-volume", f"{SHOW.format('/p')}; {TOKEN}", volumes=[{"name": "p", "projected": {
        "defaultMode": 0o600, "sources": [
            {"configMap": {"name": "pieces", "items": [{"key": "a", "path": "x/a", "mode": 0o640}]}},
            {"secret": {"name": "pieces"}}, {"downwardAPI": {"items": DOWNWARD[:1]}},
            {"serviceAccountToken": {"path": "token", "audience": "me", "expirationSeconds": 1200}}]}}],
    labels={"app": "x"}, volumeMounts=[mount("p", "/p")]))
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
of_one("account", f"{SHOW.format(ACCOUNT)}; cat {ACCOUNT}/namespace; echo; head -c 27 {ACCOUNT}/ca.crt; "
       f"touch {ACCOUNT}/x 2>&1 | sed 's/.*: //'")
of_one("no-account", f"ls {ACCOUNT} 2>&1 | sed 's/.*: //'", spec={"automountServiceAccountToken": False})
case("claim", {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
               "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
     pod("claim", "echo x > /c/file && cat /c/file; ls -A /c; mkdir /c/sub; touch /c/sub/y; ls /c/sub",
         volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": "claim"}}], volumeMounts=[mount("c", "/c")]))
of_one("host-paths", "[ -f /h/os-release ] && echo folder=ok; grep -c . /file > /dev/null && echo file=ok; "
       "touch /h/x 2>&1 | sed 's/.*: //'",
       volumes=[{"name": "h", "hostPath": {"path": "/usr/lib", "type": "Directory"}},
                {"name": "f", "hostPath": {"path": "/usr/lib/os-release", "type": "File"}}],
       volumeMounts=[mount("h", "/h", readOnly=True), mount("f", "/file", readOnly=True)])
of_one("sub-paths", "cat /m/one; ls -d /made; ls /v/sub; echo $(cat /by-name/x)",
       volumes=[{"name": "v", "emptyDir": {}}], env=[field("NAME", "metadata.name")],
       volumeMounts=[mount("v", "/v"), mount("v", "/m", subPath="sub"), mount("v", "/made", subPath="new/er"),
                     mount("v", "/by-name", subPathExpr="of/$(NAME)")],
       spec={"initContainers": [container("mkdir -p /v/sub /v/of/sub-paths; echo 1=1 > /v/sub/one; echo x=2 > "
                                          "/v/of/sub-paths/x", "first", volumeMounts=[mount("v", "/v")])]})

# Who waits for what is not there.

of_one("missing-map", "true", env=[variable("A", configMapKeyRef={"name": "not-there", "key": "a"})],
       until=waits("CreateContainerConfigError"))
case("missing-key", config_map("without-key", {"b": "1"}), pod(
    "missing-key", "true", env=[variable("A", configMapKeyRef={"name": "without-key", "key": "a"})]),
    until=waits("CreateContainerConfigError"))
of_one("missing-secret", "true", envFrom=[{"secretRef": {"name": "not-there"}}],
       until=waits("CreateContainerConfigError"))
of_one("missing-volume", "true", volumes=[{"name": "v", "secret": {"secretName": "not-there"}}],
       volumeMounts=[mount("v", "/v")], until=waits("ContainerCreating"))
case("missing-volume-of-init", with_init(
    pod("missing-volume-of-init", "true", volumes=[{"name": "v", "configMap": {"name": "not-there"}}],
        volumeMounts=[mount("v", "/v")]), container("true", "first")), until=waits("PodInitializing", "first"))

# Users and rights.

WHO = "echo user=$(id -u) group=$(id -g) groups=$(id -G); "
STATUS = "grep -E '^(CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | sed 's/:\\t/=/'; "
of_one("user", WHO + "stat -c '%n=%a %u:%g' /v; touch /v/x && stat -c 'made=%u:%g' /v/x; touch /etc/x 2>/dev/null || echo etc=no",
       **SHARED, spec={"securityContext": {"runAsUser": 1234, "runAsGroup": 5678, "fsGroup": 42,
                                           "supplementalGroups": [99]}})
of_one("rights", WHO + STATUS)
of_one("rights-dropped", STATUS, securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})
of_one("rights-added", STATUS, securityContext={"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "CHOWN"]}})
of_one("read-only-root", "touch /x 2>&1 | sed 's/.*: //'; touch /tmp/x 2>&1 | sed 's/.*: //'; touch /v/x && echo v=ok",
       securityContext={"readOnlyRootFilesystem": True}, **SHARED)
of_one("not-root", "true", securityContext={"runAsNonRoot": True},
       until=lambda p: ended(p) or waits("CreateContainerConfigError")(p))

# Together.

case("side-by-side", {**(pair := pod("side-by-side", f"{PYTHON} -c 'import socket; print(\"port\", socket.create_server((\"127.0.0.1\", "
                                     "7777)).accept()[0].recv(9).decode(), sep=\"=\")'; ls /only-there 2>/dev/null || echo file=own")),
                      "spec": {**pair["spec"], "containers": [pair["spec"]["containers"][0], container(
                          f"touch /only-there; {PYTHON} -c '\nimport socket, time\nwhile True:\n  try:\n    "
                          "socket.create_connection((\"127.0.0.1\", 7777)).sendall(b\"shared\")\n    break\n  "
                          "except OSError: time.sleep(0.1)'; hostname", "other")]}})
of_one("processes", "echo pid=$$; ls /proc | grep -c '^[0-9]*$' | sed 's/^[1-4]$/few/; s/^/processes=/'")
of_one("log-lines", "echo out; sleep 0.2; echo err >&2; sleep 0.2; printf '%s\\n' '' '  spaces  ' 'tab\there' 'ünï'; "
       "head -c 40000 /dev/zero | tr '\\0' y; echo; printf 'no newline'")
of_one("quality-burstable", "true", resources={"requests": {"cpu": "10m"}})
of_one("quality-guaranteed", "true", resources={"limits": {"cpu": "100m", "memory": "64Mi"}})
of_one("an-image-that-nobody-has", "true", until=lambda p: ended(p) or waits("ImagePullBackOff")(p))
CASES[-1].objects[-1]["spec"]["containers"][0]["image"] = "nobody/none:1"
