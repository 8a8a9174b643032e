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
