package grader

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"waza/runner/executor"
)

// errClosed says that the environment of the graders is closed.
var errClosed = errors.New("the run's graders are closed")

// pythonPool keeps interpreters warm, at most as many as it has slots. Its one
// goroutine of its own, of warmUp, ends before close returns.
type pythonPool struct {
	want  string        // as in Env.Python
	slots chan struct{} // holds one token for each interpreter that may be in use
	first chan struct{} // held while the first interpreter starts

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	warm   sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	idle       []*pythonWorker
	executable string // the real interpreter, once known
	warming    bool
	closed     bool
}

func newPythonPool(want string, workers int) *pythonPool {
	p := &pythonPool{want: want, slots: make(chan struct{}, workers), first: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for range workers {
		p.slots <- struct{}{}
	}
	return p
}

// acquire returns an interpreter for the caller alone, who hands it to release
// or discard. It waits while all slots are taken.
func (p *pythonPool) acquire(ctx context.Context) (*pythonWorker, error) {
	select {
	case <-p.slots:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.ctx.Done():
		return nil, errClosed
	}
	w, err := p.take(ctx)
	if err != nil {
		p.slots <- struct{}{}
	}
	return w, err
}

func (p *pythonPool) take(ctx context.Context) (*pythonWorker, error) {
	w, executable, err := p.pop()
	if w != nil || err != nil {
		return w, err
	}
	if executable == "" {
		// All wait for the first interpreter: it tells how to start the others.
		select {
		case p.first <- struct{}{}:
			defer func() { <-p.first }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if w, executable, err = p.pop(); w != nil || err != nil {
			return w, err
		}
	}
	return p.start(ctx, executable)
}

// pop takes an idle interpreter, if there is one.
func (p *pythonPool) pop() (w *pythonWorker, executable string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, "", errClosed
	}
	if n := len(p.idle); n > 0 {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	return w, p.executable, nil
}

// start starts an interpreter: the one that is known to work, else the first of
// the candidates that does.
func (p *pythonPool) start(ctx context.Context, known string) (*pythonWorker, error) {
	if known != "" {
		return startPython(ctx, known)
	}
	candidates, err := findPython(p.want)
	if err != nil {
		return nil, executor.Permanent(err)
	}
	var failed error
	for _, path := range candidates {
		w, err := startPython(ctx, path)
		if err == nil {
			p.works(cmp.Or(w.executable, path))
			return w, nil
		}
		failed = err // the last candidate is what `python3` means in a shell
	}
	return nil, failed
}

func (p *pythonPool) works(executable string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.executable = executable
}

// release gives an interpreter back in good order.
func (p *pythonPool) release(w *pythonWorker) {
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

// discard ends an interpreter that is no longer in good order, and returns what
// it said last.
func (p *pythonPool) discard(w *pythonWorker) string {
	said := w.kill()
	p.slots <- struct{}{}
	return said
}

// warmUp starts one interpreter in the background, once.
func (p *pythonPool) warmUp(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.warming || p.executable != "" {
		return
	}
	p.warming = true
	p.warm.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		if w, err := p.acquire(ctx); err == nil {
			p.release(w)
		}
	})
}

// close ends all interpreters, together, and waits for them.
func (p *pythonPool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.cancel()
	p.warm.Wait()
	var ending sync.WaitGroup
	for _, w := range idle {
		ending.Go(w.stop)
	}
	ending.Wait()
}
