"""The ways to log in that a kubeconfig knows, on a real kube-apiserver."""

import base64
import json
import os

import pytest

from conformance.probe import POD, Probe, ProbeError

REVIEW = ["authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False]


def who(probe):
    """The user the server takes us for, and the groups."""
    info = probe.create(kind=REVIEW, object={"apiVersion": "authentication.k8s.io/v1",
                                             "kind": "SelfSubjectReview"})["status"]["userInfo"]
    return info["username"], set(info.get("groups", [])) - {"system:authenticated"}


@pytest.fixture
def config(control_plane, tmp_path):
    """Writes a kubeconfig with these fields of its user, and returns its path."""
    def write(user, name="config"):
        path = tmp_path / name
        path.write_text(json.dumps({
            "kind": "Config", "apiVersion": "v1", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {
                "server": control_plane.url,
                "certificate-authority": os.path.relpath(control_plane.ca_file, tmp_path)}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}))
        return path
    return write


def plugin(script, version="v1", **fields):
    return {"exec": {"apiVersion": f"client.authentication.k8s.io/{version}", "command": "sh",
                     "args": ["-c", script], "interactiveMode": "Never"} | fields}


def credential(version="v1", **status):
    return json.dumps({"apiVersion": f"client.authentication.k8s.io/{version}",
                       "kind": "ExecCredential", "status": status})


def test_token(control_plane, config):
    with Probe(config({"token": control_plane.token_for("alice")})) as probe:
        assert who(probe) == ("alice", {"team-a"})


def test_certificate(control_plane):
    with Probe(control_plane.kubeconfig_for("carol", ["readers", "writers"])) as probe:
        assert who(probe) == ("carol", {"readers", "writers"})


def test_token_file_that_changes(control_plane, config, tmp_path):
    (tmp_path / "token").write_text("wrong")
    with Probe(config({"tokenFile": "token"})) as probe:
        with pytest.raises(ProbeError, match="Unauthorized"):
            who(probe)
        (tmp_path / "token").write_text(control_plane.token_for("alice") + "\n")
        assert who(probe)[0] == "alice"


def test_impersonation(control_plane, config):
    user = {"token": control_plane.token, "as": "dave", "as-groups": ["ops", "on-call"],
            "as-user-extra": {"example.com/Scope": ["a"]}}
    with Probe(config(user)) as probe:
        assert who(probe) == ("dave", {"ops", "on-call"})


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_plugin(control_plane, config, tmp_path, version):
    runs = tmp_path / "runs"
    answer = credential(version, token=control_plane.token_for("alice"))
    script = f"echo \"$KUBERNETES_EXEC_INFO\" >> {runs}; printf %s \"$ANSWER\""
    user = plugin(script, version, provideClusterInfo=True,
                  env=[{"name": "ANSWER", "value": answer}])
    with Probe(config(user)) as probe:
        asked = [probe.start("list", kind=POD) for _ in range(5)]
        for command in asked:
            with pytest.raises(ProbeError, match='User "alice" cannot list'):
                command.result()
        assert who(probe)[0] == "alice"
    told = [json.loads(line) for line in runs.read_text().splitlines()]
    assert len(told) == 1, "once for all"
    assert told[0]["spec"]["cluster"]["server"] == control_plane.url
    assert told[0]["spec"]["interactive"] is False


def test_plugin_whose_token_is_refused(control_plane, config, tmp_path):
    runs = tmp_path / "runs"
    (tmp_path / "first").write_text(credential(token="outdated"))
    (tmp_path / "second").write_text(credential(token=control_plane.token_for("alice")))
    script = (f"echo run >> {runs}; if [ $(wc -l < {runs}) = 1 ]; then cat {tmp_path}/first; "
              f"else cat {tmp_path}/second; fi")
    with Probe(config(plugin(script))) as probe:
        assert who(probe)[0] == "alice"
    assert runs.read_text() == "run\nrun\n"


def test_plugin_that_gives_a_certificate(control_plane, config, tmp_path):
    """The certificate of someone else's kubeconfig, handed over by a plugin."""
    carol = control_plane.kubeconfig_for("carol", ["readers"])
    viewed = json.loads(control_plane.kubectl("config", "view", "--raw", "-o", "json",
                                              f"--kubeconfig={carol}"))
    user = viewed["users"][0]["user"]

    def pem(name):
        if data := user.get(f"{name}-data"):
            return base64.b64decode(data).decode()
        return (carol.parent / user[name]).read_text()
    answer = tmp_path / "answer"
    answer.write_text(credential(clientCertificateData=pem("client-certificate"),
                                 clientKeyData=pem("client-key")))
    with Probe(config(plugin(f"cat {answer}"))) as probe:
        assert who(probe) == ("carol", {"readers"})


def test_plugin_that_fails(config):
    with Probe(config(plugin("echo please log in >&2; exit 7"))) as probe:
        with pytest.raises(ProbeError) as refused:
            who(probe)
    assert "credential plugin 'sh' ended with code 7: please log in" in refused.value.message


def test_plugin_that_is_not_installed(config):
    user = plugin("", command="no-such-plugin", installHint="get it from your platform team")
    with Probe(config(user)) as probe:
        with pytest.raises(ProbeError) as refused:
            who(probe)
    assert refused.value.message.endswith("get it from your platform team")


def test_several_files(control_plane, config, tmp_path):
    first = tmp_path / "first"
    first.write_text("users: [{name: u, user: {token: %s}}]" % control_plane.token_for("alice"))
    second = config({"token": control_plane.token}, "second")
    files = ":".join(map(str, [tmp_path / "none", first, second]))
    with Probe("", env={"KUBECONFIG": files}) as probe:
        assert who(probe)[0] == "alice", "the first to name the user wins"


def test_a_broken_kubeconfig(tmp_path):
    (tmp_path / "config").write_text("current-context: a\ncontexts: [{name: b}]\n")
    with pytest.raises(ProbeError) as refused:
        with Probe(tmp_path / "config"):
            pass
    assert refused.value.reason == "Usage"
    assert "current-context 'a' does not exist" in refused.value.message
