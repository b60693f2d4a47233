#!/usr/bin/env python3
"""A real Kubernetes with real nodes on this machine, up in some 15 seconds, gone without a trace.

    with RealNodes(2) as cluster:
        cluster.kubectl("run", "hello", "--image=host", "--", "echo", "hello")

Each node is a machine within this one: processes, mounts, network and host name of its own, with
containerd, kubelet and kube-proxy in it. The control plane and the DNS are in another. The host's
own network has one link more while it runs, and its iptables and sysctls stay as they are.

As a command, for developers; it stays in the foreground until SIGINT or SIGTERM:

    python3 tests/kube/nodes.py --nodes 2

It needs root, the programs of `tools/kube/build control-plane node`, and the packages containerd,
runc, containernetworking-plugins, conntrack, iptables, dnsmasq-base and busybox-static.
"""

import argparse
import os
import pathlib
import shutil
import sys

if not __package__:  # run as a command: the package's parent is what must be importable
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from kube import cluster_dns, images, node_files
from kube.control_plane import ControlPlane, run_until_stopped
from kube.machines import Machine, Place, ip
from kube.processes import Component, Spawner, StartFailed

PACKAGES = {"containerd": "containerd", "runc": "runc", "/usr/lib/cni/ptp": "containernetworking-plugins",
            "conntrack": "conntrack", "iptables": "iptables", "dnsmasq": "dnsmasq-base",
            "busybox": "busybox-static"}


class RealNodes(ControlPlane):
    """A control plane with `count` nodes, `node-1`, `node-2` …, on which pods really run.

    count    how many nodes
    folders  of this machine, besides /usr, to be read at the same path in every container
    cpus     how many of the machine's CPUs each node has for pods; by default all

    Every image is as good as empty, and finds the machine's own programs in /usr: `host` is there;
    `registry.add()` adds others, with a PATH of their own. Other names cannot be pulled.
    """

    def __init__(self, count=1, *, folders=(), cpus=None):
        self._count = count
        self._reserved = {"cpu": f"{os.cpu_count() - cpus:g}"} if cpus else {}
        self._folders = [str(folder) for folder in folders]

    def start(self):
        for program, package in PACKAGES.items():
            if not shutil.which(program):
                raise StartFailed(f"{program} is not installed; get it with: apt-get install {package}")
        self._place = Place()
        self._machines = []
        self._machine_spawner = Spawner()
        self.registry = self._dns = None
        try:
            network = self._add_machine("control", only_network=True)
            self._connect_control()
            super().__init__(self._place.folder / "control-plane", controllers=True, disabled_admission=(),
                             host=self._place.address(1), machine=network)
            self.registry = images.Registry(self._place.address(254), self._folders)
            self.registry.add(node_files.PAUSE, entrypoint=images.PAUSE)
            self.registry.add("host")
            super().start()
            self._start_dns()
            self._place.make_cgroups(*self.nodes)
            for index, name in enumerate(self.nodes, 1):
                self._start_node(index, name)
            for name in self.nodes:
                self._wait(f"node {name}", lambda: self._has_node(name))
            self.wait_for_account("default")
        except BaseException:
            self.stop()
            raise
        return self

    @property
    def nodes(self):
        return [f"node-{index}" for index in range(1, self._count + 1)]

    @property
    def place(self):
        """What it has of this machine: a folder, cgroups, a link, by name."""
        return self._place

    @property
    def dns(self):
        """The address at which pods ask for names."""
        return self._place.address(1)

    def wait_for_account(self, namespace):
        """Until a namespace has its service account, no pod can be made in it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        self._wait(f"the account of {namespace}", lambda: self._exists(path))

    def stop(self):
        if not self._place:
            return
        if self._dns:
            self._dns.stop()
        if hasattr(self, "_started"):
            super().stop()
        for machine in reversed(self._machines):
            machine.stop()
        if self.registry:
            self.registry.stop()
        self._machine_spawner.close()
        self._place.release()
        self._place = None

    # ---- inside

    def _add_machine(self, name, **options):
        log = self._place.folder / f"{name}.log"
        self._machines.append(Machine(name, self._machine_spawner, log, **options))
        return self._machines[-1]

    def _connect_control(self):
        """A switch that all plug into, this machine too."""
        control = self._machines[0]
        # With an address given, it does not take on another when a port is added.
        ip("link", "add", "nodes", "address", "02:00:00:00:00:01", "type", "bridge", within=control)
        ip("addr", "add", f"{self._place.address(1)}/24", "dev", "nodes", within=control)
        ip("link", "set", "nodes", "up", within=control)
        ip("link", "add", self._place.link, "type", "veth", "peer", "name", "host", "netns", control.pid)
        ip("link", "set", "host", "master", "nodes", "up", within=control)
        ip("addr", "add", f"{self._place.address(254)}/24", "dev", self._place.link)
        ip("link", "set", self._place.link, "up")

    def _connect_node(self, index, node):
        control = self._machines[0]
        ip("link", "add", f"node{index}", "type", "veth", "peer", "name", "eth0", "netns", node.pid,
           within=control)
        ip("link", "set", f"node{index}", "master", "nodes", "up", within=control)
        ip("addr", "add", f"{self._node_address(index)}/24", "dev", "eth0", within=node)
        ip("link", "set", "eth0", "up", within=node)
        ip("route", "add", "default", "via", self._place.address(1), within=node)
        for other, machine in enumerate(self._machines[:-1]):
            ip("route", "add", _pod_network(index), "via", self._node_address(index), within=machine)
            if other:
                ip("route", "add", _pod_network(other), "via", self._node_address(other), within=node)

    def _node_address(self, index):
        return self._place.address(10 + index)

    def _start_dns(self):
        hosts = self._place.folder / "names"
        dnsmasq = Component("dnsmasq", [*self._machines[0].enter, shutil.which("dnsmasq"),
                                        *cluster_dns.command_line(self.dns, hosts)],
                            self._place.folder / "dnsmasq.log", self._machine_spawner)
        self._dns = cluster_dns.ClusterDns(self, dnsmasq, hosts)
        self._dns.start()

    def _start_node(self, index, name):
        folder = self._place.folder / name
        node = self._add_machine(name, setup=node_files.setup(folder))
        self._connect_node(index, node)
        address, ca = self._node_address(index), self._identities.ca_file
        node_files.network_plugins(folder, _pod_network(index))
        self._run(node, f"{name}-containerd", shutil.which("containerd"),
                  "--config", node_files.containerd(folder, self.registry.url, self._folders))
        self._run(node, f"{name}-kubelet", self._programs.path("kubelet"),
                  "--config", node_files.kubelet(folder, address, self.dns,
                                                 f"/{self._place.cgroup}/{name}", ca, self._reserved),
                  "--kubeconfig", self.kubeconfig_for(f"system:node:{name}", ["system:nodes"]),
                  "--hostname-override", name, "--node-ip", address)
        self._run(node, f"{name}-kube-proxy", self._programs.path("kube-proxy"), "--config",
                  node_files.kube_proxy(folder, name, address, self.kubeconfig_for("system:kube-proxy")))

    def _run(self, machine, name, *command):
        log = self.directory / "logs" / f"{name}.log"
        self._components[name] = Component(name, [*machine.enter, *map(str, command)], log, self._spawner)
        self._components[name].start()

    def _has_node(self, name):
        return self._exists(f"/api/v1/nodes/{name}") and self._node_ready(name)


def _pod_network(index):
    return f"10.244.{index}.0/24"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1, metavar="N")
    parser.add_argument("--folder", action="append", default=[], help="to be read in every container")
    options = parser.parse_args()
    return run_until_stopped(RealNodes(options.nodes, folders=options.folder))


if __name__ == "__main__":
    sys.exit(main())
