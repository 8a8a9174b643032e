package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/internal/bundle"
	"waza/runner/record"
	"waza/runner/trial"
)

// work is the state of a run that a worker keeps while it executes orders of it. It is the
// [trial.Owner] of their trials.
type work struct {
	worker *Worker
	run    string        // token of the run's id
	ready  chan struct{} // closed when the fields below are set
	err    error
	plan   *fleet.Plan
	files  *bundle.Unpacked
	kept   *bundle.Kept
	env    *trial.Env
	dir    string

	stopping chan struct{} // closed when no further attempts are needed

	mu     sync.Mutex // guards the fields below
	orders map[int]*template
	jobs   map[*record.Order]*job
	using  map[*job]struct{}
	last   time.Time   // when a job left
	halted bool        // stopping is closed
	why    *fleet.Halt // reason why every further trial of the run would fail; nil if unknown
	gone   bool        // must not be used any more
}

// template is the order of a task, decoded once.
type template struct {
	once  sync.Once
	order *record.Order
	err   error
}

// restTime is how long a worker keeps the state of a run without orders.
const restTime = 10 * time.Minute

// openTime is the time limit for fetching what a run needs.
const openTime = 10 * time.Minute

func (k *work) open(j *job) error {
	w := k.worker
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	b, err := bundle.Fetch(ctx, w.store, j.Plan, fleet.MaxPlan)
	if err != nil {
		return fmt.Errorf("plan of the run: %w", err)
	}
	k.plan = new(fleet.Plan)
	if err := json.Unmarshal(b, k.plan); err != nil {
		return fmt.Errorf("plan of the run: %w", err)
	}
	if k.files, err = bundle.Unpack(ctx, w.store, j.Files, w.home.files, bundle.Limits{}); err != nil {
		return fmt.Errorf("files of the suite: %w", err)
	}
	if k.dir, err = os.MkdirTemp(w.home.work, "run-"); err != nil {
		return err
	}
	raw, err := k.plan.Order(j.Task)
	if err != nil {
		return err
	}
	decoder := &trial.Env{Executors: w.o.Executors, Graders: w.o.Graders}
	sent, err := decoder.Decode(raw)
	if err != nil {
		return err
	}
	sent.Workers = w.o.Slots
	k.env = trial.NewEnv(sent, w.o.Executors, w.o.Graders, w.o.Limits)
	k.env.Grading.Agents = w.o.Agents
	k.kept = bundle.NewKept(filepath.Join(k.dir, "left"), k.files)
	k.env.Worker = w.o.ID
	k.env.Dir, k.env.Stopping, k.env.Logger = filepath.Join(k.dir, "trials"), k.stopping, w.o.Log
	k.env.BlobsOf = k.kept.Of
	k.env.Owner = k
	return nil
}

// order returns the order of a task, from 1, with paths of this machine.
func (k *work) order(task int) (*record.Order, error) {
	k.mu.Lock()
	t := k.orders[task]
	if t == nil {
		t = &template{}
		k.orders[task] = t
	}
	k.mu.Unlock()
	t.once.Do(func() {
		raw, err := k.plan.Order(task)
		if err == nil {
			t.order, err = k.env.Decode(raw)
		}
		if err == nil {
			t.order, err = k.files.Relocate(t.order)
		}
		t.err = err
	})
	return t.order, t.err
}

// enter and leave keep the state that a job uses.
func (k *work) enter(j *job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.using[j] = struct{}{}
}

func (k *work) leave(j *job) {
	k.mu.Lock()
	delete(k.using, j)
	delete(k.jobs, j.order)
	k.last = time.Now()
	over := k.gone && len(k.using) == 0
	k.mu.Unlock()
	if over {
		k.remove()
	}
}

// connect records the job to which the messages of an order's trial belong.
func (k *work) connect(j *job, o *record.Order) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.jobs[o] = j
}

func (k *work) job(o *record.Order) *job {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.jobs[o]
}

// Start implements [trial.Owner]: it reports the start to the process of the run, which drops the
// trial if its scheduler does not need it.
func (k *work) Start(o *record.Order) (skip string) {
	if j := k.job(o); j != nil {
		k.worker.notes.send(j.Run, fleet.Note{ID: j.ID, Lost: j.before})
	}
	return ""
}

// Log implements [trial.Owner].
func (k *work) Log(o *record.Order, n trial.Notice) {
	if j := k.job(o); j != nil {
		j.note(n)
	}
}

// Halt implements [trial.Owner]: it stores the reason why the run should stop for the results that
// follow.
func (k *work) Halt(why *executor.StopError) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.why = &fleet.Halt{Message: why.Error(), Orderly: why.Orderly}
}

func (k *work) halting() *fleet.Halt {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.why
}

func (k *work) restsTooLong() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.using) == 0 && time.Since(k.last) > restTime
}

// stop prevents further attempts.
func (k *work) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.halted {
		k.halted = true
		close(k.stopping)
	}
}

// close removes the state of the run when its last job has left.
func (k *work) close() {
	k.mu.Lock()
	was := k.gone
	k.gone = true
	over := !was && len(k.using) == 0
	k.mu.Unlock()
	if over {
		k.remove()
	}
}

func (k *work) remove() {
	<-k.ready
	if k.env != nil {
		if err := k.env.Close(); err != nil {
			k.worker.o.Log.Warn("executor not closed", "run", k.run, "error", err)
		}
		k.env.Grading.Close()
		k.env.Pool.Close()
	}
	if k.files != nil {
		_ = k.files.Close()
		k.worker.home.trim()
	}
	k.worker.home.remove(k.dir)
}
