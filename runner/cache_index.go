package runner

import (
	"time"
	"waza/runner/plan"
)

// indexDelay is how long the cache may miss finished trials. Noting many trials at once is
// cheaper.
const indexDelay = time.Second

// indexer records the executions of its run in the index of the store. It has one goroutine,
// separate from the scheduler, which ends after close.
type indexer struct {
	run   *Run
	tasks chan string // hashes of executions
	done  chan struct{}
}

// newIndexer allocates space for all tasks of the run, so that note never blocks.
func newIndexer(r *Run) *indexer {
	x := &indexer{run: r, tasks: make(chan string, len(r.plan.Tasks)), done: make(chan struct{})}
	go x.work()
	return x
}

// note is called once for each task with an ended trial that later runs can reuse. It skips
// tasks with proposed system prompts, because later runs propose different ones.
func (x *indexer) note(t *plan.Task) {
	if t.Cell == nil || t.Cell.Generation == 0 {
		x.tasks <- t.Execution
	}
}

// close makes the indexer record the remaining tasks. It does not wait for that.
func (x *indexer) close() { close(x.tasks) }

// wait waits until a closed indexer has recorded all tasks.
func (x *indexer) wait() { <-x.done }

func (x *indexer) work() {
	defer close(x.done)
	for more := true; more; {
		hash, ok := <-x.tasks
		if !ok {
			return
		}
		batch := []string{hash}
		timer := time.NewTimer(indexDelay)
		for waiting := true; waiting && more; {
			select {
			case hash, more = <-x.tasks:
				if more {
					batch = append(batch, hash)
				}
			case <-timer.C:
				waiting = false
			}
		}
		timer.Stop()
		if err := x.run.runner.store.Index().Add(x.run.ID(), batch); err != nil {
			x.run.runner.log.Warn("later runs cannot reuse trials of this run", "run", x.run.ID(), "error", err)
		}
	}
}
