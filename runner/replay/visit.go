package replay

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"waza/runner/journal"
	"waza/runner/record"
)

// VisitTrials reads the trials of a state, one after the other. It calls visit with the index of
// the task and the trial. The trial belongs to visit.
func VisitTrials(run *journal.Run, st *State, visit func(task int, t *record.Trial) error) error {
	return visitPlaces(run, st, decodeWhole, func(task int, t **record.Trial) error { return visit(task, *t) })
}

func decodeWhole(f *Trials, raw []byte, t **record.Trial) error {
	*t = new(record.Trial)
	return f.DecodeRaw(raw, *t)
}

// VisitChosen is like [VisitTrials], for the trials that choose accepts by the index of their task
// and their number. It does not read the others. Another goroutine can call choose while visit runs.
func VisitChosen(
	run *journal.Run, st *State, choose func(task, num int) bool, visit func(task int, t *record.Trial) error,
) error {
	return visitSome(run, st, func(at taskPlace) bool {
		return at.ended() && choose(at.task, st.rec.Tasks[at.task].First+at.trial)
	}, decodeWhole, func(at *taskPlace, t **record.Trial) error { return visit(at.task, *t) })
}

// VisitOutcomes is like [VisitTrials], but leaves out transcripts, the outputs of earlier attempts
// and the rest of long outputs, which are most of the bytes of a run. more is the size of that rest.
func VisitOutcomes(run *journal.Run, st *State, visit func(task int, t *record.Trial, more int64) error) error {
	type outcome struct {
		t    *record.Trial
		more int64
	}
	return visitPlaces(run, st, func(f *Trials, raw []byte, o *outcome) (err error) {
		o.t = new(record.Trial)
		o.more, err = f.decodeOutcome(raw, o.t)
		return err
	}, func(task int, o *outcome) error { return visit(task, o.t, o.more) })
}

// VisitLean is like [VisitTrials], but omits outputs and transcripts. The trial is valid until visit
// returns; what it points to stays valid.
func VisitLean(run *journal.Run, st *State, visit func(task int, t *LeanTrial) error) error {
	return visitPlaces(run, st, func(_ *Trials, raw []byte, t *LeanTrial) error {
		*t = LeanTrial{}
		return asRecorded(t.Lift(raw))
	}, visit)
}

// VisitNumbers is like [VisitLean], but sets only the numbers of [LeanTrial.LiftNumbers].
func VisitNumbers(run *journal.Run, st *State, visit func(task int, t *LeanTrial) error) error {
	return visitPlaces(run, st, func(_ *Trials, raw []byte, t *LeanTrial) error {
		*t = LeanTrial{}
		return asRecorded(t.LiftNumbers(raw))
	}, visit)
}

// VisitKeepable is like [VisitLean] for the trials that a resumed run may keep because their verdict is
// final, and with errors also for those in error. It calls visit with the indexes of the task and the
// trial. err is why the JSON of the trial cannot be decoded.
func VisitKeepable(run *journal.Run, st *State, errors bool, visit func(task, trial int, t *LeanTrial, err error) error) error {
	type decoded struct {
		LeanTrial
		err error
	}
	keepable := func(at taskPlace) bool {
		return at.keepable() || errors && at.ended() && at.Verdict.Verdict() == record.Errored
	}
	return visitSome(run, st, keepable, func(_ *Trials, raw []byte, t *decoded) error {
		*t = decoded{}
		t.err = t.Lift(raw)
		return nil
	}, func(at *taskPlace, t *decoded) error { return visit(at.task, at.trial, &t.LeanTrial, t.err) })
}

func (at Place) ended() bool    { return at.Size > 0 }
func (at Place) keepable() bool { return at.ended() && at.Verdict.Verdict().Keepable() }

// Reading, verifying and decoding a trial usually takes longer than a visitor needs for it. The
// trials of a long run are therefore decoded on all processors, in parts of the journal, and
// visited by the caller in their order. The first part needs no workers, so short runs have none.
//
//	            ┌── worker: read, verify, decode ──┐
//	places ──►  ├── worker                         ├── order ──► visit
//	            └── worker  ◄───── free parts ─────┘

// partSize is the size of the parts that are read at once.
const partSize = 256 << 10

// A part holds successive trials that lie close together in the same file.
type part[T any] struct {
	places []taskPlace
	off    int64  // of text
	text   []byte // of the file
	fault  error  // of reading what follows the text
	trials []T
	good   int           // number of decoded trials
	err    error         // of the trial after them
	ready  chan struct{} // receives a value when the fields above are set
}

// taskPlace is the place of a trial, with the indexes of its task and of itself.
type taskPlace struct {
	Place
	task, trial int
}

// visiting owns a visit of the trials of a state, and the goroutines that decode them.
type visiting[T any] struct {
	files  *Trials
	wanted func(at taskPlace) bool
	decode func(f *Trials, raw []byte, t *T) error
	visit  func(at *taskPlace, t *T) error

	mu          sync.Mutex // guards the fields below
	st          *State
	task, trial int // the next place
	order       chan *part[T]
	ended       bool // order is closed
}

// visitPlaces decodes the trials of a state that have ended, and visits them in the order of the
// record. A decoded trial is valid until visit returns; what it points to stays valid. decode must
// be safe for concurrent use, and must not keep the bytes.
func visitPlaces[T any](
	run *journal.Run, st *State, decode func(f *Trials, raw []byte, t *T) error, visit func(task int, t *T) error,
) error {
	return visitSome(run, st, taskPlace.ended, decode, func(at *taskPlace, t *T) error { return visit(at.task, t) })
}

// visitSome is like visitPlaces for the trials at the wanted places.
func visitSome[T any](
	run *journal.Run, st *State, wanted func(at taskPlace) bool,
	decode func(f *Trials, raw []byte, t *T) error, visit func(at *taskPlace, t *T) error,
) error {
	f, err := OpenTrials(run)
	if err != nil {
		return err
	}
	defer f.Close()
	v := &visiting[T]{files: f, wanted: wanted, decode: decode, visit: visit, st: st}
	first := new(part[T])
	if !v.next(first) {
		return nil
	}
	v.fill(first)
	if err := v.pass(first); err != nil || v.task == len(st.Tasks) {
		return err
	}
	return v.together()
}

// together visits the trials from the next part on, while workers decode further parts. The workers
// have ended when it returns.
func (v *visiting[T]) together() error {
	workers := runtime.GOMAXPROCS(0)
	parts := workers + 2 // so that workers seldom wait for the visitor
	free, stop := make(chan *part[T], parts), make(chan struct{})
	v.order = make(chan *part[T], parts)
	for range parts {
		free <- &part[T]{ready: make(chan struct{}, 1)}
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(stop)
	for range workers {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case p := <-free:
					if !v.next(p) {
						return
					}
					v.fill(p)
					p.ready <- struct{}{}
				}
			}
		})
	}
	for p := range v.order {
		<-p.ready
		if err := v.pass(p); err != nil {
			return err
		}
		free <- p
	}
	return nil
}

// next chooses the places of the next part, and queues it for the visitor. It returns false after
// the last part.
func (v *visiting[T]) next(p *part[T]) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.places = p.places[:0]
	start, end := int64(0), int64(0)
	for ; v.task < len(v.st.Tasks); v.task, v.trial = v.task+1, 0 {
		for trials := v.st.Tasks[v.task].Trials; v.trial < len(trials); v.trial++ {
			at := taskPlace{trials[v.trial], v.task, v.trial}
			if !v.wanted(at) {
				continue
			}
			from, to := at.Off, at.Off+int64(at.Size)
			if len(p.places) > 0 {
				from, to = min(from, start), max(to, end)
				if to-from > partSize || at.inResult != p.places[0].inResult {
					return v.queue(p, start, end)
				}
			}
			start, end = from, to
			p.places = append(p.places, at)
		}
	}
	return v.queue(p, start, end)
}

// queue passes a part with the bytes from start to end to the visitor, or the end if it is empty.
func (v *visiting[T]) queue(p *part[T], start, end int64) bool {
	if size := int(end - start); size > cap(p.text) {
		p.text = make([]byte, max(size, partSize))
	}
	p.off, p.text = start, p.text[:end-start]
	switch {
	case v.order == nil: // the caller visits it
	case len(p.places) > 0:
		v.order <- p // never blocks
	case !v.ended:
		v.ended = true
		close(v.order)
	}
	return len(p.places) > 0
}

// fill reads, verifies and decodes the trials of a part, except those with contents in other files:
// as these may be large, only one of them at a time is in memory.
func (v *visiting[T]) fill(p *part[T]) {
	from, err := v.files.fileOf(p.places[0].Place)
	n := 0
	if err == nil {
		n, err = from.ReadAt(p.text, p.off)
	}
	p.text, p.fault, p.err = p.text[:n], err, nil
	p.trials = slices.Grow(p.trials[:0], len(p.places))[:len(p.places)]
	for p.good = 0; p.good < len(p.places); p.good++ {
		raw, err := p.bytes(p.good)
		if err == nil && !p.places[p.good].stored {
			err = v.decode(v.files, raw, &p.trials[p.good])
		}
		if p.err = err; err != nil {
			return
		}
	}
}

// bytes returns the verified bytes of a trial.
func (p *part[T]) bytes(i int) ([]byte, error) {
	at := &p.places[i]
	start := at.Off - p.off
	end := start + int64(at.Size)
	if end > int64(len(p.text)) {
		return at.verified(nil, p.fault)
	}
	return at.verified(p.text[start:end:end], nil)
}

// pass visits the trials of a part.
func (v *visiting[T]) pass(p *part[T]) error {
	for i := range p.trials[:p.good] {
		at := &p.places[i]
		if at.stored {
			start := at.Off - p.off
			if err := v.decode(v.files, p.text[start:start+int64(at.Size)], &p.trials[i]); err != nil {
				return v.fault(at.task, err)
			}
		}
		if err := v.visit(at, &p.trials[i]); err != nil {
			return err
		}
	}
	if p.err != nil {
		return v.fault(p.places[p.good].task, p.err)
	}
	return nil
}

// fault returns the error of a trial with its task.
func (v *visiting[T]) fault(task int, err error) error {
	if v.st.rec == nil {
		return err
	}
	return fmt.Errorf("task %s: %w", v.st.rec.Tasks[task].ID, err)
}
