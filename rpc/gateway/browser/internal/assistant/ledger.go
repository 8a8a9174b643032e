package assistant

import (
	"log/slog"
	"sync"
)

// ledger does what writes to the store, one job at a time and in the order of arrival, so that
// nobody who holds Assistants.mu waits for the disk. It owns a goroutine, which close ends. Its
// methods are safe for concurrent use.
type ledger struct {
	log  *slog.Logger
	done chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex // guards the fields below
	filled *sync.Cond
	jobs   []func()
	closed bool
}

func newLedger(log *slog.Logger) *ledger {
	l := &ledger{log: log, done: make(chan struct{})}
	l.filled = sync.NewCond(&l.mu)
	go l.work()
	return l
}

func (l *ledger) work() {
	defer close(l.done)
	for {
		l.mu.Lock()
		for len(l.jobs) == 0 && !l.closed {
			l.filled.Wait()
		}
		jobs := l.jobs
		l.jobs = nil
		l.mu.Unlock()
		if len(jobs) == 0 {
			return
		}
		for _, job := range jobs {
			job()
		}
	}
}

// add queues a job and does not block. It returns false after close.
func (l *ledger) add(job func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.jobs = append(l.jobs, job)
	l.filled.Signal()
	return true
}

// do does a job after all queued ones, and waits for it. Without Assistants.mu, because the jobs
// before may take it. The error is a [*Fault] after close.
func (l *ledger) do(job func() error) error {
	err := make(chan error, 1)
	if !l.add(func() { err <- job() }) {
		return &Fault{Code: CodeInternal, Message: "the server is shutting down"}
	}
	return <-err
}

// done is [ledger.do] for a job with a result.
func done[T any](l *ledger, job func() (T, error)) (result T, err error) {
	err = l.do(func() (err error) {
		result, err = job()
		return err
	})
	return result, err
}

// write queues a write. The ledger calls then with the fault, or with nil, after the write and
// without Assistants.mu.
func (l *ledger) write(do func() error, then func(*Fault)) {
	if !l.add(func() { then(l.saved(do)) }) {
		l.log.Error("writing to the store failed", "error", "the server is shutting down")
	}
}

// saved writes to the store, and repeats that once when it fails. The fault is meant for the
// client. Only jobs call it.
func (l *ledger) saved(do func() error) *Fault {
	err := do()
	if err == nil {
		return nil
	}
	l.log.Warn("writing to the store failed; retrying", "error", err)
	if err = do(); err == nil {
		return nil
	}
	l.log.Error("writing to the store failed", "error", err)
	return &Fault{Code: CodeInternal, Message: "the server cannot write to its database"}
}

// unread logs an error of reading from the store, and returns the fault for the client; nil
// without an error.
func (l *ledger) unread(err error) error {
	if err == nil {
		return nil
	}
	l.log.Error("reading from the store failed", "error", err)
	return &Fault{Code: CodeInternal, Message: "the server cannot read its database"}
}

// close does the queued jobs and ends the goroutine.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	l.filled.Signal()
	l.mu.Unlock()
	<-l.done
}
