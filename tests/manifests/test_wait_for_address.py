"""The wait that `waitForAddress` puts before a command, run by several shells with hardly anything beside them."""

import os
import shutil
import stat
import subprocess
import sys

import pytest
import yaml

from e2e.grapnel import Grapnel

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
BARE = ["dash", "bash"]  # busybox's shell takes its own nslookup, date and sleep, whatever PATH has
# Says yes from the third question on, to that name alone.
RESOLVER = """#!/bin/sh
echo x >> "$QUESTIONS"
case "$*" in *"{name}"*) ;; *) exit 2;; esac
[ $(wc -l < "$QUESTIONS") -ge 3 ]
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """What the container of a process runs, as the kubelet starts it."""
    folder = tmp_path_factory.mktemp("manifest")
    (folder / "m.yaml").write_text("""kind: AIchorManifest
apiVersion: 0.2.3
spec:
  operator: pytorch
  image: i
  command: echo "started by $0 with $A"; exit 5
  waitForAddress: true
  types: {worker: {count: 1, resources: {cpus: 1, ramRatio: 1}}}
""")
    rendered = Grapnel(folder)("render", folder / "m.yaml", "--name", "e")
    assert rendered.returncode == 0, rendered.stderr
    pod = yaml.safe_load(rendered.stdout)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    line = [part.replace("$$", "$") for part in pod["containers"][0]["command"]]
    assert line[:2] == ["/bin/sh", "-c"]
    return line[1:]


class Image:
    """A PATH with these programs alone."""

    def __init__(self, folder):
        self.folder = folder / "bin"
        self.folder.mkdir()
        self.questions = folder / "questions"
        self.questions.touch()

    def add(self, name):
        (self.folder / name).symlink_to(shutil.which(name))

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, shell, command, **environment):
        shell = [shutil.which(SHELLS[shell][0]), *SHELLS[shell][1:]]
        return subprocess.run([*shell, *command], capture_output=True, text=True, timeout=60, env={
            "PATH": str(self.folder), "QUESTIONS": str(self.questions), "MASTER_ADDR": "e-worker-0-0.e", "A": "1",
            **environment})


@pytest.fixture
def image(tmp_path):
    return Image(tmp_path)


STARTED = "started by /bin/sh with 1\n"
WAITING = "grapnel: waiting until e-worker-0-0.e resolves\n"


@pytest.mark.parametrize("shell, resolver, asked", [
    *((shell, "getent", "hosts e-worker-0-0.e") for shell in SHELLS),
    *((shell, python, "e-worker-0-0.e") for shell in SHELLS for python in ("python3", "python")),
    *((shell, "nslookup", "e-worker-0-0.e") for shell in BARE)])
def test_the_command_starts_once_the_name_resolves(image, command, shell, resolver, asked):
    image.add("wc")
    image.script("sleep", "#!/bin/sh\n")
    image.script(resolver, RESOLVER.format(name=asked))
    ended = image.run(shell, command)
    assert (ended.returncode, ended.stdout, ended.stderr) == (5, STARTED, WAITING)
    assert len(image.questions.read_text().split()) >= 3


@pytest.mark.parametrize("shell", SHELLS)
def test_a_name_that_resolves_is_not_spoken_of(image, command, shell):
    image.script("getent", "#!/bin/sh\n")
    ended = image.run(shell, command)
    assert (ended.returncode, ended.stdout, ended.stderr) == (5, STARTED, "")


@pytest.mark.parametrize("shell", BARE)
def test_the_wait_ends_after_five_minutes_by_the_clock_or_by_tries(image, command, shell):
    image.script("getent", "#!/bin/sh\nexit 2\n")
    image.script("sleep", "#!/bin/sh\necho x >> \"$QUESTIONS\"\n")
    gave_up = WAITING + "grapnel: e-worker-0-0.e did not resolve within 300 seconds (spec.waitForAddress)\n"
    by_tries = image.run(shell, command)
    assert (by_tries.returncode, by_tries.stdout, by_tries.stderr) == (1, "", gave_up)
    assert len(image.questions.read_text().split()) == 299
    image.questions.write_text("")
    image.add("wc")
    image.script("date", "#!/bin/sh\necho $((1700000000 + 100 * $(wc -l < \"$QUESTIONS\")))\n")
    by_clock = image.run(shell, command)
    assert (by_clock.returncode, by_clock.stdout, by_clock.stderr) == (1, "", gave_up)
    assert len(image.questions.read_text().split()) == 3


@pytest.mark.parametrize("shell", BARE)
def test_without_any_resolver_the_command_starts_and_the_log_says_why(image, command, shell):
    ended = image.run(shell, command)
    assert (ended.returncode, ended.stdout) == (5, STARTED)
    assert ended.stderr == ("grapnel: not waiting for e-worker-0-0.e: "
                            "the image has none of getent, python3, python, nslookup\n")


@pytest.mark.parametrize("program", ["getent", "python3"])
def test_the_real_resolvers_are_asked_the_right_way(image, command, program):
    real = os.path.realpath(sys.executable) if program == "python3" else shutil.which(program)
    (image.folder / program).symlink_to(real)
    ended = image.run("dash", command, MASTER_ADDR="localhost")
    assert (ended.returncode, ended.stderr) == (5, "")
