"""Each process adds its rank to a sum over all of them, and trains a model together with the others."""

import os

import numpy as np
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    tracker = RabitTracker(size, host_ip="0.0.0.0", port=port, sortby="task")
    tracker.start()
with collective.CommunicatorContext(dmlc_communicator="rabit", dmlc_tracker_uri=host, dmlc_tracker_port=port,
                                    dmlc_task_id=str(rank), dmlc_timeout=60, dmlc_retry=60):
    total = collective.allreduce(np.array([rank + 1.0]), collective.Op.SUM)
    rows = np.random.default_rng(rank).random((200, 3))
    model = xgboost.train({"objective": "reg:squarederror", "max_depth": 3},
                          xgboost.DMatrix(rows, label=rows.sum(axis=1)), num_boost_round=3)
    print(f"xgboost: {int(total[0])} from {collective.get_world_size()} processes", flush=True)
if rank == 0:
    tracker.wait_for()
