"""The same pods on the laptop cluster and on a real kubelet: what can be seen of them agrees.

`differences.yaml` lists what does not, and why. A difference that is not listed fails, and so does one that is
listed and is no more.
"""

import concurrent.futures
import fnmatch
import pathlib
import time

import pytest
import yaml

from pods.cluster import Cluster
from pods.kubelet import Kubelet

from .cases import CASES
from .observe import fields_of

DIFFERENCES = yaml.safe_load((pathlib.Path(__file__).parent / "differences.yaml").read_text())
REST = 3  # seconds after which nothing changes any more: conditions follow the end of a pod
PARALLEL = 12
ABSENT = "(absent)"


def look(cluster, case):
    """{pod: fields} of a case, now."""
    return {name: fields_of(cluster, cluster.get("Pod", name)) for name in case.pods}


def play(cluster):
    """{case: {pod: fields}} of all cases, a few at a time."""
    def run(case):
        others = [thing for thing in case.objects if thing["kind"] != "Pod"]
        if others:
            cluster.create(*others)
        cluster.create(*(thing for thing in case.objects if thing["kind"] == "Pod"))
        for name in case.pods:
            cluster.wait_for_pod(name, case.until, f"of {case.name}", timeout=120)
        if case.at_once:
            return look(cluster, case)
        time.sleep(REST)
        seen = look(cluster, case)
        for name in case.pods:
            cluster.delete("Pod", name, gracePeriodSeconds=0)
        return seen

    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        runs = {case.name: pool.submit(run, case) for case in CASES}
        concurrent.futures.wait(runs.values())
    return runs


@pytest.fixture(scope="module")
def played(real_nodes):
    """(laptop, kubelet): what was seen on each."""
    with Cluster() as laptop, concurrent.futures.ThreadPoolExecutor(2) as pool:
        both = [pool.submit(play, cluster) for cluster in (laptop, Kubelet(real_nodes))]
        return [one.result() for one in both]


def listed(case, pod, field):
    """The entries of differences.yaml that speak of a field."""
    return [entry for entry in DIFFERENCES
            if fnmatch.fnmatchcase(pod, entry.get("pod", "*")) and fnmatch.fnmatchcase(field, entry["field"])
            and fnmatch.fnmatchcase(case, entry.get("case", "*"))]


def is_as_listed(entry, ours, theirs):
    return all(key not in entry or entry[key] == value for key, value in (("laptop", ours), ("kubelet", theirs)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_agrees(played, case):
    ours, theirs = (runs[case.name].result() for runs in played)
    wrong = []
    for pod in case.pods:
        for field in sorted(ours[pod].keys() | theirs[pod].keys()):
            here, there = ours[pod].get(field, ABSENT), theirs[pod].get(field, ABSENT)
            is_known = any(is_as_listed(entry, here, there) for entry in listed(case.name, pod, field))
            if here != there and not is_known:
                wrong.append(f"{pod} {field}:\n    laptop   {here!r}\n    kubelet  {there!r}")
    assert not wrong, "\n".join(wrong)


def test_every_listed_difference_is_one(played):
    """An entry that no pod of any case shows any more is to be taken off the list."""
    shown = []
    for case in CASES:
        ours, theirs = (runs[case.name].result() for runs in played)
        for pod in case.pods:
            for field in ours[pod].keys() | theirs[pod].keys():
                here, there = ours[pod].get(field, ABSENT), theirs[pod].get(field, ABSENT)
                if here != there:
                    shown += [entry for entry in listed(case.name, pod, field) if is_as_listed(entry, here, there)]
    assert [entry for entry in DIFFERENCES if entry not in shown] == []
    assert all(entry["why"] for entry in DIFFERENCES)
