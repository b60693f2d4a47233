"""A 2-D array of pods adds up a series for pi: each takes one slice and sends it to the master."""

import math
import os
import socket
import time

name, jobs = os.environ["REPLICATED_JOB_NAME"], int(os.environ["REPLICATED_JOB_REPLICAS"])
job, pod = int(os.environ["JOB_INDEX"]), int(os.environ["JOB_COMPLETION_INDEX"])
here = f"{name}-{job}-{pod}, job {os.environ['JOB_GLOBAL_INDEX']} of {os.environ['GLOBAL_REPLICAS']}"

PORT, TERMS = 7000, 240_000
PODS = {"worker": 4, "worker-2": 4}  # of each job: `completions` in the manifest
SLICES = 5 * 4 + 1 * 4


def collect() -> float:
    """On the master: all slices, in whatever order they come."""
    slices = {}
    with socket.create_server(("0.0.0.0", PORT)) as server:
        while len(slices) < SLICES:
            with server.accept()[0] as connection, connection.makefile("rw") as line:
                index, value = line.readline().split()
                assert index not in slices, f"slice {index} came twice"
                slices[index] = float(value)
                line.write("thanks\n")
    return math.fsum(slices.values())


def send(text: str):
    """On the others: to the master, which may not be up yet."""
    experiment = os.environ["AICHOR_EXPERIMENT_ID"]
    master = (f"{experiment}-master-0-0.{experiment}", PORT)
    deadline = time.monotonic() + 120
    while True:
        try:
            with socket.create_connection(master, timeout=30) as connection, connection.makefile("rw") as line:
                line.write(text)
                line.flush()
                assert line.readline() == "thanks\n"
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"cannot reach {master}: {error}")
            time.sleep(0.1)


if name == "master":
    total = collect()
    assert math.isclose(total, math.pi, abs_tol=1e-5), total
    print(f"{here}: {SLICES} slices add up to {total:.5f}", flush=True)
else:
    index = {"worker": 0, "worker-2": 20}[name] + job * PODS[name] + pod
    assert job < jobs and index < SLICES
    send(f"{index} {math.fsum(4 * (-1) ** k / (2 * k + 1) for k in range(index, TERMS, SLICES))!r}\n")
    print(f"{here}: slice {index}", flush=True)
