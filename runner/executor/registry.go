package executor

import "waza/eval/registry"

// Registry finds executors by name. It is immutable and safe for concurrent use.
type Registry = registry.Registry[Kind]

// NewRegistry returns a registry of the given kinds. Reference documents list them in this
// order.
func NewRegistry(kinds ...Kind) *Registry { return registry.New(kinds...) }
