"""A registry of container images that hold next to nothing: the machine's own files are mounted.

An image here is what makes a process find its way: folders to mount on, a copy of a few files of
/etc, and variables. `mounts()` says what a container runtime is to mount into every container.
"""

import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import tarfile
import threading

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
FOLDERS = ("dev", "etc", "home", "opt", "proc", "root", "run", "srv", "sys", "tmp", "var", "var/tmp", "var/log")
ETC = ("alternatives", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "passwd", "ssl")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PAUSE = ("/busybox", "sleep", "2147483647")  # what holds a pod's namespaces: a program that needs no other file
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def mounts(folders=()):
    """[(folder of this machine, where it is read in every container)], by OCI's names."""
    places = [path for path in SYSTEM if os.path.isdir(path) and not os.path.islink(path)]
    return [{"destination": str(path), "source": str(path), "type": "bind", "options": ["rbind", "ro", "nosuid"]}
            for path in (*places, *folders)]


def _layer(folders):
    """A layer of folders, links and /etc, the same bytes each time."""
    buffer = io.BytesIO()

    def add(name, kind, mode=0o755, target=""):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.linkname = kind, mode, target
        tar.addfile(entry)

    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in FOLDERS:
            add(name, tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755)
        for path in map(pathlib.Path, SYSTEM):
            if path.is_symlink():
                add(path.name, tarfile.SYMTYPE, target=os.readlink(path))
            elif path.is_dir():
                add(path.name, tarfile.DIRTYPE)
        for folder in folders:
            for part in [*reversed(pathlib.Path(folder).parents), pathlib.Path(folder)][1:]:
                add(str(part).lstrip("/"), tarfile.DIRTYPE)
        tar.add(os.path.realpath(shutil.which("busybox")), "busybox")
        for name in ETC:
            if os.path.exists(f"/etc/{name}"):
                tar.add(f"/etc/{name}", f"etc/{name}")
    return buffer.getvalue()


class Registry:
    """Serves every image name that has been added, to whoever asks on `address`."""

    def __init__(self, address, folders=()):
        self._blobs = {}
        self._manifests = {}
        layer = _layer(folders)
        self._layer_id = self._digest(layer)
        self._packed = self._keep(gzip.compress(layer, 1, mtime=0))
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry._answer(self, with_body=True)

            def do_HEAD(self):
                registry._answer(self, with_body=False)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://{address}:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def add(self, name, *, path=DEFAULT_PATH, entrypoint=()):
        """An image by a name such as `python:3.11`; its programs are those on `path`."""
        config = {"architecture": "amd64", "os": "linux",
                  "config": {"Env": [f"PATH={path}"], "Entrypoint": list(entrypoint)},
                  "rootfs": {"type": "layers", "diff_ids": [self._layer_id]}}
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST,
                    "config": self._keep(json.dumps(config).encode(), "config.v1+json"),
                    "layers": [self._packed]}
        repository, _, tag = name.partition(":")
        self._manifests[repository if "/" in repository else f"library/{repository}", tag or "latest"] = manifest

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    @staticmethod
    def _digest(data):
        return f"sha256:{hashlib.sha256(data).hexdigest()}"

    def _keep(self, data, kind="layer.v1.tar+gzip"):
        digest = self._digest(data)
        self._blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "size": len(data), "digest": digest}

    def _answer(self, request, with_body):
        data, kind = self._find(request.path.partition("?")[0])
        request.send_response(200 if data is not None else 404)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data or b"")))
        if data is not None:
            request.send_header("Docker-Content-Digest", self._digest(data))
        request.end_headers()
        if with_body and data is not None:
            request.wfile.write(data)

    def _find(self, path):
        repository, _, digest = path.removeprefix("/v2/").rpartition("/blobs/")
        if repository:
            return self._blobs.get(digest), "application/octet-stream"
        repository, _, tag = path.removeprefix("/v2/").rpartition("/manifests/")
        for (known, its_tag), manifest in self._manifests.items():
            data = json.dumps(manifest).encode()
            if known == repository and tag in (its_tag, self._digest(data)):
                return data, MANIFEST
        return None, "text/plain"
