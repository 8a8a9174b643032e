// Package watch runs a suite again when its files change. Call [New], then [Watch.Next] for each
// round.
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

// Options configure a [Watch].
type Options struct {
	// Path is the suite file. Findings show it as written here. Reading the suite finds the
	// files that it refers to.
	Path string
	// Request is the request for each run. Its Cache applies to the first run; later runs always
	// reuse trials.
	Request record.Request
}

// A Round is a report of a watch: at its start, and whenever files of the suite have changed.
type Round struct {
	// Files are the absolute paths of files that changed since the previous round, sorted; empty
	// in the first round.
	Files []string
	// Run executes the due tasks. Tasks are their ids, without baselines. Total is the number of
	// requested tasks of the suite. Run is nil when no task is due or the suite cannot run. It
	// continues even after the watch ends.
	Run   *runner.Run
	Tasks []string
	Total int
	// Diagnostics are the findings about the suite and this machine. If they contain errors,
	// nothing runs.
	Diagnostics decode.Diagnostics
	// Err is any other reason why nothing runs: an error of eval.Load, Runner.Plan or
	// Runner.Start. A [*Error] means that some changes are not noticed.
	Err error
}

// A Watch runs the changed tasks of a suite again: tasks whose content hash changed, and tasks
// that were not finished. Make it with [New], and call Next for each round.
//
//	file changes ─► quiet for 100 ms ─► readSuite: load, plan, hash ─► due tasks ─► run
//
// Changes are also processed while a run is active. If a task that the run has not finished
// changes, the rest of the run is pointless: the watch cancels it and runs the due tasks again.
// Other changes wait for the end of the run.
//
// The goroutine loop ends with Close, with the context of Watch and with the runner. Another
// goroutine watches files; loop ends it.
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
	seen     *suiteState        // the last
	known    known              // reported state of files
	tasks    map[string]content // in the last round
	finished map[string]content // tasks by id, in the form in which they were completely run
	run      *runner.Run        // the active run; nil for none
	running  map[string]content // its tasks
	queue    []*Round           // not yet delivered
	first    bool               // no round was reported yet
	started  bool               // a run was started
	redo     bool               // a run was cancelled so that another can replace it
}

// New starts to watch a suite. The error is a [*Error] or [runner.ErrClosed]. The watch ends
// with ctx, or by Close.
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

// Next returns the next round and waits for it if necessary. It returns io.EOF when the watch
// has ended, and the cause of ctx when ctx has.
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

// Close ends the watch and waits until its goroutines have ended. An active run continues,
// unless its round was not delivered: then it is cancelled.
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
	defer w.cancelUndelivered()
	w.reload(ctx)
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
			w.wait.touch() // events may be lost, so check
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.publish(&Round{Err: watchError(err)})
			}
		case <-w.wait.due():
			w.wait.done()
			w.reload(ctx)
		case <-over:
			w.finish()
			w.react(ctx)
		}
	}
}

// cancelUndelivered cancels a run whose round was not delivered.
func (w *Watch) cancelUndelivered() {
	for _, round := range w.queue {
		if round.Run != nil {
			round.Run.Cancel()
		}
	}
}

func (w *Watch) publish(r *Round) { w.queue = append(w.queue, r) }

// reload reads the suite again, watches the files that it now consists of, and runs the due
// tasks. No event reports changes between reading a file and watching its directory, so it
// repeats until nothing changes.
func (w *Watch) reload(ctx context.Context) {
	var werr error
	for range 5 {
		l := w.readSuite(ctx)
		more, err := w.files.set(l.paths)
		w.seen.close()
		w.seen, werr = l, err
		if !more || ctx.Err() != nil {
			break
		}
	}
	if werr != nil {
		w.publish(&Round{Err: werr})
	}
	w.react(ctx)
}

// react compares the suite with the last run, and runs the due tasks. While a run is active, it
// waits for the end of the run or cancels it.
func (w *Watch) react(ctx context.Context) {
	l := w.seen
	round := &Round{Diagnostics: l.diagnostics, Err: l.err}
	if !w.first {
		round.Files = w.known.changed(l)
	}
	now := l.contents()
	// Tasks may have changed without a change of file digests: a file may have been saved while
	// the suite was read.
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
	case !news && !w.redo: // unfinished tasks are tried again when something changes
		return
	default:
		round.Total = l.total()
		w.start(ctx, round)
	}
	w.first, w.redo = false, false
	w.known.learn(l)
	w.tasks = now
	if ctx.Err() == nil {
		w.publish(round)
	}
}

// total returns the number of tasks without baselines.
func (l *suiteState) total() int {
	n := 0
	for _, t := range l.plan.Tasks {
		if t.Role != record.RoleBaseline {
			n++
		}
	}
	return n
}

// start runs the due tasks, if any, and records the run in the round.
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

// pointless reports whether a task that the run has not finished was changed or removed.
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

// finish records which tasks the run has finished.
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
