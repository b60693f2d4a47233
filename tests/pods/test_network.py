"""Addresses and names: pods find each other, and nobody else finds them."""

import concurrent.futures
import re
import socket
import subprocess

import pytest

from . import machine
from .cluster import pod, service

SERVE = "exec /usr/bin/python3 -u -m http.server --directory /srv/www {port}"
GET = "/usr/bin/python3 -c 'import sys,urllib.request as u; print(u.urlopen(sys.argv[1],timeout=5).read().decode())' "


def web(name, text, port=8080, **options):
    """A pod that serves `text`."""
    return pod(name, f"mkdir -p /srv/www; echo {text} > /srv/www/index.html; " + SERVE.format(port=port),
               readinessProbe={"tcpSocket": {"port": port}, "periodSeconds": 1}, **options)


def test_pods_of_an_indexed_job_find_each_other(cluster, name):
    script = f"""
import os, socket, time
index, group = os.environ["JOB_COMPLETION_INDEX"], "{name}"
assert socket.gethostname() == f"{{group}}-{{index}}", socket.gethostname()
server = socket.create_server(("0.0.0.0", 23456))
for other in range(3):
    while True:  # its name comes when it does
        try:
            link = socket.create_connection((f"{{group}}-{{other}}.{{group}}", 23456), timeout=2)
            break
        except OSError:
            time.sleep(0.05)
    link.sendall(index.encode())
    link.close()
print(sorted(server.accept()[0].recv(10).decode() for _ in range(3)))
"""
    template = pod("none", "")["spec"]
    template["subdomain"] = name
    template["containers"][0]["command"] = ["/usr/bin/python3", "-c", script]
    cluster.create(
        service(name, {"job-name": name}, headless=True, publishNotReadyAddresses=True),
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
         "spec": {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimit": 0,
                  "template": {"metadata": {"labels": {"job-name": name}}, "spec": template}}})

    def has_ended():
        job = cluster.get("Job", name)
        return next((c["type"] for c in job.get("status", {}).get("conditions", [])
                     if c["type"] in ("Complete", "Failed") and c["status"] == "True"), None)

    assert cluster.wait(has_ended, "the job ends", 60) == "Complete"
    pods = [p["metadata"]["name"] for p in cluster.pods() if p["metadata"]["name"].startswith(name)]
    assert len(pods) == 3
    assert {cluster.output(p) for p in pods} == {"['0', '1', '2']\n"}


@pytest.mark.only("root", "user")  # whose bridge is ours
def test_a_pod_that_comes_or_goes_is_no_trouble_to_others(cluster, name):
    """A bridge that took over the hardware address of a port would not hear, until they ask again, those who knew the
    one it had: names would not resolve for half a minute."""
    def gateway():
        return next(re.search("link/ether (\\S+)", line)[1] for line in machine.links_of(cluster) if "state" in line
                    and "@" not in line and "link/ether" in line)

    before = gateway()
    for i in range(12):
        cluster.create(pod(f"{name}-{i}", "sleep 1000"))
    for i in range(12):
        cluster.phase(f"{name}-{i}", "Running")
    assert gateway() == before
    for i in range(12):
        cluster.delete("Pod", f"{name}-{i}")
    for i in range(12):
        cluster.gone(f"{name}-{i}")
    assert gateway() == before


def test_two_pods_listen_on_one_port(cluster, name):
    cluster.create(web(f"{name}-a", "from-a"), web(f"{name}-b", "from-b"))
    addresses = {n: cluster.ready(f"{name}-{n}")["status"]["podIP"] for n in "ab"}
    assert addresses["a"] != addresses["b"]
    for n, address in addresses.items():
        assert cluster.run(pod(f"{name}-ask-{n}", GET + f"http://{address}:8080/")).strip() == f"from-{n}"


def test_nothing_of_a_pod_is_reachable_from_the_machine(cluster, name):
    cluster.create(web(name, "secret"))
    address = cluster.ready(name)["status"]["podIP"]
    asked = subprocess.run(["curl", "-sS", "-m", "1", "--noproxy", "*", f"http://{address}:8080/"],
                           capture_output=True)
    assert b"secret" not in asked.stdout


def test_a_service_has_an_address_a_name_and_variables(cluster, name):
    cluster.create(service(name, {"app": name}, port=80, target=8080))
    cluster.create(web(f"{name}-a", "from-a", labels={"app": name}), web(f"{name}-b", "from-b", labels={"app": name}))
    for n in "ab":
        cluster.ready(f"{name}-{n}")
    address = cluster.get("Service", name)["spec"]["clusterIP"]
    upper = name.upper().replace("-", "_")
    out = cluster.run(pod(f"{name}-ask", f"""
set -e
[ "${upper}_SERVICE_HOST" = {address} ]
[ "${upper}_SERVICE_PORT" = 80 ]
for host in {address} {name} {name}.default {name}.default.svc.cluster.local; do
  for turn in 1 2 3 4; do {GET} http://$host/; done
done"""))
    answers = out.split()
    assert len(answers) == 16 and set(answers) == {"from-a", "from-b"}


def test_a_service_leads_only_to_ready_pods(cluster, name):
    unready = web(f"{name}-b", "from-b", labels={"app": name})
    unready["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["false"]}}
    cluster.create(service(name, {"app": name}, port=80, target=8080),
                   web(f"{name}-a", "from-a", labels={"app": name}), unready)
    cluster.ready(f"{name}-a")
    cluster.phase(f"{name}-b", "Running")
    out = cluster.run(pod(f"{name}-ask", f"for i in 1 2 3 4 5 6; do {GET} http://{name}/; done"))
    assert set(out.split()) == {"from-a"}


DATAGRAMS = """
import socket, sys
served = socket.socket(type=socket.SOCK_DGRAM)
served.bind(("", 5000))
while True:
    data, sender = served.recvfrom(65536)
    served.sendto(sys.argv[1].encode() + b" " + data, sender)
"""

ASK_BY_DATAGRAM = """
import socket, sys
for sender in range(16):
    one = socket.socket(type=socket.SOCK_DGRAM)
    one.settimeout(5)
    served_by = set()
    for turn in range(4):
        sent = b"x" * 8000 + b"%d of %d" % (turn, sender)
        one.sendto(sent, (sys.argv[1], 53))
        data, answering = one.recvfrom(65536)
        assert answering == (sys.argv[1], 53) and data.endswith(b" " + sent), (answering, data)
        served_by.add(data.split()[0].decode())
    assert len(served_by) == 1  # who has answered once goes on to
    print(*served_by)
"""


def test_a_service_takes_datagrams(cluster, name):
    both = service(name, {"app": name})
    both["spec"]["ports"] = [{"name": "asked", "port": 53, "targetPort": 5000, "protocol": "UDP"},
                             {"name": "web", "port": 53, "targetPort": 8080}]
    cluster.create(both)
    for n in "ab":
        cluster.create(pod(f"{name}-{n}", f"exec /usr/bin/python3 -c '{DATAGRAMS}' from-{n}", labels={"app": name},
                           readinessProbe={"exec": {"command": ["grep", "-q", ":1388 ", "/proc/net/udp"]},
                                           "periodSeconds": 1}))
    for n in "ab":
        cluster.ready(f"{name}-{n}")
    address = cluster.get("Service", name)["spec"]["clusterIP"]
    out = cluster.run(pod(f"{name}-ask", f"/usr/bin/python3 -c '{ASK_BY_DATAGRAM}' {address}"))
    assert len(out.split()) == 16 and set(out.split()) == {"from-a", "from-b"}


def test_names_that_do_not_exist_are_said_to_not_exist_at_once(cluster, name):
    out = cluster.run(pod(name, """/usr/bin/python3 -c '
import socket, time
begin = time.monotonic()
try:
    socket.getaddrinfo("nobody.default.svc.cluster.local", 80)
    print("found")
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME, time.monotonic() - begin < 2)'"""))
    assert out == "True True\n"


ASK_ONCE = """/usr/bin/python3 -u -c '
import socket, sys
print("asks")
try:
    print(socket.getaddrinfo(sys.argv[1], 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
except socket.gaierror as error:
    print({socket.EAI_NONAME: "nobody", socket.EAI_AGAIN: "ask again"}[error.errno])' """


def member(group, name, script="sleep 1000", **spec):
    """A pod with a name below the headless service `group`."""
    return pod(f"{group}-{name}", script, labels={"app": group},
               spec={"hostname": name, "subdomain": group, **spec})


def asks_for_a_name(cluster, group, asked, zone=""):
    """A pod of the group that has begun to ask."""
    cluster.create(service(group, {"app": group}, headless=True, publishNotReadyAddresses=True),
                   member(group, "asker", ASK_ONCE + f"{asked}.{group}{zone}"))
    cluster.phase(f"{group}-asker", "Running", "Succeeded")
    cluster.wait(lambda: "asks" in cluster.output(f"{group}-asker"), "it asks")


def answer(cluster, group):
    cluster.ends(f"{group}-asker")
    return cluster.output(f"{group}-asker").split("\n")[1]


@pytest.mark.only("root", "user")  # whose DNS is ours
def test_a_question_waits_for_a_pod_that_is_made_a_moment_later(cluster, name):
    asks_for_a_name(cluster, name, "late")
    cluster.create(member(name, "late"))
    address = cluster.phase(f"{name}-late", "Running")["status"]["podIP"]
    assert answer(cluster, name) == address


@pytest.mark.only("root", "user")
def test_a_question_waits_for_the_address_of_a_pod(cluster, name):
    cluster.create(member(name, "late", nodeSelector={"waits": "for-us"}))
    asks_for_a_name(cluster, name, "late")
    cluster.patch("Node", cluster.node, {"metadata": {"labels": {"waits": "for-us"}}})
    address = cluster.phase(f"{name}-late", "Running")["status"]["podIP"]
    assert answer(cluster, name) == address


@pytest.mark.only("root", "user")
def test_a_question_for_a_pod_that_gets_no_address_is_to_be_asked_again(cluster, name):
    cluster.create(member(name, "never", nodeSelector={"nobody": "has-it"}))
    # In full: of a short name the C library would report what came of the last name it tried.
    asks_for_a_name(cluster, name, "never", ".default.svc.cluster.local.")
    assert answer(cluster, name) == "ask again"
    cluster.delete("Pod", f"{name}-never")


def test_the_name_of_a_pod_that_has_ended_is_nobodys(cluster, name):
    cluster.create(member(name, "ended", "true"))
    cluster.ends(f"{name}-ended")
    asks_for_a_name(cluster, name, "ended")
    assert answer(cluster, name) == "nobody"


def test_the_api_is_reached_from_a_pod(cluster, name):
    out = cluster.run(pod(name, """/usr/bin/python3 -c '
import json, os, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
token = open(folder + "token").read()
ask = urllib.request.Request(
    "https://%s:%s/version" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]),
    headers={"Authorization": "Bearer " + token})
print(json.load(urllib.request.urlopen(ask, context=ssl.create_default_context(cafile=folder + "ca.crt")))["major"])
print(open(folder + "namespace").read())'"""))
    assert out.split() == ["1", "default"]


def test_host_files_tell_who_the_pod_is(cluster, name):
    out = cluster.run(pod(name, "hostname; hostname -f; cat /etc/hosts; grep -v '^#' /etc/resolv.conf",
                          spec={"hostname": "me", "subdomain": "group",
                                "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["far", "away"]}]}))
    lines = out.splitlines()
    assert lines[:2] == ["me", "me.group.default.svc.cluster.local"]
    assert "10.1.2.3\tfar\taway" in lines
    assert "search default.svc.cluster.local svc.cluster.local cluster.local" in lines
    assert "options ndots:5" in lines


def test_port_forward_under_load(cluster, name, tmp_path):
    cluster.create(web(name, "hello"))
    cluster.ready(name)
    forward = subprocess.Popen(cluster.kubectl_command("port-forward", f"pod/{name}", ":8080"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        told = forward.stdout.readline()
        assert told, forward.stderr.read()
        port = int(told.split(" -> ")[0].rsplit(":", 1)[1])

        def ask(count):
            urls = [f"http://127.0.0.1:{port}/"] * count
            return subprocess.run(["curl", "-sS", "-m", "20", *urls], capture_output=True, text=True)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for done in pool.map(ask, [25] * 8):
                assert done.returncode == 0, done.stderr
                assert done.stdout == "hello\n" * 25
    finally:
        forward.terminate()
        forward.wait()


def test_proxy_to_a_pod_and_a_service(cluster, name):
    cluster.create(service(name, {"app": name}, port=80, target=8080),
                   web(name, "hello", labels={"app": name}))
    cluster.ready(name)
    ours = "/api/v1/namespaces/default"

    def ask(path, method="GET"):
        return cluster.request(method, ours + path, as_text=True)

    assert ask(f"/pods/{name}:8080/proxy/") == (200, "hello\n")
    assert ask(f"/pods/{name}:8080/proxy/index.html?a=b") == (200, "hello\n")
    assert ask(f"/pods/{name}:8080/proxy/none")[0] == 404
    assert ask(f"/pods/{name}:8080/proxy/", "HEAD") == (200, "")
    assert ask(f"/pods/{name}:8080/proxy/", "POST")[0] == 501  # the pod's own answer
    assert ask(f"/pods/{name}:8080/proxy")[0] == 301
    cluster.wait(lambda: ask(f"/services/{name}:80/proxy/") == (200, "hello\n"), "the service is there")
    assert ask(f"/services/{name}/proxy/") == (200, "hello\n")

    status, refusal = cluster.request("GET", f"{ours}/pods/{name}:81/proxy/")
    assert (status, refusal["reason"]) == (503, "ServiceUnavailable")
    assert refusal["message"].startswith("error trying to reach service: ")
    status, refusal = cluster.request("GET", f"{ours}/services/{name}:81/proxy/")
    assert refusal["message"] == f'no service port 81 found for service "{name}"'
    status, refusal = cluster.request("GET", f"{ours}/services/{name}:http/proxy/")
    assert refusal["message"].startswith("no endpoints available for service ")
    assert cluster.request("GET", f"{ours}/pods/nobody:80/proxy/")[0] == 404
    raw = cluster.kubectl("get", "--raw", f"{ours}/services/http:{name}:80/proxy/index.html")
    assert raw.stdout == "hello\n", raw.stderr


ECHO = r"""
import base64, hashlib, socket
link = socket.create_server(("", 8080)).accept()[0]
asked = link.recv(65536).decode()
key = next(l.split(": ")[1] for l in asked.split("\r\n") if l.lower().startswith("sec-websocket-key"))
token = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
link.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             b"Sec-WebSocket-Accept: " + token + b"\r\n\r\n")
while piece := link.recv(100):
    link.sendall(piece.upper())
"""


def test_proxy_carries_what_is_no_longer_http(cluster, name):
    thing = pod(name, "")
    thing["spec"]["containers"][0]["command"] = ["/usr/bin/python3", "-c", ECHO]
    cluster.create(thing)
    cluster.phase(name, "Running")

    def open_socket():
        link = cluster.tls.wrap_socket(socket.create_connection((cluster.server.hostname, cluster.server.port)),
                                       server_hostname=cluster.server.hostname)
        link.settimeout(20)
        link.sendall(f"GET /api/v1/namespaces/default/pods/{name}:8080/proxy/ws HTTP/1.1\r\nHost: x\r\n"
                     f"Authorization: Bearer {cluster.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
        head = link.recv(65536).decode()
        if "101 Switching Protocols" in head:
            return link
        link.close()
        assert "503" in head.splitlines()[0], head  # it does not listen yet
        return None

    with cluster.wait(open_socket, "the pod listens") as link:
        for word in (b"hello", b"again"):
            link.sendall(word)
            assert link.recv(100) == word.upper()


def test_a_pod_that_is_gone_has_no_name(cluster, name):
    cluster.create(service(name, {"app": name}, headless=True), web(f"{name}-a", "a", labels={"app": name}))
    cluster.ready(f"{name}-a")
    look = f"/usr/bin/python3 -c 'import socket; print(len(socket.gethostbyname_ex(\"{name}\")[2]))' 2>/dev/null || echo 0"
    assert cluster.run(pod(f"{name}-before", look)) == "1\n"
    cluster.delete("Pod", f"{name}-a")
    cluster.gone(f"{name}-a")
    assert cluster.run(pod(f"{name}-after", look)) == "0\n"
