package worker

import (
	"context"
	"sync"

	"waza/runner/fleet"
	"waza/runner/record"
)

// runs are the runs of the team as the worker knows them: their states, and what it keeps to
// execute their orders. It owns both maps.
type runs struct {
	worker *Worker

	mu     sync.Mutex // guards the fields below
	works  map[string]*work
	states map[string]fleet.RunState // by the tokens of runs
}

func newRuns(w *Worker) *runs {
	return &runs{worker: w, works: map[string]*work{}, states: map[string]fleet.RunState{}}
}

// prepare returns the state of a job's run, and fetches it for the first job. If the work is not
// nil, the job must leave it.
func (s *runs) prepare(ctx context.Context, j *job) (*work, error) {
	token := fleet.Token(j.Run)
	key := token + " " + j.Plan + " " + j.Files
	s.mu.Lock()
	var over []*work
	for id, k := range s.works {
		if k.restsTooLong() {
			over = append(over, k)
			delete(s.works, id)
		}
	}
	k := s.works[key]
	first := k == nil
	if first {
		k = &work{
			worker: s.worker, run: token, ready: make(chan struct{}), stopping: make(chan struct{}),
			orders: map[int]*template{}, jobs: map[*record.Order]*job{}, using: map[*job]struct{}{},
		}
		s.works[key] = k
	}
	k.enter(j)
	s.mu.Unlock()
	for _, k := range over {
		k.close()
	}
	if first {
		k.err = k.open(j)
		close(k.ready)
		if k.err != nil { // the next job tries again
			s.mu.Lock()
			if s.works[key] == k {
				delete(s.works, key)
			}
			s.mu.Unlock()
		}
	}
	select {
	case <-k.ready:
		return k, k.err
	case <-ctx.Done():
		return k, context.Cause(ctx)
	}
}

// state returns the state of a run.
func (s *runs) state(run string) fleet.RunState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, known := s.states[fleet.Token(run)]; known {
		return state
	}
	return fleet.Running // its card has not arrived yet
}

// learn handles the card of a run.
func (s *runs) learn(token string, card fleet.RunCard) {
	s.mu.Lock()
	s.states[token] = card.State
	var works []*work
	for id, k := range s.works {
		if k.run == token {
			works = append(works, k)
			if card.State == fleet.Over {
				delete(s.works, id)
			}
		}
	}
	s.mu.Unlock()
	if card.State == fleet.Over { // a job that is added later finds the state
		s.worker.jobs.end(errCancelled, func(j *job) bool { return fleet.Token(j.Run) == token })
	}
	for _, k := range works {
		if card.State != fleet.Running {
			k.stop()
		}
		if card.State == fleet.Over {
			k.close()
		}
	}
}

// close removes the state of all runs.
func (s *runs) close() {
	s.mu.Lock()
	list := s.works
	s.works = map[string]*work{}
	s.mu.Unlock()
	for _, k := range list {
		k.close()
	}
}
