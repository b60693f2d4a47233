"""Fits a line on all processes together: each has its own share of the points, JAX adds up the gradients."""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(
    coordinator_address=os.environ["JAXOPERATOR_COORDINATOR_ADDRESS"],
    num_processes=int(os.environ["JAXOPERATOR_NUM_PROCESSES"]),
    process_id=int(os.environ["JAXOPERATOR_PROCESS_ID"]),
    cluster_detection_method="deactivate",  # all is said above
)
rank, size = jax.process_index(), jax.process_count()
print(f"process {rank} of {size}, {jax.local_device_count()} of {jax.device_count()} devices", flush=True)

SLOPE, OFFSET, POINTS = 3.0, -1.0, 512

mesh = jax.make_mesh((jax.device_count(),), ("data",))
points = NamedSharding(mesh, PartitionSpec("data"))
x_here = np.random.default_rng(rank).uniform(-1, 1, POINTS).astype(np.float32)
x = jax.make_array_from_process_local_data(points, x_here)
y = jax.make_array_from_process_local_data(points, SLOPE * x_here + OFFSET)


@jax.jit
def fit(x, y):
    def loss(weights):
        return jnp.mean((weights[0] * x + weights[1] - y) ** 2)

    def step(_, weights):
        return weights - 0.5 * jax.grad(loss)(weights)

    weights = jax.lax.fori_loop(0, 100, step, jnp.zeros(2))
    return weights, loss(weights), jnp.sum(jnp.ones_like(x))


weights, loss, count = fit(x, y)
assert count == size * POINTS, f"{count} points took part"
assert np.allclose(weights, [SLOPE, OFFSET], atol=1e-3), weights
print(f"process {rank}: y = {weights[0]:.3f} x + {weights[1]:.3f} from {int(count)} points, "
      f"loss {loss:.1e}", flush=True)
jax.distributed.shutdown()
