"""A driver: waits until the cluster has as many nodes as it should, says so by a file of the host's name, and when there
is a file `go` beside it, runs a task on each node."""

import pathlib
import socket
import sys
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

nodes, signs = int(sys.argv[1]), pathlib.Path(sys.argv[2])
ray.init(address="auto", log_to_driver=False)
while len([n for n in ray.nodes() if n["Alive"]]) < nodes:
    time.sleep(0.2)
(signs / socket.gethostname()).touch()
while not (signs / "go").exists():
    time.sleep(0.2)


@ray.remote(num_cpus=0)
def where():
    return socket.gethostname()


hosts = ray.get([where.options(scheduling_strategy=NodeAffinitySchedulingStrategy(n["NodeID"], soft=False)).remote()
                 for n in ray.nodes() if n["Alive"]])
print("ray:", " ".join(sorted(hosts)), flush=True)
