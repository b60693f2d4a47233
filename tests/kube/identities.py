"""Who may talk to the API server: its certificates, users' tokens and kubeconfig files."""

import csv
import pathlib
import re
import secrets
import subprocess

ADMIN = "admin"
ADMIN_GROUPS = ("system:masters",)
# What strict verifiers (Python 3.13's default among them) want of every certificate.
COMMON_EXTENSIONS = ("basicConstraints=CA:FALSE", "authorityKeyIdentifier=keyid",
                     "subjectKeyIdentifier=hash", "keyUsage=critical,digitalSignature")
SERVER_NAMES = "IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
SERVICE_ADDRESS = "10.96.0.1"  # at which pods reach it: the first of the services' addresses


def _openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


class Identities:
    """Everything lies in one folder; what is there already (a folder used again) is kept."""

    def __init__(self, folder: pathlib.Path, users: dict, host="127.0.0.1"):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.ca_file = folder / "ca.crt"
        self.service_account_key = folder / "service-account.key"
        self.tokens_file = folder / "tokens.csv"
        if not self.ca_file.exists():
            self._make_ca()
        names = f"{SERVER_NAMES},IP:{host},IP:{SERVICE_ADDRESS}"
        self.server_cert, self.server_key = self._certificate(
            "server", "/CN=kube-apiserver", [f"subjectAltName={names}", "extendedKeyUsage=serverAuth"])
        if not self.service_account_key.exists():
            _openssl("genpkey", "-algorithm", "RSA", "-out", self.service_account_key)
        self._groups = {ADMIN: ADMIN_GROUPS} | {u: tuple(g) for u, g in users.items()}
        self._tokens = {user: secrets.token_hex(16) for user in self._groups}
        with self.tokens_file.open("w", newline="") as file:
            for user, groups in self._groups.items():
                csv.writer(file).writerow([self._tokens[user], user, user, ",".join(groups)])

    def token(self, user):
        return self._tokens[user]

    def credentials(self, user, groups):
        """kubeconfig's user: a token where the server knows one, else a new client certificate."""
        if user in self._tokens and self._groups[user] == tuple(groups):
            return {"token": self._tokens[user]}
        subject = "".join(f"/O={g}" for g in groups) + f"/CN={user}"
        cert, key = self._certificate(file_name(user, groups), subject,
                                      ["extendedKeyUsage=clientAuth"])
        return {"client-certificate": cert, "client-key": key}

    def write_kubeconfig(self, path, server, user, groups):
        """Writes a kubeconfig with one context, `test`, whose namespace is `default`."""
        lines = ["apiVersion: v1", "kind: Config", "current-context: test",
                 "clusters:", "- name: test", "  cluster:", f"    server: {server}"]
        if server.startswith("https:"):
            lines += [f"    certificate-authority: {self.ca_file}"]
        lines += ["users:", f"- name: {user}", "  user:"]
        lines += [f"    {k}: {v}" for k, v in self.credentials(user, groups).items()]
        lines += ["contexts:", "- name: test", "  context:", "    cluster: test",
                  f"    user: {user}", "    namespace: default"]
        path.touch(mode=0o600)
        path.write_text("\n".join(lines) + "\n")
        return path

    def _make_ca(self):
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", "/CN=test-ca", "-days", "3650",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                 "-keyout", self.folder / "ca.key", "-out", self.ca_file)

    def _certificate(self, name, subject, extensions):
        cert, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        if not cert.exists():
            request = self.folder / f"{name}.csr"
            _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-subj", subject, "-keyout", key, "-out", request)
            config = self.folder / f"{name}.ext"
            config.write_text("\n".join([*extensions, *COMMON_EXTENSIONS]) + "\n")
            _openssl("x509", "-req", "-in", request, "-CA", self.ca_file,
                     "-CAkey", self.folder / "ca.key", "-CAcreateserial", "-days", "3650",
                     "-extfile", config, "-out", cert)
        return cert, key


def file_name(user, groups):
    """A name for the files of this user in these groups, e.g. `alice-dev`."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join([user, *groups]))
