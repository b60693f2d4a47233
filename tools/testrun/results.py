"""What came of the tests, and the tables at the end of a run."""

import dataclasses


@dataclasses.dataclass
class Result:
    suite: str
    test: str
    outcome: str  # passed, failed, skipped
    seconds: float = 0.0
    text: str = ""  # of a failure, or why it was skipped
    first: str = ""  # what failed the first time, if it passed at the second try
    may_repeat: bool = True

    def __str__(self):
        return self.test if self.test.startswith(f"{self.suite}: ") else f"{self.suite}: {self.test}"


def time_of(seconds):
    return f"{seconds:8.1f}"


def table_of_suites(results, walls):
    """walls: {suite: seconds it took}, beside others."""
    lines = ["", f"{'suite':14}{'seconds':>8}{'passed':>9}{'failed':>8}{'skipped':>9}"]
    for name in dict.fromkeys(r.suite for r in results):
        own = [r for r in results if r.suite == name]
        seconds = walls.get(name, sum(r.seconds for r in own))
        count = {outcome: sum(r.outcome == outcome for r in own) for outcome in ("passed", "failed", "skipped")}
        lines.append(f"{name:14}{time_of(seconds)}{count['passed']:9}{count['failed']:8}{count['skipped']:9}")
    return "\n".join(lines)


def table_of_slowest(results, count=20):
    slowest = sorted((r for r in results if r.seconds >= 0.1 and r.suite != "build"), key=lambda r: -r.seconds)[:count]
    return "\n".join(["", f"The {len(slowest)} slowest tests, with their set-up:"]
                     + [f"{time_of(r.seconds)}  {r}" for r in slowest])


def failures(results):
    return "\n".join(f"\n=== failed: {r}\n{r.text.rstrip()}"
                     for r in results if r.outcome == "failed")


def skips(results):
    return "\n".join(f"skipped: {r}: {r.text}" for r in results if r.outcome == "skipped")


def closing_line(results):
    count = {outcome: sum(r.outcome == outcome for r in results) for outcome in ("passed", "failed", "skipped")}
    return f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"
