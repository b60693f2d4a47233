"""Names of services and pods, for pods on real nodes: dnsmasq, told what the API server knows."""

import http.client
import signal
import threading

from kube.processes import Component

ZONE = "svc.cluster.local"
INTERVAL = 0.3


def command_line(address, hosts):
    return ["--no-daemon",  # nor any change of its rights, which would part its life from ours
            "--conf-file=/dev/null", "--pid-file=", "--port=53",
            f"--listen-address={address}", "--bind-interfaces", "--no-resolv", "--no-hosts",
            f"--addn-hosts={hosts}",
            "--local=/#/",  # what is not written there does not exist
            "--local-ttl=0"]


def records(services, slices):
    """[(address, name)]: a service's own address, or else those of its pods, and pods' names below it."""
    found = set()
    headless = set()
    for service in services:
        meta, address = service["metadata"], service["spec"].get("clusterIP")
        name = f"{meta['name']}.{meta['namespace']}.{ZONE}"
        if address == "None":
            headless.add(name)
        elif address:
            found.add((address, name))
    for piece in slices:
        meta = piece["metadata"]
        service = f"{meta.get('labels', {}).get('kubernetes.io/service-name')}.{meta['namespace']}.{ZONE}"
        for endpoint in piece.get("endpoints") or []:
            if service not in headless or endpoint.get("conditions", {}).get("ready") is False:
                continue
            for address in endpoint["addresses"]:
                found.add((address, service))
                if host := endpoint.get("hostname"):
                    found.add((address, f"{host}.{service}"))
    return sorted(found)


class ClusterDns:
    """dnsmasq as a component of the control plane, and a thread that keeps its names right."""

    def __init__(self, control_plane, dnsmasq: Component, hosts):
        self._control_plane = control_plane
        self._dnsmasq = dnsmasq
        self._hosts = hosts
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self):
        self._hosts.write_text("")
        self._dnsmasq.start()
        self._thread.start()

    def stop(self):
        self._ended.set()
        if self._thread.ident:
            self._thread.join()
        self._dnsmasq.stop()

    def _follow(self):
        known = ""
        while not self._ended.wait(INTERVAL):
            try:
                lists = [self._control_plane.request("GET", path)[1]["items"] for path in
                         ("/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices")]
            except (OSError, http.client.HTTPException, KeyError, TypeError, ValueError):
                continue  # a server that restarts is asked again
            text = "".join(f"{address} {name}\n" for address, name in records(*lists))
            if text != known and self._dnsmasq.running:
                known = text
                self._hosts.write_text(text)
                self._dnsmasq.signal(signal.SIGHUP)
