package grader

import (
	"context"
	"fmt"
	"strings"

	"waza/eval"
	"waza/eval/registry"
	"waza/runner/executor"
	"waza/runner/grader/assertion"
)

// A Registry finds graders by type and builds them from their descriptions in a suite. It is
// immutable and safe for concurrent use.
type Registry struct{ registry.Registry[Kind] }

// NewRegistry returns a registry of the given kinds. Reference documents list them in this
// order.
func NewRegistry(kinds ...Kind) *Registry { return &Registry{*registry.New(kinds...)} }

// With returns a registry with additional kinds, like [registry.Registry.With].
func (r *Registry) With(kinds ...Kind) *Registry { return &Registry{*r.Registry.With(kinds...)} }

// Bind builds the grader that spec describes. If this program cannot grade with the type, every
// Grade of the returned grader fails. Bind returns an error for an unknown type or faulty
// options; the error does not name the grader.
func (r *Registry) Bind(spec *eval.Grader, env *Env) (*Bound, error) {
	k, ok := r.Lookup(spec.Type)
	if !ok {
		return nil, fmt.Errorf("unknown type %q; known types: %s", spec.Type, strings.Join(r.Names(), ", "))
	}
	if k.New == nil {
		return NewBoundAs(spec, k.Name, ungradable(k.Name)), nil
	}
	if spec.Transform != "" {
		if fault := assertion.CheckCall(spec.Transform); fault != nil {
			return nil, fmt.Errorf("transform: %w", fault)
		}
	}
	g, err := k.New(spec, env)
	if err != nil {
		return nil, err
	}
	b := NewBoundAs(spec, k.Name, g)
	b.transform, b.env = spec.Transform, env
	if _, ok := spec.Options.(eval.Referrer); ok {
		b.options, b.planned = spec.Options, &env.Planned
	}
	return b, nil
}

// ungradable is the grader of a type that suites can name, but that this program cannot grade
// with.
type ungradable string

func (u ungradable) Grade(context.Context, *Subject) (Score, error) {
	return Score{}, executor.Permanent(fmt.Errorf("this program cannot grade with type %q", string(u)))
}

// ResolveFiles returns the absolute paths of those names that are files of the suite.
func ResolveFiles(b eval.Beside, suite *eval.Suite, names ...string) []string {
	var files []string
	for _, name := range names {
		if abs, _, ok := b.Resolve(suite, name); ok {
			files = append(files, abs)
		}
	}
	return files
}

// KindOf returns a Kind built from functions that take the options as an *O. When k.Options is
// nil, the zero value of O holds the defaults. check and build can be nil.
func KindOf[O any](k eval.Kind, check func(*eval.Check, *O), build func(*O, *Env) (Grader, error)) Kind {
	if k.Options == nil {
		k.Options = func() any { return new(O) }
	}
	if check != nil {
		k.Check = func(c *eval.Check, options any) {
			if o, ok := options.(*O); ok {
				check(c, o)
			}
		}
	}
	kind := Kind{Kind: k}
	if build != nil {
		kind.New = func(spec *eval.Grader, env *Env) (Grader, error) {
			o, ok := spec.Options.(*O)
			if !ok {
				return nil, fmt.Errorf("options of type %s are missing", k.Name)
			}
			return build(o, env)
		}
	}
	return kind
}
