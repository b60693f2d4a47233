"""Finds what `tools/kube/build` has built."""

import json
import pathlib
import shutil
import subprocess

from kube.processes import StartFailed

BUILD = pathlib.Path(__file__).resolve().parents[2] / "tools" / "kube" / "build"
MISSING_PROGRAM = 3  # exit code of BUILD where Go or etcd is not installed


class Programs:
    """The cache folder with `bin/` and `modules.json`."""

    def __init__(self):
        folder = subprocess.check_output([BUILD, "--print-dir"], text=True).strip()
        self.folder = pathlib.Path(folder)

    def path(self, name):
        path = self.folder / "bin" / name
        if not path.exists():
            raise StartFailed(f"{name} is not built; run: tools/kube/build")
        return str(path)

    def etcd(self):
        path = shutil.which("etcd")
        if not path:
            raise StartFailed("etcd is not installed; get it with: apt-get install etcd-server")
        return path

    def module(self, target):
        """Where the Go module of a build target lies: its CRDs, samples and stages."""
        modules = json.loads((self.folder / "modules.json").read_text())
        return pathlib.Path(modules[target]["dir"])
