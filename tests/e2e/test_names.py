"""The first thing a process does is to ask for names: the coordinator's, its own, its neighbour's."""

import os
import pathlib

import pytest

SOAK = os.environ.get("GRAPNEL_SOAK") == "1"

# One question for each name, with the quickest program there is: who has to ask again fails.
ASK = """getent hosts $MASTER_ADDR >/dev/null || { echo "$MASTER_ADDR: $?"; exit 1; }
own=$(cat /proc/sys/kernel/hostname).${MASTER_ADDR#*.}
neighbour=${MASTER_ADDR%-0.*}-$(( (RANK + 1) % WORLD_SIZE )).${MASTER_ADDR#*.}
for name in $own $neighbour; do getent hosts $name || { echo "$name: $?"; exit 1; }; done
exec /usr/bin/python3 -S meet.py
"""
# With its process a name goes: all stay until the last has asked.
MEET = """import os, socket, time
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    server = socket.create_server(("", place[1]), backlog=64)
    links = [server.accept()[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
else:
    while True:
        try:
            socket.create_connection(place).recv(1)
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
"""


def manifest(folder: pathlib.Path, workers: int) -> pathlib.Path:
    (folder / "ask.sh").write_text(ASK)
    (folder / "meet.py").write_text(MEET)
    path = folder / "manifest.yaml"
    path.write_text(f"""kind: AIchorManifest
apiVersion: 0.2.3
spec:
  operator: pytorch
  command: exec sh ask.sh
  types:
    worker:
      count: {workers}
      resources: {{cpus: 0.01, ramRatio: 1}}
""")
    return path


@pytest.mark.parametrize("workers, runs", [(2, 200 if SOAK else 8), (16, 200 if SOAK else 2)])
def test_names_are_known_when_a_process_starts(up, tmp_path, workers, runs):
    path = manifest(tmp_path, workers)
    failed = []
    for number in range(runs):
        ran = up("run", "--name", f"ask-{workers}-{number}", path, cwd=tmp_path, timeout=300)
        if ran.returncode != 0:
            failed.append(ran.stdout + ran.stderr)
        else:
            assert len(ran.stdout.splitlines()) == 2 * workers, ran.stdout + ran.stderr
    assert not failed, f"{len(failed)} of {runs}, such as:\n{failed[0]}\n{up.cluster_log()[-3000:]}"
