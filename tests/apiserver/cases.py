#!/usr/bin/env python3
"""Text cases for API servers: requests, and the answers a real kube-apiserver gave.

    == a name is taken once                     a case, in a namespace of its own
    > POST /api/v1/namespaces/NS/configmaps     a request; NS is the case's namespace
    : Content-Type: application/json            a header (this one is the default for bodies)
    | {"metadata": {"name": "a"}}               the body; several such lines are one
    ? metadata.name, data                       compare only these parts of the answer
    < 201                                       the answer: code, warnings, body
    < {"metadata": {"name": "a"}}

A line `= NAME text` at the head of a file gives a name to text that many cases need: @NAME stands for it.
A body or path may use what an earlier answer of the case held: ${1.metadata.resourceVersion} is that
field of the first answer. What differs from run to run (uids, times, ages, versions) is masked, and so are
nulls and managedFields, unless `?` names them. An answer of several lines (a watch) has a line for each.
WAIT instead of a method asks until the path is served or, with a body, until that may be created there.

Where our server answers something else on purpose, the step says why and what:

    ! there is no etcd whose key could be named
    !< 409

usage: cases.py record [FILE…]      asks a real kube-apiserver and writes its answers into the files
       cases.py run URL [FILE…]     runs them against our server at that URL
       cases.py accept URL [FILE…]  writes our answers into the steps that have a reason to differ
"""

import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import ssl
import sys
import time
import urllib.error
import urllib.request

FOLDER = pathlib.Path(__file__).parent / "cases"
MASKED = {"uid": "UID", "resourceVersion": "VERSION", "creationTimestamp": "TIME", "deletionTimestamp": "TIME",
          "lastTransitionTime": "TIME", "time": "TIME", "controller-uid": "UID",
          "batch.kubernetes.io/controller-uid": "UID", "clusterIP": "IP", "clusterIPs": "IP", "continue": "TOKEN",
          "storageVersionHash": "HASH"}
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
AGE = re.compile(r"\d+s")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Step:
    def __init__(self, method, path):
        self.method, self.path = method, path
        self.headers, self.body, self.only, self.expected = {}, [], None, []
        self.reason, self.ours = "", []

    def expected_of(self, ours):
        return self.ours if ours and self.reason else self.expected


class Case:
    def __init__(self, title, names):
        self.title, self.names, self.steps = title, names, []


class Answer:
    def __init__(self, code, warnings, text):
        self.code, self.warnings, self.text = code, warnings, text
        try:
            self.documents = [json.loads(line) for line in text.split("\n") if line.strip()]
        except ValueError:
            try:
                self.documents = [json.loads(text)]
            except ValueError:
                self.documents = None


def read_cases(path):
    """(lines before the first case, cases)"""
    head, names, cases, step = [], {}, [], None
    for line in path.read_text().splitlines():
        if line.startswith("== "):
            cases.append(Case(line[3:], names))
        elif not cases:
            head.append(line)
            if line.startswith("= "):
                name, _, text = line[2:].partition(" ")
                names["@" + name] = text
        elif line.startswith("> "):
            step = Step(*line[2:].split(" ", 1))
            cases[-1].steps.append(step)
        elif line.startswith(": "):
            name, _, value = line[2:].partition(": ")
            step.headers[name] = value
        elif line.startswith("| "):
            step.body.append(line[2:])
        elif line.startswith("? "):
            step.only = line[2:]
        elif line.startswith("< "):
            step.expected.append(line[2:])
        elif line.startswith("! "):
            step.reason = line[2:]
        elif line.startswith("!< "):
            step.ours.append(line[3:])
        elif line.startswith("# ") or not line.strip():
            continue
        else:
            raise SystemExit(f"{path}: not understood: {line}")
    return head, cases


def write_cases(path, head, cases):
    out = list(head)
    while out and not out[-1].strip():
        out.pop()
    for case in cases:
        out += ["", f"== {case.title}"]
        for step in case.steps:
            out.append(f"> {step.method} {step.path}")
            out += [f": {name}: {value}" for name, value in step.headers.items()]
            out += [f"| {line}" for line in step.body]
            if step.only is not None:
                out.append("? " + step.only)
            out += [f"< {line}" for line in step.expected]
            out += [f"! {step.reason}"] if step.reason else []
            out += [f"!< {line}" for line in step.ours]
    path.write_text("\n".join(out).lstrip("\n") + "\n")


class Server:
    """An API server to ask."""

    def __init__(self, url, token="", ca_file=None):
        self.url, self.token = url, token
        self.context = ssl.create_default_context(cafile=ca_file) if ca_file else None

    def ask(self, method, path, headers=None, body=None):
        request = urllib.request.Request(self.url + path, data=body.encode() if body else None, method=method)
        request.add_header("User-Agent", "cases/1")
        if body:
            request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=60) as response:
                return self._answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return self._answer(error.code, error.headers, error.read())

    @staticmethod
    def _answer(code, headers, body):
        return Answer(code, headers.get_all("Warning") or [], body.decode(errors="replace"))


def look_up(document, path):
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        if part.startswith("["):
            document = document[int(part[1:-1])]
        else:
            document = document[part.replace("~", ".")]
    return document


def names_in(text, names):
    return re.sub(r"@[A-Z]+", lambda match: names.get(match[0], match[0]), text)


def fill_in(text, names, namespace, answers):
    def value(match):
        index, _, path = match[1].partition(".")
        found = look_up(answers[int(index) - 1].documents[0], path)
        return found if isinstance(found, str) else json.dumps(found)

    return re.sub(r"\bNS\b", namespace, re.sub(r"\$\{([^}]*)\}", value, names_in(text, names)))


def manager(entry):
    return entry["operation"], entry["manager"], entry.get("subresource", "")


def masked(value, namespace, keep_managed, key=""):
    if isinstance(value, dict):
        result = {}
        for name, inner in value.items():
            if inner is None or (name == "managedFields" and not keep_managed):
                continue
            result[name.replace(namespace, "NS")] = masked(inner, namespace, keep_managed, name)
        return result
    if isinstance(value, list):
        inner = [masked(one, namespace, keep_managed, key) for one in value]
        # By time, which counts in seconds, and by name where that is the same: left to chance.
        return sorted(inner, key=manager) if key == "managedFields" else inner
    if isinstance(value, str):
        if key in MASKED and value and value != "None":
            return MASKED[key]
        if key == "cells" and AGE.fullmatch(value):
            return "AGE"
        value = value.replace(namespace, "NS")
        return TIME.sub("TIME", UID.sub("UID", value))
    return value


def only(document, paths):
    result = {}
    for path in paths:
        try:
            result[path] = look_up(document, path)
        except (KeyError, IndexError, TypeError):
            result[path] = None
    return result


def lines_of(answer, step, names, namespace):
    paths = [path.strip() for path in names_in(step.only or "", names).split(",")]
    lines = [str(answer.code)]
    lines += ["warning: " + masked(text, namespace, False) for text in answer.warnings]
    if answer.documents is None:
        return lines + ["text: " + line for line in answer.text.strip().split("\n")]
    keep = any("managedFields" in path for path in paths)
    for document in answer.documents:
        document = masked(document, namespace, keep)
        if step.only is not None:
            document = only(document, paths)
        lines.append(json.dumps(document, sort_keys=True, ensure_ascii=False))
    return lines


counter = itertools.count(1)


def run_case(server, case):
    """The answers' lines, one list for each step."""
    namespace = f"case-{os.getpid()}-{next(counter)}"
    server.ask("POST", "/api/v1/namespaces", body=json.dumps({"metadata": {"name": namespace}}))
    answers, got = [], []
    try:
        for step in case.steps:
            path = fill_in(step.path, case.names, namespace, answers).replace(" ", "%20")
            body = fill_in("\n".join(step.body), case.names, namespace, answers)
            if step.method == "WAIT":  # definitions take a moment, and what admission goes by
                ask = ("POST", f"{path}?dryRun=All", step.headers, body) if body else ("GET", path)
                for _ in range(100):
                    if server.ask(*ask).code in (200, 201):
                        break
                    time.sleep(0.1)
                answers.append(Answer(200, [], ""))
                got.append([])
                continue
            answers.append(server.ask(step.method, path, step.headers, body))
            got.append(lines_of(answers[-1], step, case.names, namespace))
    finally:
        server.ask("DELETE", f"/api/v1/namespaces/{namespace}")
    return got


def run_all(server, cases, workers=8):
    """The answers of each case; several at a time, as most of a watch is waiting."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda case: run_case(server, case), cases))


def differences(case, answers, ours):
    """What differs, in words; empty when nothing does."""
    out = []
    for step, got in zip(case.steps, answers):
        expected = step.expected_of(ours)
        if got != expected:
            out.append(f"> {step.method} {step.path}")
            out += [f"  want {line}" for line in expected] + [f"  got  {line}" for line in got]
    return "\n".join(out)


def real_server():
    """The control plane whose answers are the measure."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from kube.control_plane import ControlPlane
    return ControlPlane()


def record(paths):
    with real_server() as cluster:
        server = Server(cluster.url, cluster.token, cluster.ca_file)
        for path in paths:
            head, cases = read_cases(path)
            for case, answers in zip(cases, run_all(server, cases)):
                for step, lines in zip(case.steps, answers):
                    step.expected = lines
            write_cases(path, head, cases)
            print(path.name, len(cases), "cases")


def run(url, paths, accept):
    bad = count = 0
    for path in paths:
        head, cases = read_cases(path)
        for case, answers in zip(cases, run_all(Server(url), cases)):
            count += 1
            for step, lines in zip(case.steps, answers):
                if accept and step.reason:
                    step.ours = lines
            found = differences(case, answers, ours=True)
            if found:
                bad += 1
                print(f"{path.name}: {case.title}\n{found}")
        if accept:
            write_cases(path, head, cases)
    print(count, "cases,", bad, "differ")
    return 1 if bad else 0


def main(arguments):
    def files(names):
        return [pathlib.Path(name) for name in names] or sorted(FOLDER.glob("*.txt"))

    if arguments[:1] == ["record"]:
        return record(files(arguments[1:]))
    if len(arguments) > 1 and arguments[0] in ("run", "accept"):
        return run(arguments[1], files(arguments[2:]), arguments[0] == "accept")
    return __doc__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
