"""The real TensorBoard and the real Jupyter, seen through `grapnel open`."""

import contextlib
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request

from .test_experiments import wait_for
from .test_run import manifest

WRITES_A_LOSS = """\
import os
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(os.environ["AICHOR_TENSORBOARD_PATH"] + "/" + os.environ["RANK"])
writer.add_event(Event(step=1, summary=Summary(value=[Summary.Value(tag="loss", simple_value=0.5)])))
writer.close()
"""


@contextlib.contextmanager
def opened(grapnel, *arguments):
    """The address that `grapnel open` prints, while it leads there."""
    process = subprocess.Popen(grapnel.command("open", *arguments), text=True,
                               env=grapnel.environment, stdout=subprocess.PIPE)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def get(url, **headers):
    """What is there, as JSON; None while nobody answers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError):
        return None


def submit(grapnel, name, path, programs):
    submitted = grapnel("submit", path, "--name", name, cwd=path.parent, PATH=f"{programs}:/usr/bin:/bin")
    assert submitted.returncode == 0, submitted.stderr


def test_tensorboard_shows_what_processes_wrote(up, tmp_path, runtimes):
    (tmp_path / "writes.py").write_text(WRITES_A_LOSS)
    path = manifest(tmp_path, "python3 writes.py && sleep 600", extra="  tensorboard: {enabled: true}")
    submit(up, "board", path, runtimes)
    try:
        wait_for("TensorBoard", lambda: "TensorBoard" in up("logs", "board", "--role", "tensorboard").stdout,
                 seconds=120)
        with opened(up, "board", "tensorboard") as url:
            tags = wait_for("both runs", lambda: (t := get(url + "data/plugin/scalars/tags")) and len(t) == 2 and t,
                            seconds=60)
        assert {run: list(found) for run, found in tags.items()} == {"0": ["loss"], "1": ["loss"]}
    finally:
        assert up("delete", "board").returncode == 0


def test_jupyter_lets_in_who_has_the_token_of_the_log(up, tmp_path, runtimes):
    submit(up, "book", manifest(tmp_path, "true", extra="  debug: {jupyter: {enabled: true}}"), runtimes)
    try:
        token = wait_for("the token", lambda: re.search(r"[?&]token=(\w+)",
                                                           up("logs", "book", "--rank", "0").stdout),
                         seconds=120)[1]
        with opened(up, "book", "jupyter") as url:
            assert url.endswith("/jupyter")
            wait_for("an answer", lambda: get(url + "/api"))
            assert get(url + "/api/kernels") is None, "without the token"
            assert get(url + "/api/kernels", Authorization=f"token {token}") == []
    finally:
        assert up("delete", "book").returncode == 0
