"""On real nodes: kubelet, containerd, kube-proxy."""
