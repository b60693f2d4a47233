//go:build tools

// Package tools names the command to build, so that go.mod and go.sum cover what it needs.
package tools

import _ "sigs.k8s.io/kueue/cmd/kueue"
