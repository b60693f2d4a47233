"""Each process adds its rank to a sum over all of them, and trains one step together with the others."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")  # from MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE
value = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)

torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
model(torch.ones(2, 4)).sum().backward()
weights = model.module.weight.detach().clone()
dist.all_reduce(weights)
assert torch.allclose(weights, model.module.weight * dist.get_world_size())
print(f"torch: {int(value)} from {dist.get_world_size()} processes", flush=True)
dist.destroy_process_group()
