package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/watch"
)

func watchMethods() []*method {
	return []*method{
		dispatch.Define("eval.watch", dispatch.Heavy,
			"Run a suite, and run its changed tasks again whenever it changes. Each time eval.changed reports the "+
				"change, and the notifications of the run, if there is one, follow. "+
				"If tasks of an unfinished run change, the run is cancelled and the next one starts. The watch ends with "+
				"eval.unwatch or with the connection.",
			watchSuite),
		dispatch.Define("eval.unwatch", dispatch.Long,
			"Stop watching a suite: no eval.changed of it follows the reply. An active run continues.", unwatchSuite),
	}
}

// maxWatches limits the suites that one connection watches.
const maxWatches = 16

type evalWatchParams struct {
	Path  string   `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Tasks []string `json:"tasks" doc:"Run only tasks whose id or name matches one of these globs."`
	Tags  []string `json:"tags" doc:"Run only tasks with a tag that matches one of these globs."`
	RunOptions
}

type watchStarted struct {
	WatchID string `json:"watchId" doc:"Id of the watch, unique in the connection."`
}

type changedParams struct {
	WatchID     string             `json:"watchId"`
	RunID       string             `json:"runId,omitempty" doc:"Id of the run that starts; absent when there is nothing to run."`
	Files       []string           `json:"files" doc:"Absolute paths of the files that were changed, added or deleted; none the first time."`
	Tasks       []string           `json:"tasks" doc:"Ids of the tasks to run, including those of trigger tests: the tasks whose content changed or whose trials were not finished."`
	Total       int                `json:"totalTasks" doc:"Number of all tasks of the suite; 0 when the suite cannot be read."`
	Diagnostics decode.Diagnostics `json:"diagnostics,omitempty" doc:"Findings about the suite and this machine. If they contain errors, nothing runs until the next change. Absent if empty."`
	Error       string             `json:"error,omitempty" doc:"Any other reason why the suite cannot be run or its files cannot be watched."`
}

// watches holds the suites that a connection watches. Each has a goroutine that sends its
// rounds, until it sends nothing more and starts no more runs.
type watches struct {
	mu     sync.Mutex // guards the fields below
	number int        // number of the last watch
	closed bool
	byID   map[string]*dispatch.Task
}

func watchSuite(ctx context.Context, c *call, p *evalWatchParams) (*watchStarted, error) {
	o, err := c.watchOptions(p)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, err := c.conn.watches.start(c.conn, o, c.Replied())
	if err != nil {
		return nil, err
	}
	return &watchStarted{WatchID: id}, nil
}

// watchOptions finds the suite. Errors in the suite are reported later, with each change.
func (c *call) watchOptions(p *evalWatchParams) (o watch.Options, err error) {
	path, err := c.conn.resolve("path", p.Path)
	if err != nil {
		return o, err
	}
	o.Request = record.Request{Tasks: p.Tasks, Tags: p.Tags}
	if err := c.complete(&o.Request, &p.RunOptions); err != nil {
		return o, err
	}
	if o.Path, err = discover.Find(path, files.View{}); err != nil {
		return o, &dispatch.SuiteError{Given: p.Path, Path: path, Err: err}
	}
	return o, nil
}

// start starts a watch, and sends its rounds once ready is closed.
func (w *watches) start(c *connection, o watch.Options, ready <-chan struct{}) (id string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return "", runner.ErrClosed
	case len(w.byID) >= maxWatches:
		return "", dispatch.NewFault(wire.CodeBusy, "", map[string]any{"limit": "watches of a connection", "value": maxWatches})
	}
	watch, err := watch.New(c.ctx, c.runner, o)
	if err != nil {
		return "", &dispatch.RunFailedError{Err: errors.New(watchErrorText(err))}
	}
	if w.byID == nil {
		w.byID = map[string]*dispatch.Task{}
	}
	w.number++
	id = fmt.Sprintf("w%d", w.number)
	w.byID[id] = c.sending.Start(c.ctx, nil, func(ctx context.Context) { c.sendRounds(ctx, id, watch, ready) })
	return id, nil
}

// watchErrorText returns the error of a watch with advice on how to fix it.
func watchErrorText(err error) string {
	if e, ok := errors.AsType[*watch.Error](err); ok && e.Hint != "" {
		return err.Error() + "; " + e.Hint
	}
	return err.Error()
}

// sendRounds sends the rounds of a watch from when ready is closed until the watch or ctx ends, and
// closes the watch. A run belongs to the client before any notification of it is sent.
func (c *connection) sendRounds(ctx context.Context, id string, watch *watch.Watch, ready <-chan struct{}) {
	defer watch.Close()
	if !dispatch.Await(ctx, ready) {
		return
	}
	for {
		round, err := watch.Next(ctx)
		if err != nil {
			return
		}
		p := &changedParams{
			WatchID: id, Files: orEmpty(round.Files), Tasks: orEmpty(round.Tasks), Total: round.Total, Diagnostics: round.Diagnostics,
		}
		if round.Err != nil {
			p.Error = watchErrorText(round.Err)
		}
		if round.Run != nil {
			p.RunID = round.Run.ID()
			c.runs.add(round.Run)
		}
		if c.stream.Notify(ctx, "eval.changed", p) != nil {
			return
		}
		if round.Run != nil {
			c.subscriptions.follow(round.Run, 1, nil)
			c.server.announce(round.Run)
		}
	}
}

// orEmpty returns a list, or an empty one instead of nil, which JSON would write as null.
func orEmpty[S ~[]E, E any](list S) S {
	if list == nil {
		return S{}
	}
	return list
}

// close ends all watches, and waits until they start no more runs.
func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	var all []*dispatch.Task
	for id, g := range w.byID {
		all = append(all, g)
		delete(w.byID, id)
	}
	w.mu.Unlock()
	for _, g := range all {
		g.Stop()
	}
}

type unwatchParams struct {
	WatchID string `json:"watchId" jsonschema:"required" doc:"Id of the watch."`
}

type unwatched struct {
	WatchID string `json:"watchId"`
	Watched bool   `json:"watched" doc:"Whether the watch existed."`
}

func unwatchSuite(_ context.Context, c *call, p *unwatchParams) (*unwatched, error) {
	w := &c.conn.watches
	w.mu.Lock()
	g := w.byID[p.WatchID]
	delete(w.byID, p.WatchID)
	w.mu.Unlock()
	if g != nil {
		g.Stop()
	}
	return &unwatched{p.WatchID, g != nil}, nil
}
