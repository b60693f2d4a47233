#!/usr/bin/env python3
"""Holds src/ to its layering: which folder may include which, and where each library may appear.

usage: check_includes.py SRC
"""
import pathlib
import re
import sys

# Each folder may include itself and the folders named before it.
ORDER = ["base", "document", "http", "kube", "runtime", "api", "operators", "controllers", "autoscaler", "local", "web", "cli"]

# Exceptions, stricter than the order: these folders see only what is listed.
ONLY = {
    "api": {"base", "document", "kube", "api"},
    "controllers": {"base", "document", "kube", "runtime", "api", "operators", "controllers"},
    "operators": {"base", "document", "api", "operators", "runtime/plan.h", "kube/kind.h", "kube/meta.h"},
}
NEVER = {("local", "operators"), ("local", "controllers"), ("operators", "local"), ("web", "local")}

# A library is included in its own folder only, behind our header.
LIBRARIES = {
    r"simdjson": {"document"},
    r"boost/json|boost/json\.hpp": {"document"},
    r"yaml\.h": {"document"},
    r"re2/": {"document"},
    r"boost/asio": {"base", "http", "local", "cli"},
    r"boost/beast": {"http"},
    r"curl/": {"http"},
    r"nghttp2/": {"http"},
    r"openssl/": {"http"},
    r"sqlite3": {"local"},
    r"prometheus/": {"runtime"},
    r"spdlog/": {"base"},
    r"CLI/": {"cli"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def faults_of(path: pathlib.Path, root: pathlib.Path):
    relative = path.relative_to(root)
    if len(relative.parts) == 1:  # main.cpp
        return
    folder = relative.parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        where = f"{relative}:{number}"
        if quote == '"':
            other = target.split("/")[0]
            if other not in ORDER:
                continue
            if folder in ONLY and not path.name.endswith(("_test.cpp", "_test.h")):
                if other not in ONLY[folder] and target not in ONLY[folder]:
                    yield f"{where}: {folder}/ may not include {target}"
            elif ORDER.index(other) > ORDER.index(folder) or (folder, other) in NEVER:
                yield f"{where}: {folder}/ may not include {target}"
        else:
            for pattern, allowed in LIBRARIES.items():
                if re.match(pattern, target) and folder not in allowed and not path.name.endswith(("_test.cpp", "_test.h")):
                    yield f"{where}: <{target}> belongs in {', '.join(sorted(allowed))}/ only"


def main():
    root = pathlib.Path(sys.argv[1])
    unknown = [d.name for d in root.iterdir() if d.is_dir() and d.name not in ORDER]
    faults = [f"{name}/: a folder that docs/architecture.md does not know" for name in unknown]
    for path in sorted(root.rglob("*")):
        if path.suffix in (".h", ".cpp"):
            faults.extend(faults_of(path, root))
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
