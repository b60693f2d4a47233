"""`grapnel plan`, `top`, `config`, `open`, `--with-code`: what a person does around experiments."""

import http.client
import json
import os
import signal
import subprocess

import pytest
import yaml

from .test_experiments import phase, submit, wait_for
from .test_run import manifest


# ---- plan


def test_plan_says_what_submit_would_do(up, tmp_path):
    path = manifest(tmp_path, "true")
    planned = up("plan", path, "--name", "later")
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout == """On the laptop cluster 'default', namespace default:
  + Experiment later: pytorch
  + JobSet later
      worker: 1 Job of 2 pods, each with 100m CPUs (at most 200m), 103Mi of memory
Total: 2 pods, which request 200m CPUs, 206Mi of memory.
The cluster would accept it.
"""
    assert up("status", "later").returncode == 1, "nothing was made"

    submit(up, path, "later")
    again = up("plan", path, "--name", "later")
    assert again.returncode == 1
    assert "! Experiment later exists already" in again.stdout
    assert up("delete", "later").returncode == 0


def test_plan_tells_what_the_cluster_would_refuse(up, tmp_path):
    refused = up("plan", manifest(tmp_path, "true"), "-n", "no-such-namespace")
    assert refused.returncode == 1
    assert 'namespaces "no-such-namespace" not found' in refused.stderr, refused.stderr


def test_plan_on_a_cluster_that_does_not_know_us(up, tmp_path):
    other = up("up", "-d", "--name", "bare", "--no-operator")
    assert other.returncode == 0, other.stderr
    path = manifest(tmp_path, "true")
    try:
        refused = up("plan", path, "--cluster", "bare")
        assert refused.returncode == 1
        unknown = "the cluster does not know the kind Experiment; `grapnel install` teaches it\n"
        assert refused.stderr == unknown
        for command in (["list"], ["submit", path], ["run", path], ["status", "x"], ["logs", "x"], ["cancel", "x"]):
            said = up(*command, "--cluster", "bare")
            assert (said.returncode, said.stdout) == (1, ""), command
            assert said.stderr == unknown, command
        config = up("env", "--name", "bare").stdout.split("=", 1)[1].strip()
        install = ("install", "--kubeconfig", config, "--no-webhooks")
        refused = up(*install)
        assert refused.returncode == 1
        assert "PriorityLevelConfiguration grapnel (--concurrency-shares 0 leaves it out)" in refused.stderr
        assert up(*install, "--concurrency-shares", "0").returncode == 0
        planned = up("plan", manifest(tmp_path, "true"), "--cluster", "bare")
        assert planned.returncode == 0, planned.stderr
    finally:
        assert up("down", "--name", "bare").returncode == 0


# ---- top


@pytest.fixture
def busy(up, tmp_path):
    """Rank 0 computes, rank 1 sleeps."""
    submit(up, manifest(tmp_path, "[ $RANK = 1 ] && exec sleep 600; while :; do :; done"), "busy")
    wait_for("its start", lambda: phase(up, "busy") == "Running")
    yield "busy"
    assert up("delete", "busy").returncode == 0
    wait_for("deletion", lambda: up("list").stdout == "")


def test_top_tells_who_computes(up, busy):
    shown = up("top", busy)
    assert shown.returncode == 0, shown.stderr
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[0] == ["PROCESS", "CPU", "MEMORY"]
    assert [line[0] for line in lines[1:]] == ["worker-0", "worker-1"]
    assert 30 <= int(lines[1][1].removesuffix("m")) <= 300, shown.stdout
    assert int(lines[2][1].removesuffix("m")) <= 20, shown.stdout
    assert all(1 <= int(line[2].removesuffix("Mi")) <= 50 for line in lines[1:])
    everything = up("top", "-A", "-o", "wide").stdout.splitlines()
    assert everything[0].split() == ["NAMESPACE", "EXPERIMENT", "PROCESS", "CPU", "MEMORY", "POD", "NODE"]
    assert [line.split()[:3] for line in everything[1:]] == [
        ["default", "busy", "worker-0"], ["default", "busy", "worker-1"]]
    items = json.loads(up("top", busy, "-o", "json").stdout)["items"]
    assert all(item["containers"][0]["name"] == "worker" for item in items)
    assert len(up("top", "-o", "name").stdout.splitlines()) == 2


def test_kubectl_top_agrees(busy, kubectl):
    shown = kubectl("top", "pod", "-l", "grapnel.dev/experiment=busy")
    assert shown.returncode == 0, shown.stderr
    # Pods of an earlier experiment of this name may still be ending.
    used = [int(line.split()[1].removesuffix("m")) for line in shown.stdout.splitlines()
            if line.startswith("busy-worker-0-0")]
    assert used and 30 <= sum(used) <= 600, shown.stdout


def test_top_of_nothing(up):
    wait_for("the end of all processes", lambda: up("top").stderr == "no process runs\n")
    assert "there is no experiment 'nothing'" in up("top", "nothing").stderr


# ---- config


def test_config_tells_where_commands_go(up, tmp_path):
    mine = tmp_path / "config"
    mine.write_text("""# mine
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: a, user: a}}
- {name: two, context: {cluster: b, user: a, namespace: team}}
clusters:
- {name: a, cluster: {server: "https://a:6443"}}
- {name: b, cluster: {server: "https://b:6443"}}
users:
- {name: a, user: {token: secret}}
""")
    assert up("config", "current").stdout == "the laptop cluster 'default' (it is up)\n"
    listed = up("config", "--kubeconfig", mine)
    assert [line.split() for line in listed.stdout.splitlines() if "bare" not in line] == [
        ["CURRENT", "NAME", "KIND", "NAMESPACE", "SERVER"],
        ["default", "laptop", "default", "up"],
        ["*", "one", "context", "default", "https://a:6443"],
        ["two", "context", "team", "https://b:6443"]]
    assert up("config", "list", "--kubeconfig", mine, "-o", "name").stdout.endswith("default\none\ntwo\n")
    assert "secret" not in up("config", "--kubeconfig", mine, "-o", "yaml").stdout
    assert up("config", "--kubeconfig", mine, "--context", "two", "current").stdout == \
        "context two at https://b:6443 (by --context)\n"

    assert up("config", "use", "two", "--kubeconfig", mine).returncode == 0
    assert mine.read_text().startswith("# mine\n") and 'current-context: "two"\n' in mine.read_text()
    assert up("config", "current", "--kubeconfig", mine).stdout == \
        "context two at https://b:6443 (by --kubeconfig)\n"
    wrong = up("config", "use", "three", "--kubeconfig", mine)
    assert wrong.returncode == 2 and "three" in wrong.stderr


# ---- open


def test_open_leads_to_the_page(up, tmp_path):
    jupyter = tmp_path / "bin" / "jupyter"
    jupyter.parent.mkdir()
    jupyter.write_text("#!/bin/sh\nexec python3 -m http.server 8888\n")
    jupyter.chmod(0o755)
    path = manifest(tmp_path, "true", extra=f"""  env: {{PATH: "{jupyter.parent}:/usr/bin:/bin"}}
  debug: {{jupyter: {{enabled: true}}}}""")
    submitted = up("submit", path, "--name", "notebook", cwd=tmp_path)
    assert submitted.returncode == 0, submitted.stderr
    try:
        wait_for("its start", lambda: phase(up, "notebook") == "Running")
        opened = subprocess.Popen(up.command("open", "notebook", "jupyter"), text=True, env=up.environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        url = opened.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:") and url.endswith("/jupyter"), opened.stderr.read()
        port = int(url.split(":")[2].split("/")[0])

        def answers():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                connection.request("GET", "/")
                return connection.getresponse().status == 200
            except OSError:
                return False
            finally:
                connection.close()

        try:
            wait_for("the page", answers)
        finally:
            opened.send_signal(signal.SIGINT)
            assert opened.wait(20) == 0
        wrong = up("open", "notebook", "ray")
        assert wrong.returncode == 1 and "has no Ray" in wrong.stderr
    finally:
        assert up("delete", "notebook").returncode == 0


# ---- --with-code


def test_code_comes_along(up, tmp_path):
    code = tmp_path / "code"
    (code / "pkg").mkdir(parents=True)
    (code / "pkg" / "__init__.py").write_text("")
    (code / "pkg" / "say.py").write_text("import os\nprint('hello from', os.environ['RANK'], sorted(os.listdir()))\n")
    (code / ".gitignore").write_text("*.secret\n")
    (code / "a.secret").write_text("x")
    path = manifest(tmp_path, "python3 -B -m pkg.say")
    submitted = up("submit", path, "--name", "coded", "--with-code", cwd=code)
    assert submitted.returncode == 0, submitted.stderr
    wait_for("success", lambda: phase(up, "coded") in ("Succeeded", "Failed"))
    assert sorted(up("logs", "coded").stdout.splitlines()) == [
        f"worker-{r} | hello from {r} ['.gitignore', 'pkg']" for r in (0, 1)], up("status", "coded").stdout

    # A retry has the same code, even when the first is gone.
    again = up("retry", "coded")
    assert again.returncode == 0 and again.stderr == "", again.stderr
    name = again.stdout.strip()
    assert up("delete", "coded").returncode == 0
    wait_for("the retry's end", lambda: phase(up, name) in ("Succeeded", "Failed"))
    assert phase(up, name) == "Succeeded"
    assert up("delete", name).returncode == 0


def test_render_shows_the_code(up, tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "main.py").write_text("print(1)\n")
    rendered = up("render", manifest(tmp_path, "python3 main.py"), "--name", "x", "--with-code", cwd=code)
    assert rendered.returncode == 0, rendered.stderr
    config_map, jobset = yaml.safe_load_all(rendered.stdout)
    assert config_map["metadata"]["name"] == "x-code"
    assert isinstance(config_map["binaryData"]["code.tar.gz"], (str, bytes))
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["name"] == "code"
    assert pod["containers"][0]["workingDir"] == "/mnt/code"
    assert {"name": "code-archive", "configMap": {"name": "x-code"}} in pod["volumes"]


def test_code_that_is_too_large_is_refused(up, tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "weights.bin").write_bytes(os.urandom(3 << 20))
    refused = up("submit", manifest(tmp_path, "true"), "--with-code", cwd=code)
    assert refused.returncode == 2
    assert "when packed, where a ConfigMap holds 1.0 MiB" in refused.stderr
    assert "3.0 MiB  weights.bin" in refused.stderr
    assert up("list").stdout == ""
