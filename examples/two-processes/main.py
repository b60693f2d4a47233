"""Two processes add up their ranks over a socket, found by the names that Grapnel gives them."""

import os
import socket
import time

host, port = os.environ["JAXOPERATOR_COORDINATOR_ADDRESS"].rsplit(":", 1)
rank = int(os.environ["JAXOPERATOR_PROCESS_ID"])
count = int(os.environ["JAXOPERATOR_NUM_PROCESSES"])


def gather() -> int:
    """On rank 0: the sum of all ranks, told to everyone who called."""
    total = rank
    with socket.create_server(("0.0.0.0", int(port))) as server:
        callers = [server.accept()[0] for _ in range(count - 1)]
    for caller in callers:
        total += int(caller.recv(16))
    for caller in callers:
        caller.sendall(str(total).encode())
        caller.close()
    return total


def call() -> int:
    """On the others: sends the rank to rank 0, which may not be up yet, and returns the sum."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                connection.sendall(str(rank).encode())
                return int(connection.recv(16))
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"cannot reach {host}:{port}: {error}")
            time.sleep(0.05)


total = gather() if rank == 0 else call()
assert total == count * (count - 1) // 2
print(f"rank {rank} of {count} on {socket.gethostname()}: the ranks add up to {total}")
