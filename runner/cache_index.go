package runner

import (
	"time"
	"waza/runner/plan"
)

// indexDelay is how long finished trials may be unknown to the cache: noting many
// at once costs less.
const indexDelay = time.Second

// indexer notes in the index of the store which executions its run holds. It has
// one goroutine, off the scheduler's path, which ends with close.
type indexer struct {
	run   *Run
	tasks chan string // hashes of executions
	done  chan struct{}
}

// newIndexer makes room for all the tasks of the run, so that note never waits.
func newIndexer(r *Run) *indexer {
	x := &indexer{run: r, tasks: make(chan string, len(r.plan.Tasks)), done: make(chan struct{})}
	go x.work()
	return x
}

// note is called once for each task of which a trial has ended that later runs may
// take over. Later runs propose other system prompts than this one.
func (x *indexer) note(t *plan.Task) {
	if t.Cell == nil || t.Cell.Generation == 0 {
		x.tasks <- t.Execution
	}
}

// close notes what is left, and waits until that is done.
func (x *indexer) close() {
	close(x.tasks)
	<-x.done
}

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
		if err := x.run.runner.store.Remember(x.run.ID(), batch); err != nil {
			x.run.runner.log.Warn("later runs cannot take trials over from this one", "run", x.run.ID(), "error", err)
		}
	}
}
