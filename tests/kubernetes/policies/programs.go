//go:build programs

// Package policies names the programs that are built as they are, so that go.mod holds what they need.
package policies

import (
	_ "github.com/projectcalico/calico/cni-plugin/cmd/calico"
	_ "github.com/projectcalico/calico/felix/cmd/calico-felix"
)
