"""Trains one model on the rows of all processes: XGBoost adds up their histograms."""

import hashlib
import os

import numpy as np
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
ROWS = 500

if rank == 0:  # brings the others together
    tracker = RabitTracker(size, host_ip="0.0.0.0", port=port, sortby="task")
    tracker.start()

with collective.CommunicatorContext(dmlc_communicator="rabit", dmlc_tracker_uri=host, dmlc_tracker_port=port,
                                    dmlc_task_id=str(rank), dmlc_timeout=60, dmlc_retry=60):
    assert (collective.get_rank(), collective.get_world_size()) == (rank, size)
    print(f"rank {rank} of {size} at {host}:{port}", flush=True)

    features = np.random.default_rng(rank).uniform(-1, 1, (ROWS, 3))
    rows = xgboost.DMatrix(features, label=features.sum(axis=1))
    progress = {}
    model = xgboost.train({"objective": "reg:squarederror", "max_depth": 3, "nthread": 1}, rows, num_boost_round=50,
                          evals=[(rows, "train")], evals_result=progress, verbose_eval=False)
    error = progress["train"]["rmse"][-1]
    assert error < 0.15, error

    digest = int(hashlib.sha256(model.save_raw("json")).hexdigest()[:8], 16)
    together = collective.allreduce(np.array([digest, ROWS], dtype=np.float64), collective.Op.SUM)
    assert together[0] == digest * size, "the ranks do not have one model"
    print(f"rank {rank}: model {digest:08x} from {int(together[1])} rows, error {error:.3f}", flush=True)

if rank == 0:
    tracker.wait_for()
