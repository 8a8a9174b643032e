// Package executor defines what does a trial: the [Executor] interface, what an
// executor is told ([Trial]), what it leaves behind ([Outcome], [Transcript])
// and the [Registry] in which executors are found by name. Each executor is a
// package of its own below this one.
package executor

import (
	"context"
	"errors"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/provider"
	"waza/runner/record"
)

// Executor does trials. It is opened once per run and serves all of the run's
// workers, so Execute must be safe for concurrent use.
type Executor interface {
	// Execute does one attempt at a trial and returns when nothing of it is
	// left running. It records in t.Transcript as things happen, so that a
	// trial which is cut short keeps what there was. A nil error means that
	// the agent ended normally; any other error is a fault of the harness, the
	// network or the provider, never of the agent. When ctx ends, Execute
	// stops all it started and returns promptly.
	Execute(ctx context.Context, t *Trial) (Outcome, error)
	// Close ends what the executor keeps between trials. It is called once,
	// after the last Execute has returned.
	Close() error
}

// Capabilities are what an executor can report. The zero value reports output
// and tool calls only.
type Capabilities struct {
	// Canned: replies are made up, so they say nothing about what a suite expects.
	Canned bool
	// Skills: skill invocations are reported.
	Skills bool
	// Simulated: the suite itself says what happens, so that there is nothing
	// to learn of an agent. Canned executors are simulated, too.
	Simulated bool
	// Metered: it asks models through Settings.Providers, where what that costs
	// is counted as it happens.
	Metered bool
}

// Kind is an executor as the registry knows it.
type Kind struct {
	eval.Kind
	// Capabilities tells what the executor can report with these settings,
	// without opening it: recorded trials are graded by it. Nil means the zero
	// value.
	Capabilities func(s Settings) Capabilities
	// Open starts the executor for one run.
	Open func(ctx context.Context, s Settings) (Executor, error)
	// Waits: trials wait until one of the executor's agents is free, see [Admitter], so
	// that many may be handed over at once. Its agents say how many they take.
	Waits bool
	// Preflight looks for what would keep the executor from working on this
	// machine, such as a missing program: a warning, for the trials' verdict
	// will be error. Nil means nothing can be missing.
	Preflight func(ctx context.Context, s Settings) []Finding
}

// Contexter is a type of options of executors that put filler text before prompts.
type Contexter interface {
	// Context returns how many tokens of it there are, and how many an answer may have; 0
	// when the options do not say.
	Context() (tokens, most int)
}

// Can returns what the executor can report with these settings.
func (k Kind) Can(s Settings) Capabilities {
	if k.Capabilities == nil {
		return Capabilities{}
	}
	return k.Capabilities(s)
}

// Finding is something on this machine that keeps a suite from running as it says.
type Finding struct {
	Severity decode.Severity
	Code     decode.Code
	Message  string
}

// Settings are what an executor is opened with.
type Settings struct {
	Suite *eval.Suite
	// Options is what the kind's Options returned, decoded from the suite.
	Options any
	Model   string
	// Workers is the most trials that run at once.
	Workers int
	// Temp is the directory below which an executor puts its temporary files, made
	// at need. It is removed after a crash, too; empty means the system's.
	Temp string
	// Providers gives executors that ask models their clients. It belongs to
	// the run. Nil means the executor makes one of its own.
	Providers *provider.Pool
}

// Environment is a type of options that set environment variables of the agent.
// What they hold is looked through for keys, see provider.Redactor.
type Environment interface {
	Environment() map[string]string
}

// Driver is a type of options that choose an agent by its name.
type Driver interface {
	// AgentName is empty when the agent is written out.
	AgentName() string
}

// Admitter is an executor that can do only so many trials at once, such as one whose
// agents connect to it.
type Admitter interface {
	// Admit waits until there is room for an attempt at a trial. It is called before
	// the deadline of the attempt starts, so waiting takes neither time of the trial nor
	// an attempt. The caller releases the room when the attempt has ended. The error is
	// the cause of ctx when that ended, or says why there will never be room.
	Admit(ctx context.Context, a *Admission) (Room, error)
}

// Admission is what an [Admitter] knows of an attempt before it begins.
type Admission struct {
	*record.Order
	Attempt int // 1-based
	// Logf reports something to the run's followers that concerns more than this trial. It
	// may be called until the executor is closed. Never nil.
	Logf func(level, format string, args ...any)
}

// Room is a place that an [Admitter] keeps for one attempt. The attempt finds it in
// [Trial.Room].
type Room interface {
	// Release gives the place back. It is called once, after Execute has returned.
	Release()
}

// Trial is one attempt at a trial: its order, and what lives only in this process.
type Trial struct {
	*record.Order
	Attempt int // 1-based
	// Room is what [Admitter.Admit] returned; nil for executors that admit all.
	Room Room
	// Prompt and FollowUps are expanded and ready to send.
	Prompt    string
	FollowUps []string
	// Dir returns the workspace, an absolute directory that holds the task's
	// files. The directory is made at the first call, so an executor that
	// needs none should not ask.
	Dir func() (string, error)
	// Prepared says that the workspace holds now what the agent is to begin with:
	// nothing that is there is the agent's own. An executor that puts files there
	// calls it, once, before the agent begins. Nil means that nobody asks.
	Prepared func()
	// Env is the environment for the agent's process, as os.Environ has it.
	Env []string
	// Expand fills the template variables of a text of the suite.
	Expand func(text string) string
	// Transcript records what happens. Never nil.
	Transcript *Transcript
	// Logf tells the run's followers something they may want to know. Never nil.
	Logf func(level, format string, args ...any)
}

// Outcome is what an executor leaves behind.
type Outcome struct {
	// Output is the agent's final answer. What is beyond [MaxOutputBytes] is dropped.
	Output string
	// OutputDropped is how many bytes of the answer the executor has dropped already.
	OutputDropped int64
	// Usage is nil when the executor knows nothing of tokens.
	Usage *record.Usage
	// Speed is nil when the executor does not measure it.
	Speed *record.Speed
	// Startup is how much of the time passed before the agent was asked: what
	// graders see as the trial's duration is without it. The deadline is not.
	Startup time.Duration
}

// ErrTimeout is what an executor's error wraps when the agent was too slow by a
// limit of its own, such as first_event_timeout_seconds: the trial's verdict is
// timeout then.
var ErrTimeout = errors.New("timeout exceeded")

// Permanent marks an error that another try would meet again, such as a
// missing program, so that the trial is not retried.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// IsPermanent reports whether err or what it wraps was marked by [Permanent].
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

func sinceMS(start time.Time) int64 { return time.Since(start).Milliseconds() }
