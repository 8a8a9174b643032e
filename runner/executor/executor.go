// Package executor defines how trials are executed: the [Executor] interface, its input
// ([Trial]), its result ([Outcome], [Transcript]), and the [Registry] that finds executors by
// name. Each executor is a package below this one.
package executor

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Executor executes trials. It is opened once per run and serves all workers of the run, so
// Execute must be safe for concurrent use.
type Executor interface {
	// Execute makes one attempt at a trial. It returns when everything it started has stopped.
	// It records events in t.Transcript as they happen, so that a trial that is cut short keeps
	// them. A nil error means that the agent ended normally. Any other error is a fault of the
	// harness, the network or the provider, never of the agent; the exceptions are [FailedError]
	// and [RetryError]. When ctx ends, Execute stops everything it started and returns promptly.
	Execute(ctx context.Context, t *Trial) (Outcome, error)
	// Close releases the resources that the executor keeps between trials. It is called once,
	// after the last Execute has returned.
	Close() error
}

// Capabilities describe what an executor can report. With the zero value it reports output and
// tool calls only.
type Capabilities struct {
	// Canned means that replies are made up, so scores say nothing about an agent.
	Canned bool
	// Skills means that the executor reports skill invocations.
	Skills bool
	// Clients means that prompts are routed to clients, and [Outcome.Routing] reports what they
	// did.
	Clients bool
	// Simulated means that the suite itself defines what happens, so results say nothing about
	// an agent. Canned executors are simulated, too.
	Simulated bool
	// Metered means that the executor asks models through Settings.Providers, which counts the
	// costs as they arise.
	Metered bool
	// Stepless means that the executor reports only answers, and no steps of an agent, such as tool calls and skills.
	Stepless bool
	// ToolAliases maps the tool names in the transcript to the names that suites use for them.
	// Nil means that suites use the names in the transcript.
	ToolAliases map[string][]string
}

// Kind is an entry of the registry: an executor and how to open it.
type Kind struct {
	eval.Kind
	// Capabilities returns what the executor can report with these settings, without opening it.
	// Recorded trials are graded by it. Nil means the zero value.
	Capabilities func(s Settings) Capabilities
	// Open starts the executor for one run.
	Open func(ctx context.Context, s Settings) (Executor, error)
	// WaitsForAgent means that a trial waits until one of the executor's agents is free, see
	// [Admitter]. Many trials can be handed over at once, because the agents limit how many they
	// take.
	WaitsForAgent bool
	// Programs means that it starts programs of the suite or of this machine, in the sandboxes of
	// the run. Agents means that these can serve many trials, one after the other.
	Programs, Agents bool
	// Contained means that no process of the executor that has seen the workspace of a trial
	// outlives the trial. Other trials can then get the same directory, emptied.
	Contained bool
	// Streams means that the transcript gets calls of tools and skills while the agent works, so that waza
	// can end an agent whose verdict is decided, see [EndError].
	Streams bool
	// Preflight reports what would keep the executor from working on this machine, such as a
	// missing program. The findings are warnings, because such trials end in error. Nil means
	// that nothing can be missing.
	Preflight func(ctx context.Context, s Settings) []Finding
	// Needs lists what a machine must have to execute trials with these settings, whether or not
	// this machine has it. Nil means nothing.
	Needs func(s Settings) []record.Need
	// LocalReason returns the reason why other machines cannot execute trials with these settings, or
	// "" if they can. Nil means that they can.
	LocalReason func(s Settings) string
}

// ContextSizer is implemented by the options of executors that put filler text before prompts.
type ContextSizer interface {
	// Context returns the size of the filler text and the limit of an answer, both in tokens. A
	// value is 0 if the options do not set it.
	Context() (tokens, most int)
}

// Can returns what the executor can report with these settings.
func (k Kind) Can(s Settings) Capabilities {
	if k.Capabilities == nil {
		return Capabilities{}
	}
	return k.Capabilities(s)
}

// Finding is a problem of this machine that keeps a suite from running as written.
type Finding struct {
	Severity decode.Severity
	Code     decode.Code
	Message  string
}

// Settings are the arguments with which an executor is opened.
type Settings struct {
	Suite *eval.Suite
	// Options is the value that the kind's Options returned, decoded from the suite.
	Options any
	Model   string
	// Workers is the maximum number of trials that run at the same time.
	Workers int
	// Temp is the directory for temporary files of the executor, created on demand. It is
	// removed after a crash, too. Empty means the directory of the system.
	Temp string
	// Providers supplies clients to executors that ask models. The run owns it. Nil means that
	// the executor creates its own.
	Providers *provider.Pool
	// Sandboxes restrict the programs that the executor starts. The run owns them. Nil means
	// that nothing restricts them.
	Sandboxes *sandbox.Sandboxes
}

// Environment is implemented by options that set environment variables of the agent. Their
// values are searched for keys, see secrets.Redactor.
type Environment interface {
	Environment() map[string]string
}

// Driver is implemented by options that choose an agent by name.
type Driver interface {
	// AgentName returns the name, or "" if the options define the agent themselves.
	AgentName() string
}

// Admitter is an executor with a limited capacity for concurrent trials, such as one whose
// agents connect to it.
type Admitter interface {
	// Admit waits until there is room for an attempt at a trial. It is called before the
	// deadline of the attempt starts, so waiting costs neither time nor an attempt. The caller
	// releases the room when the attempt has ended. The error is the cause of ctx if ctx ended,
	// or explains why there will never be room.
	Admit(ctx context.Context, a *Admission) (Room, error)
}

// Admission describes an attempt before it starts, for an [Admitter].
type Admission struct {
	*record.Order
	Attempt int // from 1
	// Logf reports something that concerns more than this trial to the followers of the run. It
	// can be called until the executor is closed. Never nil.
	Logf func(level, format string, args ...any)
}

// Room is a place that an [Admitter] keeps for one attempt. The attempt finds it in
// [Trial.Room].
type Room interface {
	// Release gives the place back. It is called once, after Execute has returned.
	Release()
}

// Trial is one attempt at a trial: its order, and the state that exists only in this process.
type Trial struct {
	*record.Order
	Attempt int // from 1
	// Room is the result of [Admitter.Admit]; nil for executors that are not admitters.
	Room Room
	// Prompt and FollowUps have their templates expanded and are ready to send.
	Prompt    string
	FollowUps []string
	// After returns the prompt that follows an answer, in place of FollowUps. Nil means that
	// FollowUps apply. See [Trial.Converse].
	After Next
	// EndAgent means that waza puts files into the workspace after the agent, for graders. Before Execute
	// returns, the executor ends an agent that it would keep for other trials. After sets it.
	EndAgent bool
	// Dir returns the workspace, an absolute directory that holds the task's files. The first
	// call creates it, so an executor that needs no workspace should not call Dir.
	Dir func() (string, error)
	// Prepared marks the workspace as complete: it contains everything the agent starts with,
	// and nothing the agent made. An executor that puts files there calls it once, before the
	// agent starts. Nil means that no caller needs the mark.
	Prepared func()
	// Env is the environment of the agent's process, in the form of os.Environ.
	Env []string
	// Expand replaces the template variables in a text of the suite.
	Expand func(text string) string
	// Servers are MCP servers that waza adds to those of the suite, for this attempt only.
	// Executors without support for MCP servers ignore them.
	Servers []Server
	// Transcript records the events of the attempt. Never nil.
	Transcript *Transcript
	// Logf reports a notable event to the followers of the run. Never nil.
	Logf func(level, format string, args ...any)
}

// Start returns the directory in which the agent starts: the task's workdir, or the workspace
// itself. It calls Dir and so creates the workspace.
func (t *Trial) Start() (string, error) {
	dir, err := t.Dir()
	return filepath.Join(dir, filepath.FromSlash(t.Task.Inputs.Workdir)), err
}

// Server is an MCP server. An agent starts it without environment variables and uses its
// standard streams, or reaches it by URL: see package mcptools.
type Server struct {
	// Name is the name of the server. Agents put it before the names of its tools.
	Name    string
	Command string
	Args    []string
	// URL is the address for agents that start no servers, and Token the bearer token they have
	// to send. Both are empty if the server has no address.
	URL, Token string
	// Tools are the names of its tools. Some agents ask for permission to call a tool by its
	// bare name.
	Tools []string
}

// Outcome is the result of an execution.
type Outcome struct {
	// Output is the final answer of the agent. Everything beyond [MaxOutputBytes] is dropped.
	Output string
	// OutputDropped is the number of bytes of the answer that the executor has already dropped.
	OutputDropped int64
	// Usage is nil if the executor has no token counts.
	Usage *record.Usage
	// Speed is nil if the executor does not measure it.
	Speed *record.Speed
	// Routing records how clients handled the prompts. It is nil unless the executor gives
	// prompts to clients. The caller fills Expected.
	Routing *record.Routing
	// Startup is the time before the agent was asked. The duration that graders see excludes it,
	// but the deadline includes it.
	Startup time.Duration
}

// ErrTimeout is wrapped by errors of executors that mean that the agent exceeded a time limit of
// its own, such as first_event_timeout_seconds. The verdict of the trial is timeout then.
var ErrTimeout = errors.New("timeout exceeded")

// Permanent marks an error that would occur again in another attempt, such as a missing program.
// The trial is not retried.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// IsPermanent reports whether err or an error that it wraps was marked by [Permanent].
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

func sinceMS(start time.Time) int64 { return time.Since(start).Milliseconds() }
