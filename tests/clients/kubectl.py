"""kubectl, called as a user calls it."""

import json
import os
import subprocess
import time


class Refused(AssertionError):
    """kubectl ended with another code than 0; the message is what it said."""


class Kubectl:
    def __init__(self, program, kubeconfig, namespace):
        self._program = program
        self.kubeconfig = kubeconfig
        self.namespace = namespace

    def command(self, *arguments):
        return [self._program, "--kubeconfig", self.kubeconfig, "--namespace", self.namespace,
                *map(str, arguments)]

    def run(self, *arguments, input=None, env=None, timeout=60):
        """The finished process, however it ended."""
        return subprocess.run(self.command(*arguments), input=input, capture_output=True, text=True,
                              env={**os.environ, **(env or {})}, timeout=timeout)

    def __call__(self, *arguments, **options):
        """What it printed; Refused when it failed."""
        done = self.run(*arguments, **options)
        if done.returncode != 0:
            raise Refused(f"kubectl {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
        return done.stdout

    def refusal(self, *arguments, **options):
        """What it complained of; an error when it did not."""
        done = self.run(*arguments, **options)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def apply(self, *objects, flags=()):
        return self("apply", *flags, "-f", "-", input=as_text(objects))

    def get(self, *arguments):
        """One object, or a list, as kubectl prints it in JSON."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def names(self, *arguments):
        return sorted(self("get", *arguments, "-o", "name").split())

    def start(self, *arguments, output):
        """A kubectl that goes on; the caller ends it."""
        return subprocess.Popen(self.command(*arguments), stdout=output, stderr=subprocess.STDOUT)


def as_text(objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def eventually(probe, timeout=30, pause=0.1):
    """Until the probe answers with something true, which is returned."""
    deadline = time.monotonic() + timeout
    while not (answer := probe()):
        assert time.monotonic() < deadline, f"not within {timeout} s; the last answer: {answer!r}"
        time.sleep(pause)
    return answer
