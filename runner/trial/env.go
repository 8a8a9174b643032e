package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/journal"
	"waza/runner/provider"
	"waza/runner/record"
)

// Env is what this process offers to the trials of one run: executors, graders,
// clients of models, room for workspaces and for what they leave. Fill the exported
// fields, or call [NewEnv], and Close it after the last trial. It is safe for
// concurrent use; the exported fields must not change once a trial was begun.
type Env struct {
	Executors *executor.Registry
	// Graders are the kinds of graders that suites may name, Grading is what those of
	// the run share.
	Graders *grader.Registry
	Grading *grader.Env
	// Pool gives the run its clients of models, and knows its budget and its secrets.
	Pool *provider.Pool
	// Blobs keeps the contents of files that trials leave, Dir is where workspaces and
	// temporary files are made.
	Blobs *journal.Blobs
	Dir   string
	// Log takes what followers of the run may want to know. The order is nil for what
	// concerns no single trial. A nil Log discards it.
	Log func(o *record.Order, n Notice)
	// Begin is called for each trial that is about to begin: when its executor has
	// admitted the first attempt or, of executors that admit all, at once. A text that is
	// not empty says why the trial must not begin, and its verdict is skipped. Nil lets
	// all begin.
	Begin func(o *record.Order) (skip string)
	// Halt is called when no further trial of the run would fare better. Nil is fine.
	Halt func(why *executor.StopError)
	// Stopping is closed when trials should not be tried again; nil means never.
	Stopping <-chan struct{}
	// Closed is closed when no further trials should begin; nil means never.
	Closed <-chan struct{}
	// Logger takes what has no place in a run's own events. Nil discards it.
	Logger *slog.Logger

	inherit   sync.Once
	inherited []string // by processes of trials; set by inherit
	// latest is the environment that was asked for last: trials of one task follow each
	// other.
	latest atomic.Pointer[environment]

	mu    sync.Mutex // guards the fields below
	bound map[*eval.Grader]boundGrader
	tasks map[boundTask][]*grader.Bound // what is expected of the tasks included
	execs map[setup]executor.Executor
	known map[string]any // what orders share, by its kind and its JSON
}

// Notice is something that followers of a run may want to know about a trial.
type Notice struct {
	// Level is debug, info, warning or error.
	Level   string
	Message string
	// Attempt is the number of the attempt that begins with the notice; else 0.
	Attempt int
}

// setup is what an executor is opened for. Options are compared by identity: orders
// of one run share them.
type setup struct {
	name    string
	options any
	model   string
}

// NewEnv returns an Env for the trials of the run that an order belongs to, with
// clients of models and graders of its own. limits may be nil.
func NewEnv(o *record.Order, executors *executor.Registry, graders *grader.Registry, limits *provider.Limits) *Env {
	pool := provider.ForSuite(o.Suite, limits)
	pool.Redactor().Learn(os.Environ())
	return &Env{
		Executors: executors, Graders: graders, Pool: pool,
		Grading: &grader.Env{Suite: o.Suite, Workers: o.Workers, Providers: pool, Executor: o.Executor, Model: o.Judge},
	}
}

// Close ends the executors that were opened. What the caller gave to the Env stays
// the caller's.
func (e *Env) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var first error
	for s, exec := range e.execs {
		if err := exec.Close(); err != nil {
			first = cmp.Or(first, fmt.Errorf("executor %s: close: %w", s.name, err))
		}
	}
	e.execs = nil
	return first
}

// Decode reads an order that was encoded as JSON and gives its options their types.
// Orders that it decodes share what is equal, as those of a plan do.
func (e *Env) Decode(b []byte) (*record.Order, error) {
	var parts struct {
		Suite, Task, Options json.RawMessage
	}
	o := new(record.Order)
	if err := json.Unmarshal(b, o); err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	kind, ok := e.Executors.Lookup(o.Executor)
	if !ok {
		return nil, &record.UnknownExecutorError{Name: o.Executor, Known: e.Executors.Names()}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil {
		e.known = map[string]any{}
	}
	var err error
	if o.Suite, err = known(e, "suite", parts.Suite, o.Suite, e.typeSuite); err != nil {
		return nil, err
	}
	if o.Task, err = known(e, "task", parts.Task, o.Task, e.typeTask); err != nil {
		return nil, err
	}
	o.Options, err = known(e, "options of "+o.Executor, parts.Options, any(parts.Options), func(options *any) (err error) {
		*options, err = eval.DecodeOptions(kind.Kind, *options)
		return err
	})
	return o, err
}

// known returns the value that was decoded from the same JSON before or, for the first
// of its kind, value, once give has given its options their types.
func known[T any](e *Env, kind string, raw json.RawMessage, value T, give func(*T) error) (T, error) {
	key := kind + "\x00" + string(raw)
	if v, ok := e.known[key]; ok {
		return v.(T), nil
	}
	if err := give(&value); err != nil {
		return value, fmt.Errorf("order: %s: %w", kind, err)
	}
	e.known[key] = value
	return value, nil
}

func (e *Env) typeSuite(s **eval.Suite) error {
	for name, options := range (*s).ExecutorOptions {
		kind, ok := e.Executors.Lookup(name)
		if !ok {
			continue // nobody asks for them
		}
		typed, err := eval.DecodeOptions(kind.Kind, options)
		if err != nil {
			return err
		}
		(*s).ExecutorOptions[name] = typed
	}
	return nil
}

// typeTask gives a task's graders the types of their options. Equal graders of several
// tasks, those of the suite mostly, become one.
func (e *Env) typeTask(t **eval.Task) error {
	for i, g := range (*t).Effective {
		raw, err := json.Marshal(g)
		if err != nil {
			return err
		}
		(*t).Effective[i], err = known(e, "grader "+g.Name, raw, g, func(g **eval.Grader) (err error) {
			if kind, ok := e.Graders.Lookup((*g).Type); ok {
				(*g).Options, err = eval.DecodeOptions(kind.Kind, (*g).Options)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Open opens the executor of an order, if it is not open yet. A trial whose executor
// was not opened opens it itself; who calls Open learns of faults before.
func (e *Env) Open(ctx context.Context, o *record.Order) error {
	_, err := e.executor(ctx, o)
	return err
}

func (e *Env) executor(ctx context.Context, o *record.Order) (executor.Executor, error) {
	key := setup{o.Executor, o.Options, o.Model}
	e.mu.Lock()
	defer e.mu.Unlock()
	if exec := e.execs[key]; exec != nil {
		return exec, nil
	}
	kind, ok := e.Executors.Lookup(o.Executor)
	if !ok {
		return nil, executor.Permanent(&record.UnknownExecutorError{Name: o.Executor, Known: e.Executors.Names()})
	}
	exec, err := kind.Open(ctx, e.settings(o))
	if err != nil {
		return nil, fmt.Errorf("executor %s: %w", kind.Name, err)
	}
	if e.execs == nil {
		e.execs = map[setup]executor.Executor{}
	}
	e.execs[key] = exec
	return exec, nil
}

func (e *Env) settings(o *record.Order) executor.Settings {
	return executor.Settings{Suite: o.Suite, Options: o.Options, Model: o.Model, Workers: o.Workers, Temp: e.Dir, Providers: e.Pool}
}

// Capabilities are what the executor of an order can report.
func (e *Env) Capabilities(o *record.Order) executor.Capabilities {
	kind, _ := e.Executors.Lookup(o.Executor)
	return kind.Can(e.settings(o))
}

// environment is that of the processes of a task in a cell of the matrix.
type environment struct {
	runID, taskID string
	list          []string
}

// environ is the environment of a trial's processes. Nobody changes it.
func (e *Env) environ(o *record.Order) []string {
	if latest := e.latest.Load(); latest != nil && latest.runID == o.RunID && latest.taskID == o.TaskID {
		return latest.list
	}
	e.inherit.Do(func() { e.inherited = o.Suite.Config.Inherited(os.Environ()) })
	list := Environ(e.inherited, o)
	e.latest.Store(&environment{o.RunID, o.TaskID, list})
	return list
}

// Environ is the environment of processes of an order's task: what they inherit of
// this process, then the task's own variables, then those that say where they are.
func Environ(inherited []string, o *record.Order) []string {
	env := make([]string, 0, len(inherited)+len(o.Task.Inputs.Environment)+len(o.Params)+2)
	env = append(env, inherited...)
	for name, value := range o.Task.Inputs.Environment {
		env = append(env, name+"="+value)
	}
	for name, value := range o.Params {
		env = append(env, eval.EnvName(name)+"="+value)
	}
	return slices.Clip(append(env, "WAZA_RUN_ID="+o.RunID, "WAZA_TASK_ID="+o.Task.ID))
}

func (e *Env) log(o *record.Order, level, format string, args ...any) {
	if e.Log != nil {
		e.Log(o, Notice{Level: level, Message: fmt.Sprintf(format, args...)})
	}
}

// logRun reports something that concerns no single trial.
func (e *Env) logRun(level, format string, args ...any) { e.log(nil, level, format, args...) }

func (e *Env) halt(why *executor.StopError) {
	if e.Halt != nil {
		e.Halt(why)
	}
}

func (e *Env) logger() *slog.Logger { return cmp.Or(e.Logger, discard) }

var discard = slog.New(slog.DiscardHandler)
