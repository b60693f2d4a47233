"""What runs beside what, and what is tried a second time."""

import concurrent.futures
import json
import os
import queue
import threading
import time

from . import folders, programs
from .unsteady import cache_folder

# Suites with real processes mostly wait: for processes, for clusters, for time to pass.
LANES = os.cpu_count() + 1
# More failures than that in one suite are no accident.
WORTH_REPEATING = 3


def durations():
    """{suite: seconds} of the last run on this machine."""
    path = cache_folder() / "durations.json"
    return json.loads(path.read_text()) if path.exists() else {}


def remember_durations(walls):
    cache_folder().mkdir(parents=True, exist_ok=True)
    (cache_folder() / "durations.json").write_text(json.dumps(durations() | walls, indent=1) + "\n")


def run_real(suite, *, repeat=True):
    """A suite with real processes; what failed is tried once more when all else is done."""
    is_folder = suite.kind == "folder"
    results = folders.run_folder(suite) if is_folder else programs.run_programs(suite)
    failed = [r for r in results if r.outcome == "failed"]
    if not repeat or len(failed) > WORTH_REPEATING or not all(r.may_repeat for r in failed):
        return results
    for result in failed:
        again = (folders if is_folder else programs).repeat(suite, result)
        if again.outcome == "passed":
            result.outcome, result.first = "passed", result.text
    return results


class Run:
    """Results and times of a run, told as they come."""

    def __init__(self):
        self.results = []
        self.walls = {}
        self._lock = threading.Lock()

    def suite(self, name, work):
        """Does the work of a suite; whether nothing failed."""
        begin = time.monotonic()
        results = work()
        seconds = time.monotonic() - begin
        failed = sum(r.outcome == "failed" for r in results)
        with self._lock:
            self.results += results
            self.walls[name] = seconds
            word = f"{failed} FAILED" if failed else "passed"
            print(f"{seconds:7.0f} s  {name:12} {word}, {len(results)} tests" if len(results) > 1
                  else f"{seconds:7.0f} s  {name:12} {word}", flush=True)
        return not failed

    def lanes(self, ready, aside, *, repeat=True):
        """Does `aside`, and runs beside it in lanes the suites with real processes that `ready` gives when
        what they need is there; those that took longest the last time first."""
        waiting = queue.SimpleQueue()

        def lane():
            while True:
                try:
                    suite = waiting.get_nowait()
                except queue.Empty:
                    return
                self.suite(suite.name, lambda: run_real(suite, repeat=repeat))

        with concurrent.futures.ThreadPoolExecutor(LANES + 1) as pool:
            under_way = [pool.submit(aside)]
            known = durations()
            for suite in sorted(ready(), key=lambda s: -known.get(s.name, s.seconds)):
                waiting.put(suite)
            under_way += [pool.submit(lane) for _ in range(min(LANES, waiting.qsize()))]
            for one in under_way:
                one.result()
