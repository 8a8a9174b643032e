// Package registry finds executors and graders by their names in suites. Make a [Registry] with
// [New].
package registry

import (
	"slices"

	"waza/eval"
)

// Registered is an entry of a [Registry]: an [eval.Kind], or a struct that embeds one.
type Registered interface {
	Is(name string) bool
	Described() eval.Kind
}

// A Registry finds executors or graders by their names in suites. It is immutable and safe for
// concurrent use. The zero value is empty.
type Registry[K Registered] struct{ kinds []K }

// New returns a registry of kinds. Reference documents list them in this order.
func New[K Registered](kinds ...K) *Registry[K] { return new(Registry[K]).With(kinds...) }

// With returns a registry with the kinds of r followed by further ones. It does not change r. A
// kind with the name of an earlier one replaces it.
func (r *Registry[K]) With(kinds ...K) *Registry[K] {
	all := slices.Clone(r.kinds)
	for _, k := range kinds {
		name := k.Described().Name
		if i := slices.IndexFunc(all, func(o K) bool { return o.Described().Name == name }); i >= 0 {
			all[i] = k
		} else {
			all = append(all, k)
		}
	}
	return &Registry[K]{all}
}

// Lookup returns the kind with that name or alias, in any letter case.
func (r *Registry[K]) Lookup(name string) (K, bool) { return eval.Find(r.kinds, name) }

// All returns the kinds. The caller owns the slice.
func (r *Registry[K]) All() []K { return slices.Clone(r.kinds) }

// Names returns the canonical names.
func (r *Registry[K]) Names() []string {
	names := make([]string, len(r.kinds))
	for i, k := range r.kinds {
		names[i] = k.Described().Name
	}
	return names
}

// Kinds returns the kinds for an [eval.Vocabulary]. The caller owns the slice.
func (r *Registry[K]) Kinds() []eval.Kind {
	kinds := make([]eval.Kind, len(r.kinds))
	for i, k := range r.kinds {
		kinds[i] = k.Described()
	}
	return kinds
}
