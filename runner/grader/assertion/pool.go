package assertion

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// UnavailableError says that this machine, or this program, has nothing that could
// evaluate assertions of a language, and what to do about it. Trying again is no use.
type UnavailableError struct{ why error }

func (e *UnavailableError) Error() string { return e.why.Error() }
func (e *UnavailableError) Unwrap() error { return e.why }

// ErrClosed says that a pool is closed.
var ErrClosed = errors.New("the run's graders are closed")

// Pool keeps the workers of one language warm, at most as many as it has slots. A
// worker that is killed is replaced when the next one is needed. The pool is safe
// for concurrent use. It has no goroutines of its own.
type Pool struct {
	language *Language
	slots    chan struct{} // holds one token for each worker that may be in use
	first    chan struct{} // held while the first worker starts
	closing  chan struct{} // closed by Close

	mu      sync.Mutex // guards the fields below
	idle    []*worker
	program string // the one that works, once known
	closed  bool
}

// NewPool returns a pool of up to size workers. Nothing is started until it is
// needed. The owner closes the pool.
func NewPool(language *Language, size int) *Pool {
	p := &Pool{
		language: language, slots: make(chan struct{}, size), first: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	for range size {
		p.slots <- struct{}{}
	}
	return p
}

// Grade evaluates assertions over a subject, a JSON object with the names that they
// see, and says what is wrong with each; an empty text means that it is true. Each
// may take as long as timeout. One that takes longer, or takes its worker down, is
// not true; those after it go on in another worker. Grade waits while all workers
// are in use.
//
// An error means that the assertions could not be evaluated: no worker can be
// started (an [*UnavailableError] where none ever can), the subject cannot be read, a worker was killed by somebody else, or ctx
// ended, of which the error is the cause.
func (p *Pool) Grade(ctx context.Context, subject json.RawMessage, assertions []string, timeout time.Duration) (complaints []string, err error) {
	complaints = make([]string, 0, len(assertions))
	for len(complaints) < len(assertions) {
		w, err := p.acquire(ctx)
		if err != nil {
			return nil, err
		}
		rest := assertions[len(complaints):]
		failed := w.grade(ctx, subject, rest, timeout, func(c string) { complaints = append(complaints, c) })
		if failed == nil {
			p.release(w)
			continue
		}
		complaint, err := w.fate(ctx, failed, timeout)
		p.discard(w)
		if err != nil {
			return nil, err
		}
		complaints = append(complaints, complaint)
	}
	return complaints, nil
}

// Check compiles assertions without running them. The result has nil for each one
// without a fault.
func (p *Pool) Check(ctx context.Context, assertions []string) ([]*Fault, error) {
	w, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	faults, err := w.check(ctx, assertions)
	if err != nil {
		p.discard(w)
		return nil, w.failed(err)
	}
	p.release(w)
	return faults, nil
}

// acquire returns a worker for the caller alone, who hands it to release or discard.
func (p *Pool) acquire(ctx context.Context) (*worker, error) {
	select {
	case <-p.slots:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.closing:
		return nil, ErrClosed
	}
	w, err := p.take(ctx)
	if err != nil {
		p.slots <- struct{}{}
	}
	return w, err
}

func (p *Pool) take(ctx context.Context) (*worker, error) {
	w, program, err := p.alive()
	if w != nil || err != nil {
		return w, err
	}
	if program == "" {
		// All wait for the first worker: it shows which program starts the others.
		select {
		case p.first <- struct{}{}:
			defer func() { <-p.first }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if w, program, err = p.alive(); w != nil || err != nil {
			return w, err
		}
	}
	return p.start(ctx, program)
}

// alive takes an idle worker whose process still runs, if there is one.
func (p *Pool) alive() (*worker, string, error) {
	for {
		w, program, err := p.pop()
		if w == nil || !w.ended(0) {
			return w, program, err
		}
		w.kill()
	}
}

// pop takes an idle worker, if there is one.
func (p *Pool) pop() (w *worker, program string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, "", ErrClosed
	}
	if n := len(p.idle); n > 0 {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	return w, p.program, nil
}

// start starts a worker by the program that is known to work, else by the first of
// the candidates that does.
func (p *Pool) start(ctx context.Context, known string) (*worker, error) {
	if known != "" {
		return startWorker(ctx, p.language, known)
	}
	candidates, err := p.language.find()
	if err != nil {
		return nil, &UnavailableError{err}
	}
	var failed error
	for _, program := range candidates {
		w, err := startWorker(ctx, p.language, program)
		if err == nil {
			p.works(cmp.Or(w.executable, program))
			return w, nil
		}
		failed = err // the last candidate is what its name means in a shell
	}
	return nil, failed
}

func (p *Pool) works(program string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program = program
}

// release gives back a worker that is in good order.
func (p *Pool) release(w *worker) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if closed {
		w.stop()
	}
	p.slots <- struct{}{}
}

// discard ends a worker that is no longer in good order.
func (p *Pool) discard(w *worker) {
	w.kill()
	p.slots <- struct{}{}
}

// Close ends all idle workers, together, and waits for them. One that is in use
// ends when its Grade does. Close may be called more than once.
func (p *Pool) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, w := range idle {
		ending.Go(w.stop)
	}
	ending.Wait()
}
