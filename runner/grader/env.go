package grader

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader/assertion"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// The languages of assertions.
const (
	LanguagePython     = "python"
	LanguageJavaScript = "javascript"
)

// DefaultAssertionTimeout is the default of [Env.AssertionTimeout].
const DefaultAssertionTimeout = 5 * time.Second

// An Env holds what the graders of one run share. It is safe for concurrent use and must not be
// copied. Interpreters and agents start when a grader needs them. The owner closes the Env after
// the last Grade has returned.
type Env struct {
	Suite *eval.Suite
	// Workers is the maximum number of trials graded at once, and therefore of interpreters of
	// each language that are kept warm. Less than 1 means one per processor.
	Workers int
	// AssertionTimeout is the time limit of one assertion; 0 means [DefaultAssertionTimeout].
	AssertionTimeout time.Duration
	// Python is the interpreter for Python assertions, a path or a name on
	// PATH; empty means $WAZA_PYTHON, else python3, else python.
	Python string
	// Executor and Model are the run's executor and model; empty means the suite's.
	Executor string
	Model    string
	// Agents opens the agents that judge; nil means that no agent can judge.
	Agents Agents
	// Recorded reports whether the trials come from a finished run. Recorded answers may then
	// replace questions to judges. A judge that cannot be asked is therefore reported only when
	// a trial needs it.
	Recorded bool
	// Providers supplies the judges' clients. It belongs to the run, which closes it after the
	// Env. If it is nil, the Env makes its own.
	Providers *provider.Pool
	// Planned holds the files of the graders.
	Planned Planned
	// Sandboxes restrict the programs that graders start. They belong to the run. Nil means that
	// nothing restricts them.
	Sandboxes *sandbox.Sandboxes

	once               sync.Once
	python, javaScript *assertion.Pool // set by once

	poolOnce sync.Once
	pool     *provider.Pool // set by poolOnce when Providers is nil

	mu     sync.Mutex                   // guards agents
	agents map[string]executor.Executor // open agents, by name
}

// Agents checks and opens the agents that can judge.
type Agents interface {
	// Check returns nil if the named agent can judge on this machine. Otherwise the error states
	// the reason and what to do.
	Check(suite *eval.Suite, name string) error
	// Needs lists what a machine needs for the agent to judge on it.
	Needs(suite *eval.Suite, name string) []record.Need
	// Open returns an executor that drives the agent. Each trial can bring MCP servers, see
	// [executor.Trial.Servers]; the agent can call their tools and do nothing else. Open uses
	// the settings Suite, Workers, Temp and Providers. The caller closes the executor.
	Open(s executor.Settings, name string) (executor.Executor, error)
}

// ErrNoAgents means that this program cannot drive agents.
var ErrNoAgents = errors.New("this program cannot drive agents, so no agent can judge")

// Agent returns the executor that drives the named agent as a judge. The first call opens it,
// with its temporary files below temp. The executor belongs to the Env.
func (e *Env) Agent(name, temp string) (executor.Executor, error) {
	if e.Agents == nil {
		return nil, ErrNoAgents
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.agents[name]; x != nil {
		return x, nil
	}
	workers := e.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	x, err := e.Agents.Open(executor.Settings{Suite: e.Suite, Workers: workers, Temp: temp, Providers: e.Clients(), Sandboxes: e.Sandboxes}, name)
	if err != nil {
		return nil, err
	}
	if e.agents == nil {
		e.agents = map[string]executor.Executor{}
	}
	e.agents[name] = x
	return x, nil
}

// closeAgents closes all open agents.
func (e *Env) closeAgents() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.agents {
		_ = x.Close() // nobody uses it any more, so its error does not matter
	}
	e.agents = nil
}

// Close ends all interpreters and agents, and waits for them. It may be called more than once.
// Graders must not be used afterwards.
func (e *Env) Close() {
	var ending sync.WaitGroup
	for _, language := range []string{LanguagePython, LanguageJavaScript} {
		ending.Go(e.Interpreters(language).Close)
	}
	ending.Go(e.closeAgents)
	ending.Wait()
	if e.Providers == nil {
		e.Clients().Close()
	}
}

// Clients returns the pool of clients that ask models.
func (e *Env) Clients() *provider.Pool {
	if e.Providers != nil {
		return e.Providers
	}
	e.poolOnce.Do(func() { e.pool = provider.ForSuite(e.Suite, nil) })
	return e.pool
}

// Interpreters returns the pool of interpreters for a language.
func (e *Env) Interpreters(language string) *assertion.Pool {
	e.once.Do(func() {
		workers := e.Workers
		if workers < 1 {
			workers = runtime.GOMAXPROCS(0)
		}
		e.python = assertion.NewPool(assertion.Python(e.Python), workers)
		e.javaScript = assertion.NewPool(assertion.JavaScript(), workers)
	})
	if language == LanguageJavaScript {
		return e.javaScript
	}
	return e.python
}

// AssertionLimit returns the time limit of one assertion: AssertionTimeout or its default.
func (e *Env) AssertionLimit() time.Duration {
	if e.AssertionTimeout > 0 {
		return e.AssertionTimeout
	}
	return DefaultAssertionTimeout
}
