"""A driver: waits until the cluster has as many nodes as it should, then runs a task on each of them."""

import os
import socket
import sys
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

nodes = int(sys.argv[1])
ray.init(address="auto", log_to_driver=False)
while len([n for n in ray.nodes() if n["Alive"]]) < nodes:
    time.sleep(0.2)


@ray.remote(num_cpus=0)
def where():
    return socket.gethostname()


hosts = ray.get([where.options(scheduling_strategy=NodeAffinitySchedulingStrategy(n["NodeID"], soft=False)).remote()
                 for n in ray.nodes() if n["Alive"]])
print("ray:", " ".join(sorted(hosts)), flush=True)
