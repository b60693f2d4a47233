"""Fits a line on all processes together: each has its own share of the points, PyTorch averages the gradients."""

import os

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")  # from MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size} at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)

SLOPE, OFFSET, POINTS = 3.0, -1.0, 512

x = torch.empty(POINTS, 1).uniform_(-1, 1, generator=torch.Generator().manual_seed(rank))
y = SLOPE * x + OFFSET
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(100):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()

weights = torch.cat([p.detach().flatten() for p in model.parameters()])
assert torch.allclose(weights, torch.tensor([SLOPE, OFFSET]), atol=1e-3), weights

everywhere = [torch.empty_like(weights) for _ in range(size)]
dist.all_gather(everywhere, weights)
assert all(torch.equal(other, weights) for other in everywhere), "the ranks do not have one model"
points = torch.tensor([POINTS])
dist.all_reduce(points)
print(f"rank {rank}: y = {weights[0]:.3f} x + {weights[1]:.3f} from {int(points)} points, "
      f"loss {loss:.1e}", flush=True)
dist.destroy_process_group()
