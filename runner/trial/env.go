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
	"waza/runner/grader/judge"
	"waza/runner/internal/machine"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/sandbox"
	"waza/runner/workspace"
)

// Env provides what this process offers to the trials of one run: executors, graders, clients of
// models, and directories for workspaces and their contents. Fill the exported fields, or call
// [NewEnv], and Close it after the last trial. It is safe for concurrent use. The exported
// fields must not change once a trial has started.
type Env struct {
	Executors *executor.Registry
	// Graders are the kinds of graders that suites can name. Grading is what the graders of the
	// run share.
	Graders *grader.Registry
	Grading *grader.Env
	// Pool provides the run's clients of models, and contains its budget and its secrets.
	Pool *provider.Pool
	// Blobs stores the contents of files in trials' workspaces. BlobsOf, if not nil, returns the
	// store for the trial of one order instead.
	Blobs   workspace.Keeper
	BlobsOf func(o *record.Order) workspace.Keeper
	// Dir is the directory for workspaces and temporary files.
	Dir string
	// State is the directory of waza's state, which the programs of trials must not see. Empty
	// means the one that contains Dir.
	State string
	// Worker names the worker of a fleet that executes the trials; empty in the process of the
	// run.
	Worker string
	// Owner is asked about the trials and hears of them; nil lets all start and hears nothing.
	Owner Owner
	// Stopping is closed when trials should not be tried again; nil means never.
	Stopping <-chan struct{}
	// Closed is closed when no further trials should start; nil means never.
	Closed <-chan struct{}
	// Logger logs what does not belong in a run's own events. A nil Logger discards it.
	Logger *slog.Logger

	inherit   sync.Once
	inherited []string // by processes of trials; set by inherit
	// latest caches what the last trial shares with others, because trials of one task follow each
	// other.
	latest  atomic.Pointer[shared]
	spares  workspace.Spares
	machine machine.Sampler

	mu     sync.Mutex // guards the fields below
	bound  map[*eval.Grader]boundGrader
	unread map[string]bool               // directories that a warning named, see [grader.Planned.Unread]
	tasks  map[boundTask][]*grader.Bound // including the expectations of the tasks
	execs  map[setup]executor.Executor
	// sandboxes are open while executors are; nil before, and if the suite has none.
	sandboxes *sandbox.Sandboxes
	histories map[string]*history     // by directory, see [Env.sealed]
	askers    map[string]*judge.Asker // of responders, by model
	known     map[string]any          // shared values of orders, by kind and JSON
}

// setup identifies an open executor. Options are compared by identity, because orders of one run
// share them.
type setup struct {
	name    string
	options any
	model   string
}

// NewEnv returns an Env for the trials of the run that an order belongs to, with its own clients
// of models and graders. limits may be nil.
func NewEnv(o *record.Order, executors *executor.Registry, graders *grader.Registry, limits *provider.Limits) *Env {
	pool := provider.ForSuite(o.Suite, limits)
	pool.Redactor().Learn(os.Environ())
	return &Env{
		Executors: executors, Graders: graders, Pool: pool,
		Grading: &grader.Env{Suite: o.Suite, Workers: o.Workers, Providers: pool, Executor: o.Executor, Model: o.Judge},
	}
}

// Close closes the executors that the Env opened. It does not close what the caller passed to
// the Env.
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
	e.sandboxes.Close()
	e.sandboxes = nil
	return first
}

// Decode decodes an order from JSON and gives its options their types. Decoded orders share
// equal parts, like those of a plan do.
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
	if kind.Options == nil { // executors are distinguished by their options
		o.Options = nil
		return o, nil
	}
	o.Options, err = known(e, "options of "+o.Executor, parts.Options, any(parts.Options), func(options *any) (err error) {
		*options, err = eval.DecodeOptions(kind.Kind, *options)
		return err
	})
	return o, err
}

// known returns the value that was decoded from the same JSON before. For new JSON it returns
// value, after give has set the types of its options.
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
			continue // nothing reads them
		}
		typed, err := eval.DecodeOptions(kind.Kind, options)
		if err != nil {
			return err
		}
		(*s).ExecutorOptions[name] = typed
	}
	return nil
}

// typeTask sets the types of the options of a task's graders. Equal graders of several tasks,
// mostly those of the suite, become one.
func (e *Env) typeTask(t **eval.Task) error {
	lists := [][]*eval.Grader{(*t).Effective}
	for _, c := range (*t).Inputs.Checkpoints {
		lists = append(lists, c.Graders)
	}
	for _, list := range lists {
		if err := e.typeGraders(list); err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) typeGraders(list []*eval.Grader) error {
	for i, g := range list {
		raw, err := json.Marshal(g)
		if err != nil {
			return err
		}
		list[i], err = known(e, "grader "+g.Name, raw, g, func(g **eval.Grader) (err error) {
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

// Open opens the executor of an order, if it is not open yet. A trial opens its executor itself
// if necessary; call Open to learn about errors first.
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
	if err := e.openSandboxesLocked(ctx, o); err != nil {
		return nil, err
	}
	settings := e.settings(o)
	settings.Sandboxes = e.sandboxes
	exec, err := kind.Open(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("executor %s: %w", kind.Name, err)
	}
	if e.execs == nil {
		e.execs = map[setup]executor.Executor{}
	}
	e.execs[key] = exec
	return exec, nil
}

// settings returns the settings of an order's executor, without sandboxes.
func (e *Env) settings(o *record.Order) executor.Settings {
	return executor.Settings{Suite: o.Suite, Options: o.Options, Model: o.Model, Workers: o.Workers, Temp: e.Dir, Providers: e.Pool}
}

// Capabilities returns what the executor of an order can report.
func (e *Env) Capabilities(o *record.Order) executor.Capabilities {
	kind, _ := e.Executors.Lookup(o.Executor)
	return kind.Can(e.settings(o))
}

// shared is what the trials of a task with one executor have in common.
type shared struct {
	boundTask
	runID, taskID string
	kind          executor.Kind
	caps          executor.Capabilities
	environ       []string          // of processes; never appended to in place
	exec          executor.Executor // nil until it is open
	graders       []*grader.Bound   // without that of a trigger; nil until they are built
}

// shared returns what an order's trial shares with others. Only Env changes it.
func (e *Env) shared(o *record.Order) *shared {
	key := boundTask{o.Task, setup{o.Executor, o.Options, o.Model}}
	if latest := e.latest.Load(); latest != nil && latest.runID == o.RunID && latest.taskID == o.TaskID && latest.boundTask == key {
		return latest
	}
	e.inherit.Do(func() { e.inherited = o.Suite.Config.Inherited(os.Environ()) })
	s := &shared{boundTask: key, runID: o.RunID, taskID: o.TaskID, environ: Environ(e.inherited, o)}
	s.kind, _ = e.Executors.Lookup(o.Executor)
	s.caps = s.kind.Can(e.settings(o))
	if e.Worker != "" {
		s.environ = slices.Clip(append(s.environ, WorkerVariable+"="+e.Worker)) // attempts append to it
	}
	e.latest.Store(s)
	return s
}

// keep adds the executor and the graders, which are ready, to what later trials find.
func (s *shared) keep(e *Env, exec executor.Executor, graders []*grader.Bound) *shared {
	ready := *s
	ready.exec, ready.graders = exec, graders
	e.latest.CompareAndSwap(s, &ready)
	return &ready
}

// WorkerVariable is the variable that names the worker of a fleet in the environment of
// processes that it starts for trials. The process of the run does not kill such processes.
const WorkerVariable = "WAZA_WORKER"

// Environ returns the environment of processes of an order's task: what they inherit from this
// process, then the task's own variables, then those that identify the trial.
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

// blobs returns the store for the contents of an order's trial.
func (e *Env) blobs(o *record.Order) workspace.Keeper {
	if e.BlobsOf != nil {
		return e.BlobsOf(o)
	}
	return e.Blobs
}

func (e *Env) owner() Owner {
	if e.Owner == nil {
		return nobody{}
	}
	return e.Owner
}

func (e *Env) log(o *record.Order, level, format string, args ...any) {
	e.owner().Log(o, Notice{Level: level, Message: fmt.Sprintf(format, args...)})
}

// logRun logs something about no single trial.
func (e *Env) logRun(level, format string, args ...any) { e.log(nil, level, format, args...) }

func (e *Env) logger() *slog.Logger { return cmp.Or(e.Logger, discard) }

var discard = slog.New(slog.DiscardHandler)
