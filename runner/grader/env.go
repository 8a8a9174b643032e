package grader

import (
	"runtime"
	"sync"
	"time"

	"waza/eval"
	"waza/runner/grader/assertion"
	"waza/runner/provider"
)

// Languages of assertions.
const (
	LanguagePython     = "python"
	LanguageJavaScript = "javascript"
)

// DefaultAssertionTimeout is how long one assertion may take.
const DefaultAssertionTimeout = 5 * time.Second

// Env is what the graders of one run share. It is safe for concurrent use and
// must not be copied. The owner closes it when the last Grade has returned.
type Env struct {
	Suite *eval.Suite
	// Workers is the most trials that are graded at once, and so the most
	// interpreters of each language that are kept warm. Less than 1 means one per
	// processor.
	Workers int
	// AssertionTimeout bounds one assertion; 0 means [DefaultAssertionTimeout].
	AssertionTimeout time.Duration
	// Python is the interpreter for Python assertions, a path or a name on
	// PATH; empty means $WAZA_PYTHON, else python3, else python.
	Python string
	// Executor and Model are those of the run; empty means the suite's.
	Executor string
	Model    string
	// Recorded: the trials are those of a run that is over, so judges may not
	// have to be asked: what keeps one from being asked shows when it is.
	Recorded bool
	// Providers gives judges their clients. It belongs to the run, which closes
	// it after the Env. Nil means one of the Env's own.
	Providers *provider.Pool

	once               sync.Once
	python, javaScript *assertion.Pool // set by once

	poolOnce sync.Once
	pool     *provider.Pool // set by poolOnce when Providers is nil
}

// NewEnv returns what the graders of one run of suite share. Nothing is started
// until it is needed.
func NewEnv(suite *eval.Suite, workers int) *Env { return &Env{Suite: suite, Workers: workers} }

// Close ends all interpreters and waits for them. It may be called more than
// once; graders must not be used afterwards.
func (e *Env) Close() {
	var ending sync.WaitGroup
	for _, language := range []string{LanguagePython, LanguageJavaScript} {
		ending.Go(e.Interpreters(language).Close)
	}
	ending.Wait()
	if e.Providers == nil {
		e.Clients().Close()
	}
}

// Clients is what asks models.
func (e *Env) Clients() *provider.Pool {
	if e.Providers != nil {
		return e.Providers
	}
	e.poolOnce.Do(func() { e.pool = provider.ForSuite(e.Suite, nil) })
	return e.pool
}

// Interpreters are those of a language.
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

// AssertionLimit is how long one assertion may take, AssertionTimeout or its default.
func (e *Env) AssertionLimit() time.Duration {
	if e.AssertionTimeout > 0 {
		return e.AssertionTimeout
	}
	return DefaultAssertionTimeout
}
