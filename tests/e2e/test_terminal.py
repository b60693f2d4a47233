"""What stands on a real terminal (tmux) of 80 and of 160 columns."""

import shutil
import textwrap
import time

import pytest

from .terminal import Terminal, settled
from .test_experiments import phase, submit, wait_for
from .test_run import manifest

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

LONG = "a line of rank {} that is longer than a terminal of eighty columns, where it goes on in the next line"
# Rank 0 speaks when both are up, rank 1 after it: the order on the screen is always the same.
SPEAK = f"sleep $((2 + RANK)); echo {LONG.format('$RANK')}; sleep $((2 - RANK)); [ $RANK = 0 ] || sleep 0.5"


def wrapped(line, columns):
    return [line[i:i + columns] for i in range(0, len(line), columns)]


@pytest.mark.parametrize("columns", [80, 160])
def test_run(up, tmp_path, columns):
    name = f"seen-{columns}"
    path = manifest(tmp_path, SPEAK)
    with Terminal(up.command("run", "--name", name, path), up.environment, columns) as terminal:
        shown = terminal.until("ended with")
        colours = terminal.screen(colours=True)
    assert shown.splitlines() == [
        f"{name}: Running (2 of 2 processes are up)",
        *wrapped("worker-0 | " + LONG.format(0), columns),
        *wrapped("worker-1 | " + LONG.format(1), columns),
        *[line for line in shown.splitlines() if "1 of 2 processes" in line],  # whoever ends first
        f"{name}: Succeeded (all processes ended well)",
        "ended with 0"]
    assert "\x1b[36m" in colours and "\x1b[33m" in colours, "a colour for each rank"
    assert up("delete", name).returncode == 0


@pytest.mark.parametrize("columns", [80, 160])
def test_logs_follow(up, tmp_path, columns):
    name = f"told-{columns}"
    submit(up, manifest(tmp_path, SPEAK), name)
    wait_for("its start", lambda: phase(up, name) == "Running")
    with Terminal(up.command("logs", "-f", name), up.environment, columns) as terminal:
        shown = terminal.until("ended with").splitlines()
    told = [line for line in shown if not line.startswith(name)]
    assert told == [*wrapped("worker-0 | " + LONG.format(0), columns),
                    *wrapped("worker-1 | " + LONG.format(1), columns), "ended with 0"]
    assert up("delete", name).returncode == 0


@pytest.mark.parametrize("columns", [80, 160])
def test_status_watch(up, tmp_path, columns):
    """The picture is drawn over itself: nothing of the earlier ones is left."""
    name = f"watched-{columns}"
    submit(up, manifest(tmp_path, "sleep 3", extra="  image: " + "x" * 60), name)
    with Terminal(up.command("status", "-w", name), up.environment, columns) as terminal:
        terminal.until("Running")
        shown = terminal.until("ended with")
    assert settled(shown) == textwrap.dedent(f"""\
        Experiment {name}  Succeeded (all processes ended well)  pytorch  Ns
        └─ JobSet {name}  2/2 processes
           └─ worker  2 succeeded of 2
              ├─ worker-0  Succeeded  on laptop  (pod {name}-worker-0-0-xxxxx)
              └─ worker-1  Succeeded  on laptop  (pod {name}-worker-0-1-xxxxx)
        ended with 0
        """)
    assert up("delete", name).returncode == 0


@pytest.mark.parametrize("columns", [80, 160])
def test_status_watch_of_long_lines(up, tmp_path, columns):
    """Lines that do not fit are cut: else the next picture would be drawn at the wrong place."""
    name = f"waiting-{columns}"
    path = tmp_path / "manifest.yaml"
    path.write_text(manifest(tmp_path, "true").read_text().replace("cpus: 0.1", "cpus: 5000"))
    submit(up, path, name)
    wait_for("its pods", lambda: "Insufficient cpu" in up("status", name).stdout)
    with Terminal(up.command("status", "-w", name), up.environment, columns, rows=12) as terminal:
        terminal.until("Insufficient cpu" if columns == 160 else "…")
        time.sleep(2.5)  # for more pictures: the age in them changes each second
        lines = terminal.screen().splitlines()
        terminal.press("C-c")
    assert len([line for line in lines if line.startswith("Experiment")]) == 1, lines
    assert len(lines) == 5 and all(len(line) <= columns for line in lines), lines
    if columns == 80:
        assert lines[0].endswith("…") and len(lines[0]) == 80
    assert up("delete", name).returncode == 0


def test_ctrl_c_asks_to_cancel(up, tmp_path):
    path = manifest(tmp_path, "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    with Terminal(up.command("run", "--name", "stopped", path), up.environment, 80) as terminal:
        terminal.until("Running (2 of 2 processes are up)")
        terminal.press("C-c")
        shown = terminal.until("ended with")
    assert "stopped: cancelling; press Ctrl-C again not to wait for its end" in shown.replace("\n", "")
    assert "stopped: Cancelled" in shown and shown.endswith("ended with 130\n")
    assert up("delete", "stopped").returncode == 0
