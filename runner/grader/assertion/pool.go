package assertion

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// An UnavailableError means that this machine or program cannot evaluate assertions of a
// language. Its text states what to do. Retrying does not help.
type UnavailableError struct{ why error }

func (e *UnavailableError) Error() string { return e.why.Error() }
func (e *UnavailableError) Unwrap() error { return e.why }

// ErrClosed means that a pool is closed.
var ErrClosed = errors.New("the run's graders are closed")

// A Pool keeps up to size workers of one language warm. It replaces a killed worker when the
// next one is needed. It is safe for concurrent use and has no goroutines of its own.
type Pool struct {
	language *Language
	slots    chan struct{} // holds one token for each worker that can be in use
	first    chan struct{} // held while the first worker starts
	closing  chan struct{} // closed by Close

	mu      sync.Mutex // guards the fields below
	idle    []*worker
	program string // the program that works, once found
	closed  bool
}

// NewPool returns a pool of up to size workers. Workers start when they are needed. The owner
// closes the pool.
func NewPool(language *Language, size int) *Pool {
	p := &Pool{
		language: language, slots: make(chan struct{}, size), first: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	for range size {
		p.slots <- struct{}{}
	}
	return p
}

// Grade evaluates assertions about a subject, a JSON object with the names that they can use.
// The result has a complaint for each assertion, or an empty text if the assertion is true. Each
// assertion can take as long as timeout. An assertion that takes longer, or crashes its worker,
// fails; the next ones continue in another worker. Grade waits while all workers are in use.
//
// An error means that Grade could not evaluate the assertions. Either no worker could start (an
// [*UnavailableError] if none ever can), or the worker could not read the subject, or somebody
// else killed the worker, or ctx ended; the error is then the cause of ctx.
func (p *Pool) Grade(
	ctx context.Context, subject json.RawMessage, assertions []string, timeout time.Duration,
) (complaints []string, err error) {
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
		complaint, err := w.explainExit(ctx, failed, timeout)
		p.discard(w)
		if err != nil {
			return nil, err
		}
		complaints = append(complaints, complaint)
	}
	return complaints, nil
}

// Value returns the value of a JavaScript expression about a subject as JSON. If it has none, because it
// throws an exception, takes longer than timeout or crashes its worker, complaint is the reason. Errors
// are those of [Pool.Grade].
func (p *Pool) Value(
	ctx context.Context, subject json.RawMessage, source string, timeout time.Duration,
) (value json.RawMessage, complaint string, err error) {
	w, err := p.acquire(ctx)
	if err != nil {
		return nil, "", err
	}
	failed := w.ask(ctx, request{Subject: subject, Assertions: []string{source}, Value: true}, timeout, maxLongReply, func(r *reply) {
		value, complaint = r.Value, *r.Complaint
	})
	if failed == nil {
		p.release(w)
		return value, complaint, nil
	}
	complaint, err = w.explainExit(ctx, failed, timeout)
	p.discard(w)
	return nil, complaint, err
}

// Check compiles assertions without running them. The result has nil for each assertion without
// a fault.
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

// acquire returns a worker for the caller alone, who passes it to release or discard.
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
		// All wait for the first worker, which shows which program starts the others.
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

// alive takes an idle worker whose process still runs, or returns nil.
func (p *Pool) alive() (*worker, string, error) {
	for {
		w, program, err := p.pop()
		if w == nil || !w.ended(0) {
			return w, program, err
		}
		w.kill()
	}
}

// pop takes an idle worker, or returns nil.
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

// start starts a worker with the program that is known to work, or with the first candidate that
// does.
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
		failed = err // the last candidate is the one a shell would start
	}
	return nil, failed
}

func (p *Pool) works(program string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program = program
}

// release gives back a worker that still works.
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

// discard ends a worker that no longer works.
func (p *Pool) discard(w *worker) {
	w.kill()
	p.slots <- struct{}{}
}

// Close ends all idle workers concurrently and waits for them. A worker in use ends when its
// Grade does. Close may be called more than once.
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
