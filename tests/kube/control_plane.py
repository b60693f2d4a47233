#!/usr/bin/env python3
"""A real Kubernetes control plane on loopback, up in a few seconds, gone without a trace.

In a test:

    with ControlPlane(controllers=True, kwok_nodes=2) as cluster:
        cluster.kubectl("create", "namespace", "demo")

As a command, for developers and benches; it stays in the foreground until SIGINT or SIGTERM:

    python3 tests/kube/control_plane.py up --dir /tmp/cluster --controllers --kwok 2

The programs come from `tools/kube/build`. Each listens on 127.0.0.1 only, and the kernel kills it
should this Python process die. A folder given as `directory` keeps the cluster's state: the next
start on it goes on from there.
"""

import argparse
import datetime
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

if not __package__:  # run as a command: the package's parent is what must be importable
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from kube import command_lines
from kube.identities import ADMIN, ADMIN_GROUPS, Identities, file_name
from kube.processes import Component, ReservedPort, Spawner, StartFailed
from kube.programs import Programs

# Who they are in any cluster: to administrators the API server's flow control would not apply.
CONTROLLER_MANAGER, SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
KWOK, KWOK_GROUPS = "system:node:kwok", ["system:nodes"]  # it stands for the kubelets of all nodes
START_TIMEOUT = 60  # seconds; an idle machine needs five, one that compiles can need many more
NODE_CAPACITY = {"cpu": "1000", "memory": "4Ti", "pods": "10000", "ephemeral-storage": "10Ti"}


class KubectlFailed(Exception):
    """kubectl ended with an error; the message is what it printed."""


class ControlPlane:
    """etcd and kube-apiserver, and on demand the controllers, the scheduler and kwok's nodes.

    Components are called `etcd`, `apiserver`, `controller-manager`, `scheduler` and `kwok`.

    directory            where state and logs go; by default a temporary folder, removed by stop()
    controllers          also run kube-controller-manager and kube-scheduler
    kwok_nodes           also run kwok with this many fake nodes, on which pods are ready at once
    users                {"alice": ["team-a"]}: users who get a token; anyone else a certificate
    feature_gates        {"WatchList": True}
    compaction_interval  how often the API server compacts etcd, e.g. "5s"; see also compact_etcd()
    kwok_stages          YAML of further Stages; one of a shipped Stage's name takes its place
    apiserver_args       further flags of kube-apiserver
    disabled_admission   by default ServiceAccount, which would refuse pods until a controller has
                         made their service account
    host, machine        the address to listen on and the Machine to run in, where real nodes reach
                         it (nodes.py); by default loopback
    """

    def __init__(self, directory=None, *, controllers=False, kwok_nodes=0, users=None,
                 feature_gates=None, compaction_interval=None, apiserver_args=(),
                 kwok_stages="", disabled_admission=("ServiceAccount",), host="127.0.0.1",
                 machine=None):
        self._given_directory = directory
        self._controllers = controllers
        self._kwok_nodes = kwok_nodes
        self._users = {CONTROLLER_MANAGER: [], SCHEDULER: [], KWOK: KWOK_GROUPS} | (users or {})
        self._feature_gates = feature_gates or {}
        self._compaction_interval = compaction_interval
        self._apiserver_args = apiserver_args
        self._kwok_stages = kwok_stages
        self._disabled_admission = disabled_admission
        self._host = host
        self._machine = machine
        self._started = False

    # ---- the whole

    def start(self):
        """Returns when /readyz is ok, the default namespace is there and all nodes are Ready."""
        folder = self._given_directory or tempfile.mkdtemp(prefix="grapnel-kube-")
        self.directory = pathlib.Path(folder).absolute()
        self._spawner = Spawner()
        self._ports = {}
        self._components = {}
        self._started = True
        try:
            self._prepare()
            self._components["etcd"].start()
            self.start_apiserver()  # it waits for etcd by itself, so both start at once
            self._wait("the default namespace", lambda: self._exists("/api/v1/namespaces/default"))
            if self._kwok_nodes:
                self._allow_kwok()
            for component in self._components.values():
                if not component.running:
                    component.start()
            if self._kwok_nodes:
                self.add_nodes(1)  # kwok cannot take several at once before its first
                self.add_nodes(self._kwok_nodes)
            if self._controllers:
                self._wait_healthy("controller-manager")
                self._wait_healthy("scheduler")
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """Ends every process at once; what etcd has acknowledged is in its files all the same."""
        if not self._started:
            return
        self._started = False
        for component in reversed(self._components.values()):
            component.stop()
        self._spawner.close()
        for port in self._ports.values():
            port.release()
        if not self._given_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ---- faults

    def start_apiserver(self):
        self._components["apiserver"].start()
        self._wait("the API server", self.ready)

    def stop_apiserver(self):
        """Lets requests in flight end, as in a planned restart."""
        self._components["apiserver"].stop(graceful=True)

    def kill_apiserver(self):
        self._components["apiserver"].stop()

    def restart_apiserver(self):
        self.stop_apiserver()
        self.start_apiserver()

    def start_etcd(self):
        self._components["etcd"].start()
        self._wait("etcd", self._etcd_healthy)

    def stop_etcd(self):
        self._components["etcd"].stop(graceful=True)

    def restart_etcd(self):
        """Returns when etcd is back and the API server is ready again."""
        self.stop_etcd()
        self.start_etcd()
        self._wait("the API server", self.ready)

    def pause(self, component):
        """The process keeps its connections and, from now on, answers nothing."""
        self._components[component].pause()

    def resume(self, component):
        self._components[component].signal(signal.SIGCONT)

    def compact_etcd(self):
        """Forgets all history up to now.

        Continue tokens of earlier lists then answer 410. A watch is served from the API server's
        own memory, so for a 410 there change an object and call restart_apiserver() as well.
        """
        revision = int(self._etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    # ---- what a test talks to

    @property
    def url(self):
        return f"https://{self._host}:{self._port('apiserver')}"

    @property
    def token(self):
        """The administrator's bearer token."""
        return self._identities.token(ADMIN)

    @property
    def ca_file(self):
        return self._identities.ca_file

    @property
    def kubeconfig(self):
        """The administrator's kubeconfig file."""
        return self.directory / "admin.kubeconfig"

    def kubeconfig_for(self, user, groups=(), server=None):
        """A kubeconfig file for anyone: with a token for those given as `users`, else with a
        client certificate. `server` puts another address in it, such as a proxy's."""
        kind = "proxied" if server else "direct"
        path = self.directory / f"{file_name(user, groups)}-{kind}.kubeconfig"
        return self._identities.write_kubeconfig(path, server or self.url, user, groups)

    def token_for(self, user):
        """The token of one of `users`, for raw requests."""
        return self._identities.token(user)

    def kubectl(self, *arguments, input=None, timeout=60):
        """Runs kubectl as administrator and returns what it printed."""
        arguments = [str(a) for a in arguments]
        env = os.environ | {"KUBECONFIG": str(self.kubeconfig),
                            "KUBECACHEDIR": str(self.directory / "kubectl-cache")}
        done = subprocess.run([self._programs.path("kubectl"), *arguments], input=input,
                              capture_output=True, text=True, env=env, timeout=timeout)
        if done.returncode:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def request(self, method, path, body=None, *, token=None, timeout=10,
                content_type="application/json"):
        """One raw API request, as administrator unless `token` is given: (status, decoded JSON)."""
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": content_type}
        connection = http.client.HTTPSConnection(self._host, self._port("apiserver"),
                                                 timeout=timeout, context=self._tls)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
            is_json = "json" in response.headers.get("Content-Type", "")
            return response.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def ready(self):
        """Whether the API server's /readyz says ok at this moment."""
        try:
            return self.request("GET", "/readyz", timeout=5)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def add_nodes(self, count, *, prefix="node", labels=None, capacity=None):
        """Adds fake nodes `<prefix>-0`, `<prefix>-1` … and waits until they are Ready."""
        names = [f"{prefix}-{i}" for i in range(count)]
        resources = NODE_CAPACITY | (capacity or {})
        for name in names:
            # kwok forgets addresses that it has filled in itself when the node comes back to life.
            addresses = [{"type": "InternalIP", "address": "127.0.0.1"},
                         {"type": "Hostname", "address": name}]
            status, answer = self.request("POST", "/api/v1/nodes", {
                "metadata": {"name": name,
                             "labels": {"kubernetes.io/hostname": name} | (labels or {}),
                             "annotations": {"kwok.x-k8s.io/node": "fake"}},
                "status": {"capacity": resources, "allocatable": resources,
                           "addresses": addresses}})
            if status not in (201, 409):  # 409: a folder used again has them already
                raise RuntimeError(f"node {name}: {answer['message']}")
        for name in names:
            self._wait(f"node {name}", lambda: self._node_ready(name))

    def log_from_pods(self, line):
        """Adds a line to the log, which all pods on fake nodes have in common. Commands executed
        in such a pod run on this machine, in `directory`; its ports send back what they are sent."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        with self._pod_log.open("a") as log:
            log.write(f"{now} stdout F {line}\n")

    def module(self, target):
        """Folder of a build target's Go module, with the CRDs and samples it ships."""
        return self._programs.module(target)

    def logs(self, component):
        """All that a component has written so far, over its restarts."""
        return self._components[component].log.read_text(errors="replace")

    def pids(self):
        """{component: process id} of all that run."""
        return {name: c.pid for name, c in self._components.items() if c.running}

    # ---- inside

    @property
    def _pod_log(self):
        return self.directory / "pods.log"

    def _prepare(self):
        (self.directory / "logs").mkdir(parents=True, exist_ok=True)
        self._programs = Programs()
        self._identities = ids = Identities(self.directory / "pki", self._users, self._host)
        self._tls = ssl.create_default_context(cafile=self.ca_file)
        self._identities.write_kubeconfig(self.kubeconfig, self.url, ADMIN, ADMIN_GROUPS)
        self._add("etcd", self._programs.etcd(), command_lines.etcd(
            self._host, self._port("etcd"), self._port("etcd-peer"), self.directory / "etcd"))
        self._add("apiserver", self._programs.path("kube-apiserver"), [
            *command_lines.apiserver(self._host, self._port("apiserver"), self._port("etcd"), ids),
            *(command_lines.apiserver_for_nodes(ids) if self._machine else ()),
            *self._apiserver_options()])
        if self._controllers:
            self._add("controller-manager", self._programs.path("kube-controller-manager"),
                      command_lines.controller_manager(
                          self._host, self._port("controller-manager"), self.directory / "controller-manager",
                          self.kubeconfig_for(CONTROLLER_MANAGER), ids))
            self._add("scheduler", self._programs.path("kube-scheduler"), command_lines.scheduler(
                self._host, self._port("scheduler"), self.directory / "scheduler",
                self.kubeconfig_for(SCHEDULER)))
        if self._kwok_nodes:
            self._pod_log.touch()
            config = command_lines.write_kwok_config(
                self.directory / "kwok.yaml", self._programs.module("kwok"), self._pod_log,
                self._kwok_stages)
            self._add("kwok", self._programs.path("kwok"), command_lines.kwok(
                self._port("kwok"), self.kubeconfig_for(KWOK, KWOK_GROUPS), config, ids))

    def _apiserver_options(self):
        if self._disabled_admission:
            yield "--disable-admission-plugins=" + ",".join(self._disabled_admission)
        if self._feature_gates:
            gates = [f"{gate}={str(on).lower()}" for gate, on in self._feature_gates.items()]
            yield "--feature-gates=" + ",".join(gates)
        if self._compaction_interval:
            yield f"--etcd-compaction-interval={self._compaction_interval}"
        yield from self._apiserver_args

    def _add(self, name, program, flags):
        log = self.directory / "logs" / f"{name}.log"
        enter = self._machine.enter if self._machine else []
        self._components[name] = Component(name, [*enter, program, *flags], log, self._spawner)

    def _port(self, use):
        if use not in self._ports:
            self._ports[use] = ReservedPort()
        return self._ports[use].number

    def _allow_kwok(self):
        """It does for every node what a kubelet may do for its own only."""
        group = "rbac.authorization.k8s.io"
        status, answer = self.request("POST", f"/apis/{group}/v1/clusterrolebindings", {
            "metadata": {"name": "kwok"}, "subjects": [{"kind": "User", "name": KWOK}],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}})
        if status not in (201, 409):  # 409: a folder used again has it already
            raise RuntimeError(f"the rights of kwok: {answer['message']}")

    def _etcd(self, path, body):
        """A request to etcd's JSON gateway."""
        connection = http.client.HTTPConnection(self._host, self._port("etcd"), timeout=5)
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            text = response.read().decode()
            if response.status != 200:
                raise RuntimeError(f"etcd {path}: {text}")
            return json.loads(text)
        finally:
            connection.close()

    def _etcd_healthy(self):
        try:
            return bool(self._etcd("/v3/kv/range", {"key": "AA=="}))
        except (OSError, RuntimeError, http.client.HTTPException):
            return False

    def _exists(self, path):
        return self.request("GET", path)[0] == 200

    def _node_ready(self, name):
        _, node = self.request("GET", f"/api/v1/nodes/{name}")
        return any(c["type"] == "Ready" and c["status"] == "True"
                   for c in node["status"].get("conditions", []))

    def _wait_healthy(self, component):
        """Waits for the health page of a component, whose certificate it has made for itself."""
        def healthy():
            connection = http.client.HTTPSConnection(self._host, self._port(component), timeout=5,
                                                     context=ssl._create_unverified_context())
            try:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
            except OSError:
                return False
            finally:
                connection.close()
        self._wait(component, healthy)

    def _wait(self, what, condition):
        """Polls; when time is over or a component has ended, raises with what was logged."""
        deadline = time.monotonic() + START_TIMEOUT
        while not condition():
            for component in self._components.values():
                if component.has_ended:
                    raise component.failure(f"ended while waiting for {what}")
            if time.monotonic() > deadline:
                logs = "\n".join(c.tail(10) for c in self._components.values())
                raise StartFailed(f"{what} was not ready after {START_TIMEOUT} s\n{logs}")
            time.sleep(0.03)


def run_until_stopped(unstarted):
    """A cluster for somebody at a terminal; the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    began = time.monotonic()
    try:
        with unstarted as cluster:
            print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
            print(f"ready after {time.monotonic() - began:.1f} s; Ctrl-C stops it", file=sys.stderr)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        return 0
    except StartFailed as e:
        print(e, file=sys.stderr)
        return 1


def up(options):
    return run_until_stopped(ControlPlane(options.dir, controllers=options.controllers, kwok_nodes=options.kwok,
                                          apiserver_args=options.apiserver_arg))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    command = parser.add_subparsers(required=True).add_parser("up", help="run a control plane")
    command.add_argument("--dir", help="folder for state and logs, kept (default: a temporary one)")
    command.add_argument("--controllers", action="store_true",
                         help="also kube-controller-manager and kube-scheduler")
    command.add_argument("--kwok", type=int, default=0, metavar="N", help="also N fake nodes")
    command.add_argument("--apiserver-arg", action="append", default=[], metavar="FLAG",
                         help="a further flag of kube-apiserver; may be repeated")
    return up(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
