package executor

import "waza/eval"

// Registry finds executors by name. It is immutable and safe for concurrent use.
type Registry = eval.Registry[Kind]

// NewRegistry holds the given kinds, in the order reference documents list them.
func NewRegistry(kinds ...Kind) *Registry { return eval.NewRegistry(kinds...) }
