"""A real Kubernetes control plane for tests, and a proxy that adds faults in front of it."""
