package eval

import (
	"slices"
	"strings"

	"waza/eval/decode"
)

// A Kind describes one executor or grader that a suite can name. The packages that implement
// them declare one each. Package eval checks suites by these descriptions alone and refers to
// none of them by name.
type Kind struct {
	// Name is the canonical spelling; Aliases are other spellings in use.
	Name    string
	Aliases []string
	// Summary is one sentence for reference documents.
	Summary string
	// Options returns a pointer to a new struct that holds the defaults. The keys of its yaml
	// tags are the options of the kind. A grader has them in its `config` map; an executor has
	// them in the suite's `config`, beside the common keys. Nil means no options.
	Options func() any
	// Check looks for faults that types alone do not show: invalid patterns, missing files,
	// nothing to check. options is the decoded value from Options. Check must not start a
	// process or use the network. Nil means that there is nothing more to check.
	Check func(c *Check, options any)
	// Params is how an executor uses parameters of config.matrix that are not among its options.
	Params ParamUse
	// Remote means that an executor's agents run elsewhere. They get a task's tool, url, input
	// and priority, and need no prompt if there is a tool or an input. They get no files and no
	// follow-up prompts.
	Remote bool
	// MeasuresSpeed means that an executor reports how fast a model answers.
	MeasuresSpeed bool
	// TakesEffort means that an executor passes config.reasoning_effort to its model, or to its
	// agent if that offers the choice.
	TakesEffort bool
	// TakesSkills means that an executor passes the skills of a suite, and the agent under test,
	// to its agent or model.
	TakesSkills bool
	// TakesServers means that an executor passes MCP servers to its agent.
	TakesServers bool
	// TakesHistory means that an executor can start a conversation with messages that a task has.
	TakesHistory bool
	// ToolList is the option of a grader that lists the only tools that an agent may call. The
	// tools of the agent under test become a grader of the first kind that has one.
	ToolList string
	// Judges is set for graders that ask models to judge, and nil for all others. It returns the
	// options of the grader that suites of the kind judge give to tasks without one.
	Judges func() any
}

// A JudgeNamer is a type of options of graders that ask models to judge.
type JudgeNamer interface {
	// NamesJudge reports whether the options name the model, so that config need not name one.
	NamesJudge() bool
}

// An Addresser is a type of options of executors that send prompts to clients.
type Addresser interface {
	// ClientNames returns the clients that the options describe, whose names are unique
	// regardless of case. others is whether there may be more.
	ClientNames() (names []string, others bool)
}

// A Referrer is a type of options that name files, such as scripts and snapshots. The content of
// these files changes what the executor or grader does.
type Referrer interface {
	// Refers returns the absolute paths of the files that exist. The task is nil for options
	// that belong to no task.
	Refers(suite *Suite, task *Task) []string
}

// Described returns k, so that a registry can find the name of a type that embeds it.
func (k Kind) Described() Kind { return k }

// A Vocabulary lists the executors and graders of a program, and knows the addresses of its
// fleets and the hosts of its sandboxes. It is immutable and safe for concurrent use.
type Vocabulary struct {
	Executors []Kind
	Graders   []Kind
	// CheckFleet returns the fault of the address of a fleet, and whether a valid one contains a
	// password or token, which suites must not have. Nil accepts any address.
	CheckFleet func(address string) (login bool, err error)
	// CheckHost returns the fault of an entry of config.sandbox.network. Nil accepts any entry.
	CheckHost func(entry string) error
	// CheckDecide returns findings about the question of config.decide of a suite without errors. Nil
	// accepts any question.
	CheckDecide func(s *Suite) decode.Diagnostics
}

// Executor returns the executor kind with that name or alias.
func (v *Vocabulary) Executor(name string) (Kind, bool) { return Find(v.Executors, name) }

// Grader returns the grader kind with that name or alias.
func (v *Vocabulary) Grader(name string) (Kind, bool) { return Find(v.Graders, name) }

// Is reports whether name is the kind's name or an alias, in any letter case.
func (k Kind) Is(name string) bool {
	return strings.EqualFold(k.Name, name) ||
		slices.ContainsFunc(k.Aliases, func(alias string) bool { return strings.EqualFold(alias, name) })
}

// Find returns the kind with that name or alias, in any letter case.
func Find[K interface{ Is(name string) bool }](kinds []K, name string) (found K, ok bool) {
	for _, k := range kinds {
		if k.Is(name) {
			return k, true
		}
	}
	return found, false
}
