// Package watch runs a suite again when its files change. Call [New], then
// [Watch.Next] for each round.
package watch

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"waza/eval/decode"
	"waza/runner"
	"waza/runner/record"
)

// Options say what is watched.
type Options struct {
	// Path is the suite file; findings show it as it is written here. What it
	// refers to is found by reading it.
	Path string
	// Request is what is asked of each run. Its Cache holds for the first: later
	// runs take over what was done before, whether it is set or not.
	Request record.Request
}

// Round is something that a watch has to tell: at its begin, and whenever files of
// the suite have changed.
type Round struct {
	// Files are the absolute paths of what has changed since the round before,
	// sorted; none in the first.
	Files []string
	// Run does what is due, and Tasks are the ids of that, without baselines, of
	// Total tasks of the suite that were asked for. Run is nil when nothing is due
	// or the suite cannot be run. It goes on by itself, also after the watch.
	Run   *runner.Run
	Tasks []string
	Total int
	// Diagnostics are the findings about the suite and this machine. With errors
	// among them nothing is run.
	Diagnostics decode.Diagnostics
	// Err says why nothing is run, besides: an error of eval.Load, Runner.Plan or
	// Runner.Start; or, as a [*Error], that some changes are not noticed.
	Err error
}

// Watch runs a suite again whenever it has changed, as far as it has: the tasks
// whose trials are others by their content, or were not finished. Make it with
// [New], and call Next for each round.
//
//	file changes ─► quiet for 100 ms ─► look: load, plan, hash ─► what is due ─► run
//
// While a run goes on, changes are looked at all the same. One of a task that the
// run has yet to finish makes the rest of it pointless: the run is cancelled, and
// what is due then is run anew. Other changes wait for its end.
//
// Its one goroutine, loop, ends with Close, with the context of Watch and with the
// runner; files are watched by one more, which loop ends.
type Watch struct {
	runner *runner.Runner
	o      Options
	path   string // absolute
	files  *fileWatch
	wait   debounce

	cancel context.CancelFunc
	rounds chan *Round
	done   chan struct{}

	// Of loop:
	seen     *look              // the last
	known    known              // what rounds told of files
	tasks    map[string]content // as the last round found them
	finished map[string]content // tasks by id, as they were when they were run to their end
	run      *runner.Run        // that goes on; nil for none
	running  map[string]content // its tasks
	queue    []*Round           // that were not taken yet
	first    bool               // nothing was told yet
	started  bool               // something was run
	redo     bool               // a run was cancelled for another to take its place
}

// New begins to watch a suite. The error is a [*Error] or [ErrClosed]. It
// ends with ctx, or by Close.
func New(ctx context.Context, r *runner.Runner, o Options) (*Watch, error) {
	select {
	case <-r.Closing():
		return nil, runner.ErrClosed
	default:
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	files, err := newFileWatch()
	if err != nil {
		return nil, err
	}
	w := &Watch{
		runner: r, o: o, path: path, files: files, wait: debounce{quiet: watchQuiet, most: watchMost},
		rounds: make(chan *Round), done: make(chan struct{}), finished: map[string]content{},
		known: known{sums: map[string]string{}, dirs: map[string]bool{}}, first: true,
	}
	ctx, w.cancel = context.WithCancel(ctx)
	stop := make(chan struct{})
	go func() {
		select {
		case <-r.Closing():
			w.cancel()
		case <-stop:
		}
	}()
	go func() {
		defer close(stop)
		w.loop(ctx)
	}()
	return w, nil
}

// Next returns the next round, waiting for it if need be: io.EOF when the watch has
// ended, the cause of ctx when that has.
func (w *Watch) Next(ctx context.Context) (*Round, error) {
	select {
	case round := <-w.rounds:
		return round, nil
	case <-w.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends the watch and waits until nothing of it is left. A run that goes on
// does so, but for one whose round was not taken: that is cancelled.
func (w *Watch) Close() {
	w.cancel()
	<-w.done
}

func (w *Watch) loop(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	defer w.files.close()
	defer w.wait.stop()
	defer func() { w.seen.close() }()
	defer w.orphans()
	w.lookAgain(ctx)
	for {
		var out chan *Round
		var next *Round
		if len(w.queue) > 0 {
			out, next = w.rounds, w.queue[0]
		}
		var over <-chan struct{}
		if w.run != nil {
			over = w.run.Done()
		}
		select {
		case <-ctx.Done():
			return
		case out <- next:
			w.queue = w.queue[1:]
		case e := <-w.files.notify.Events:
			if w.files.concerns(e) {
				w.wait.touch()
			}
		case err := <-w.files.notify.Errors:
			w.wait.touch() // events may be lost, so look
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.tell(&Round{Err: watchError(err)})
			}
		case <-w.wait.due():
			w.wait.done()
			w.lookAgain(ctx)
		case <-over:
			w.finish()
			w.react(ctx)
		}
	}
}

// orphans cancels a run that nobody was told of.
func (w *Watch) orphans() {
	for _, round := range w.queue {
		if round.Run != nil {
			round.Run.Cancel()
		}
	}
}

func (w *Watch) tell(r *Round) { w.queue = append(w.queue, r) }

// lookAgain reads the suite anew, watches what it is made of by now, and does what
// is to be done. What changes between reading a file and watching its directory
// nobody tells, so it reads until that is the same.
func (w *Watch) lookAgain(ctx context.Context) {
	var werr error
	for range 5 {
		l := w.look(ctx)
		more, err := w.files.set(l.paths)
		w.seen.close()
		w.seen, werr = l, err
		if !more || ctx.Err() != nil {
			break
		}
	}
	if werr != nil {
		w.tell(&Round{Err: werr})
	}
	w.react(ctx)
}

// react compares what there is with what was run, and runs what is due. While a
// run goes on it waits for its end, or makes for it.
func (w *Watch) react(ctx context.Context) {
	l := w.seen
	round := &Round{Diagnostics: l.diagnostics, Err: l.err}
	if !w.first {
		round.Files = w.known.changed(l)
	}
	now := l.contents()
	// Tasks may be others than the digests of files tell: one may have been saved
	// while the suite was read.
	news := w.first || len(round.Files) > 0 || now != nil && !maps.Equal(now, w.tasks)
	switch {
	case l.err != nil || l.diagnostics.HasErrors():
		if !news {
			return
		}
	case l.plan == nil: // it was started, and nothing has changed since
		return
	case w.run != nil:
		if w.pointless() {
			w.run.Cancel()
			w.redo = true
		}
		return
	case !news && !w.redo: // what did not come to an end is tried again when something changes
		return
	default:
		round.Total = l.total()
		w.start(ctx, round)
	}
	w.first, w.redo = false, false
	w.known.learn(l)
	w.tasks = now
	if ctx.Err() == nil {
		w.tell(round)
	}
}

// total is how many tasks there are, baselines not counted.
func (l *look) total() int {
	n := 0
	for _, t := range l.plan.Tasks {
		if t.Role != record.RoleBaseline {
			n++
		}
	}
	return n
}

// start runs what is due, if anything is, and notes it in the round.
func (w *Watch) start(ctx context.Context, round *Round) {
	l := w.seen
	due := l.due(w.finished)
	if len(due) == 0 {
		return
	}
	running := l.contents()
	for _, t := range l.plan.Tasks {
		if due[t.ID] && t.Role != record.RoleBaseline {
			round.Tasks = append(round.Tasks, t.ID)
		}
	}
	run, ds, err := l.start(ctx, w.runner, due, w.o.Request.Cache || w.started)
	round.Diagnostics = append(round.Diagnostics, ds...)
	if round.Err = err; run == nil {
		round.Tasks = nil
		return
	}
	w.started = true
	w.run, w.running, round.Run = run, running, run
}

// pointless reports whether a task that the run has yet to finish is another by
// now, or is gone.
func (w *Watch) pointless() bool {
	now := w.seen.contents()
	results, _ := w.run.Results()
	for i, ref := range w.run.Record().Tasks {
		if results[i] == nil && now[ref.ID] != w.running[ref.ID] {
			return true
		}
	}
	return false
}

// finish notes which tasks the run has finished.
func (w *Watch) finish() {
	results, _ := w.run.Results()
	for i, ref := range w.run.Record().Tasks {
		if results[i].Finished() {
			w.finished[ref.ID] = w.running[ref.ID]
		} else {
			delete(w.finished, ref.ID)
		}
	}
	w.run, w.running = nil, nil
}
