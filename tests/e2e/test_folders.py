"""Folders of an experiment on the laptop, and the pages beside it: TensorBoard and Jupyter."""

import base64
import json
import os
import shutil
import ssl
import urllib.error
import urllib.request

import pytest

from .grapnel import ROOT
from .test_experiments import phase, wait_for
from .test_run import manifest

# Stands for a program that is not installed here: says what it was given, and serves what it is told to.
SERVER = """#!/usr/bin/env python3
import http.server, os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print(os.path.basename(sys.argv[0]), *sys.argv[1:], flush=True)
given = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:] if "=" in a)
os.chdir(given.get("logdir", "."))
http.server.test(http.server.SimpleHTTPRequestHandler, port=int(given["port"]), bind="0.0.0.0")
"""
TENSORBOARD = "  tensorboard: {enabled: true}"
JUPYTER = "  debug: {jupyter: {enabled: true, path: lab}}"


@pytest.fixture
def programs():
    """A folder with a `tensorboard` and a `jupyter`; the PATH with it. Pods have a /tmp of their own."""
    folder = ROOT / "build" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tensorboard", "jupyter"):
        (folder / name).write_text(SERVER)
        (folder / name).chmod(0o755)
    yield f"{folder}:{os.environ['PATH']}"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def up(grapnel):
    started = grapnel("up", "-d")
    assert started.returncode == 0, started.stderr
    return grapnel


def status(grapnel, name):
    return json.loads(grapnel("status", name, "-o", "json").stdout)["status"]


def get(grapnel, path):
    """(code, text) of a page below the API server."""
    config = json.loads(open(grapnel("env").stdout.split("=", 1)[1].strip()).read())
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    request = urllib.request.Request(cluster["server"] + path)
    request.add_header("Authorization", "Bearer " + config["users"][0]["user"]["token"])
    try:
        with urllib.request.urlopen(request, timeout=10,
                                    context=ssl.create_default_context(cadata=authority)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_what_an_experiment_writes_is_there_afterwards(up, tmp_path):
    command = "echo model > $AICHOR_OUTPUT_PATH/model-$RANK; mkdir -p $AICHOR_OUTPUT_PATH/deep; " \
        "echo $RANK > $AICHOR_OUTPUT_PATH/deep/$RANK; echo event > $AICHOR_TENSORBOARD_PATH/events-$RANK; " \
        "ls -d $AICHOR_INPUT_PATH"
    ran = up("run", "--name", "writer", manifest(tmp_path, command))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    outputs = up("outputs", "writer", "-o", "name").stdout.strip()
    assert sorted(os.listdir(outputs)) == ["deep", "model-0", "model-1"]
    shown = json.loads(up("outputs", "writer", "-o", "json").stdout)
    assert {name: (folder["files"], folder["bytes"]) for name, folder in shown.items()} == \
        {"inputs": (0, 0), "outputs": (4, 16), "tensorboard": (2, 12)}
    assert f"worker-0 | {shown['inputs']['path']}\n" in ran.stdout
    table = up("outputs", "writer").stdout.splitlines()
    assert table[0].split() == ["FOLDER", "FILES", "SIZE", "PATH"]
    assert table[2].split() == ["outputs", "4", "16", "B", outputs]

    copied = up("outputs", "writer", "--to", tmp_path / "mine")
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "mine" / "outputs" / "deep" / "1").read_text() == "1\n"
    assert (tmp_path / "mine" / "tensorboard" / "events-0").read_text() == "event\n"
    assert "4 files, 16 B" in copied.stdout
    nobody = up("outputs", "nobody")
    assert nobody.returncode == 1 and "there is no experiment 'nobody'" in nobody.stderr


def test_a_tensorboard_stands_beside_the_experiment_until_it_ends(up, tmp_path, programs):
    command = "echo 42 > $AICHOR_TENSORBOARD_PATH/loss-$RANK; while [ ! -e $AICHOR_INPUT_PATH/stop ]; do sleep 0.1; done"
    path = manifest(tmp_path, command, extra=TENSORBOARD)
    assert up("submit", path, "--name", "board", PATH=programs).returncode == 0
    link = wait_for("the link", lambda: status(up, "board").get("links", {}).get("tensorboard"))
    wait_for("the page", lambda: get(up, link + "loss-1") == (200, "42\n"))
    folder = status(up, "board")["folder"]
    assert up("logs", "board", "--role", "tensorboard").stdout.splitlines()[0] == \
        f"tensorboard | tensorboard --logdir={folder}/tensorboard --bind_all --port=6006"
    assert up("logs", "board").stdout == "", "only its processes speak for the experiment"
    assert [c["name"] for c in status(up, "board")["components"]] == ["worker"]
    open(f"{folder}/inputs/stop", "w").close()
    wait_for("the end", lambda: phase(up, "board") == "Succeeded")
    wait_for("the end of the page", lambda: get(up, link)[0] == 404)


def test_a_tensorboard_that_is_not_installed_says_so_and_hurts_nobody(up, tmp_path):
    path = manifest(tmp_path, "sleep 3", extra=TENSORBOARD)
    assert up("submit", path, "--name", "bare", PATH="/usr/bin:/bin").returncode == 0
    said = "tensorboard | tensorboard is not installed here: pip install tensorboard\n"
    wait_for("the word", lambda: said in up("logs", "bare", "--role", "tensorboard").stdout)
    wait_for("the end", lambda: phase(up, "bare") == "Succeeded")


def test_jupyter_takes_the_place_of_the_command(up, tmp_path, programs):
    path = manifest(tmp_path, "exit 1", extra=JUPYTER)
    assert up("submit", path, "--name", "book", PATH=programs).returncode == 0
    link = wait_for("the link", lambda: status(up, "book").get("links", {}).get("jupyter"))
    assert link.endswith(":8888/proxy/lab")
    root = link.removesuffix("lab")
    wait_for("the page", lambda: get(up, root)[0] == 200)
    assert "worker-0 | jupyter server --ip=0.0.0.0 --port=8888 --no-browser --allow-root " \
        "--ServerApp.base_url=/lab\n" in up("logs", "book").stdout
    assert up("cancel", "book").returncode == 0
    wait_for("the end", lambda: phase(up, "book") == "Cancelled")


def test_a_jupyter_that_is_not_installed_says_so(up, tmp_path):
    ran = up("run", manifest(tmp_path, "true", extra=JUPYTER), PATH="/usr/bin:/bin")
    assert ran.returncode == 127, ran.stdout + ran.stderr
    assert "| jupyter is not installed here: pip install jupyterlab\n" in ran.stdout
