"""Each process adds its rank to a sum over all of them."""

import os

import jax

jax.config.update("jax_cpu_collectives_implementation", "gloo")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", size, rank)

from jax.experimental import multihost_utils  # noqa: E402  (after initialize)

gathered = multihost_utils.process_allgather(jax.numpy.array([rank + 1]))
print(f"jax: {int(gathered.sum())} from {jax.process_count()} processes", flush=True)
