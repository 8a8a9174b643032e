package executor

import "waza/eval"

// Registry finds executors by name. It is immutable and safe for concurrent use.
type Registry struct{ kinds []Kind }

// NewRegistry holds the given kinds, in the order reference documents list them.
func NewRegistry(kinds ...Kind) *Registry { return &Registry{kinds: kinds} }

// Lookup returns the kind with that name or alias.
func (r *Registry) Lookup(name string) (Kind, bool) {
	for _, k := range r.kinds {
		if k.Is(name) {
			return k, true
		}
	}
	return Kind{}, false
}

// Names lists the canonical names.
func (r *Registry) Names() []string {
	names := make([]string, len(r.kinds))
	for i, k := range r.kinds {
		names[i] = k.Name
	}
	return names
}

// Kinds returns what eval needs to check suites.
func (r *Registry) Kinds() []eval.Kind {
	kinds := make([]eval.Kind, len(r.kinds))
	for i, k := range r.kinds {
		kinds[i] = k.Kind
	}
	return kinds
}
