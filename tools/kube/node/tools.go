//go:build tools

// Package tools names the commands to build, so that go.mod and go.sum cover what they need.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
