package eval

import (
	"slices"
	"strings"
)

// Kind describes one executor or grader that a suite may name. The packages
// that implement them declare one each; eval needs only what is said here to
// check a suite, so it knows none of them by name.
type Kind struct {
	// Name is the canonical spelling; Aliases are others found in the field.
	Name    string
	Aliases []string
	// Summary is one sentence for reference documents.
	Summary string
	// Options returns a pointer to a fresh struct that holds the defaults;
	// the keys of its yaml tags are the options the kind takes. A grader's
	// come from its `config` map; an executor's stand in the suite's `config`
	// beside the common ones. Nil means it takes none.
	Options func() any
	// Check looks for faults that types alone do not show: bad patterns,
	// missing files, nothing to check. options is what Options returned,
	// decoded. It must not start a process or use the network. Nil means
	// there is nothing more to check.
	Check func(c *Check, options any)
	// Params says what an executor does with parameters of config.matrix that are
	// none of its options.
	Params ParamUse
	// Remote: an executor's agents live elsewhere. They take what tasks say under tool,
	// url, input and priority, and need no prompt where there is a tool or an input; they
	// get no files and no follow-up prompts.
	Remote bool
	// MeasuresSpeed: an executor reports how fast a model answers.
	MeasuresSpeed bool
	// Judges: graders of the kind ask models to judge. It returns the options of the
	// grader that suites of the kind judge give to tasks without one; nil for others.
	Judges func() any
}

// JudgeNamer is a type of options of graders that ask models to judge.
type JudgeNamer interface {
	// NamesJudge reports whether the options name the model, so that config need not.
	NamesJudge() bool
}

// Referrer is a type of options that name files whose content changes what the
// executor or grader does, such as scripts and snapshots.
type Referrer interface {
	// Refers returns the absolute paths of those that exist. The task is nil
	// where there is none.
	Refers(suite *Suite, task *Task) []string
}

// Described returns k, so that a [Registry] finds what a type that embeds it is called.
func (k Kind) Described() Kind { return k }

// Vocabulary is what the executors and graders of a program understand.
// It is immutable once built and safe for concurrent use.
type Vocabulary struct {
	Executors []Kind
	Graders   []Kind
}

// Executor returns the executor kind with that name or alias.
func (v *Vocabulary) Executor(name string) (Kind, bool) { return find(v.Executors, name) }

// Grader returns the grader kind with that name or alias.
func (v *Vocabulary) Grader(name string) (Kind, bool) { return find(v.Graders, name) }

// Is reports whether name is the kind's name or an alias, in any letter case.
func (k Kind) Is(name string) bool {
	return strings.EqualFold(k.Name, name) ||
		slices.ContainsFunc(k.Aliases, func(alias string) bool { return strings.EqualFold(alias, name) })
}

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
