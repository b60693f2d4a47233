"""Which suites there are, and what each needs.

Every folder of tests/ with test_*.py in it is a suite of that name; the others are named here.
"""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASAN = ROOT / "build" / "asan"
TOOLS_OF_PYTHON = ("grapnel", "conformance_probe", "apiserver_tool", "jobset_tool")


@dataclasses.dataclass(frozen=True)
class Suite:
    """kind: check, programs (GoogleTest), commands, or folder (Python).

    says     what it is, in a few words
    targets  of the sanitizers' build
    real     has real processes: its tests may be tried twice
    kube     what tools/kube/build must have built
    runtimes whether it wants the environment of tools/runtimes
    seconds  how long it takes, where no earlier run has said so; for the balance of the lanes
    """

    name: str
    kind: str
    says: str
    targets: tuple = ()
    real: bool = False
    kube: tuple = ()
    runtimes: bool = False
    seconds: float = 30


def _folder(name, says, kube=(), seconds=30, runtimes=False):
    return Suite(name, "folder", says, TOOLS_OF_PYTHON, True, kube, runtimes, seconds)


# What the tests stand on, and no process of ours.
TOOLS = Suite("tools", "folder", "how this program runs suites")
KUBE = ("control-plane", "kwok")
KNOWN_FOLDERS = {suite.name: suite for suite in (
    _folder("apiserver", "our API server beside kube-apiserver", KUBE, 60),
    _folder("clients", "kubectl, client-go and other people's clients", (*KUBE, "informer"), 90),
    _folder("conformance", "our client on a real kube-apiserver", KUBE, 90),
    _folder("e2e", "the program as users have it", KUBE, 240, True),
    _folder("jobset", "JobSets beside the original, and Kueue", (*KUBE, "jobset", "kueue"), 180),
    _folder("kube", "what the tests themselves stand on", KUBE, 40),
    _folder("manifests", "manifests, right and wrong", ("control-plane", "kwok", "jobset", "kuberay"), 10),
    _folder("nodes", "real nodes with kubelet and containerd", ("control-plane", "node"), 120, True),
    _folder("pods", "pods of the laptop cluster", ("control-plane",), 300),
    TOOLS,
    _folder("runtimes", "Ray, JAX, PyTorch and XGBoost in plain pods", ("control-plane",), 90, True),
)}
OTHERS = (
    Suite("includes", "check", "which folder includes which"),
    Suite("format", "check", "clang-format"),
    Suite("headers", "check", "every header compiles alone"),
    Suite("release", "check", "the optimised build, without precompiled headers"),
    Suite("unit", "programs", "unit tests under the sanitizers", ("unit_tests",)),
    Suite("local_node", "programs", "unit tests with real processes: the node", ("local_node_test",), True),
    Suite("kubelet_e2e", "programs", "API server and kubelet in one program", ("kubelet_e2e_test",), True),
    Suite("simulation", "commands", "ten thousand bad days", ("grapnel-sim",)),
    Suite("fuzz", "commands", "every fuzz target for a few seconds", ("fuzz",)),
)


def all_suites():
    """{name: Suite}, in the order in which they are listed."""
    found = {suite.name: suite for suite in OTHERS}
    for folder in sorted({path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}):
        found[folder] = KNOWN_FOLDERS.get(folder) or _folder(folder, f"tests/{folder}", KUBE)
    return found


def listing(suites):
    return "\n".join(f"  {suite.name:12} {suite.says}" for suite in suites.values())
