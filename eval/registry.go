package eval

import "slices"

// Registered is what a [Registry] holds: a [Kind], or a struct that embeds one.
type Registered interface {
	Is(name string) bool
	Described() Kind
}

// Registry finds executors or graders by the names that suites may give them. It
// is immutable and safe for concurrent use. The zero value is empty.
type Registry[K Registered] struct{ kinds []K }

// NewRegistry holds the given kinds, in the order reference documents list them.
func NewRegistry[K Registered](kinds ...K) *Registry[K] { return new(Registry[K]).With(kinds...) }

// With returns a registry that has further kinds, in the order given, after those
// of r, which stays as it is. A kind that has the name of an earlier one takes its
// place.
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
func (r *Registry[K]) Lookup(name string) (K, bool) { return find(r.kinds, name) }

func find[K Registered](kinds []K, name string) (found K, ok bool) {
	for _, k := range kinds {
		if k.Is(name) {
			return k, true
		}
	}
	return found, false
}

// All returns the kinds. The caller owns the slice.
func (r *Registry[K]) All() []K { return slices.Clone(r.kinds) }

// Names lists the canonical names.
func (r *Registry[K]) Names() []string {
	names := make([]string, len(r.kinds))
	for i, k := range r.kinds {
		names[i] = k.Described().Name
	}
	return names
}

// Kinds returns what a [Vocabulary] needs. The caller owns the slice.
func (r *Registry[K]) Kinds() []Kind {
	kinds := make([]Kind, len(r.kinds))
	for i, k := range r.kinds {
		kinds[i] = k.Described()
	}
	return kinds
}
