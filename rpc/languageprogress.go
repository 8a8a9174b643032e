package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.lsp.dev/protocol"

	"waza/runner"
)

// progressEvery is how often the client is told of a run's progress, at most.
const progressEvery = 100 * time.Millisecond

// showProgress lets the client show how a run goes on, once the reply to the
// request that started it is on its way: as a work done progress or, where the
// client has none, with a message at the end.
func (c *call) showProgress(run *runner.Run) {
	replied := c.replied()
	c.following.Go(func() {
		if replied != nil && !c.language.await(replied) {
			return
		}
		w := &workDone{s: c.session, run: run, token: protocol.String("waza-" + run.ID())}
		w.shown = c.language.abilities().ShowsProgress() && w.create()
		w.follow()
	})
}

// workDone is the progress of one run as a client sees it.
type workDone struct {
	s      *session
	run    *runner.Run
	token  protocol.ProgressToken
	shown  bool
	total  int
	done   int
	failed int
	errors int
	last   time.Time
}

// create asks the client for a place to show the progress.
func (w *workDone) create() bool {
	raw, err := protocol.Marshal(&protocol.WorkDoneProgressCreateParams{Token: w.token})
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(w.s.language.ctx, askTime)
	defer cancel()
	if _, err = w.s.stream.Call(ctx, "window/workDoneProgress/create", json.RawMessage(raw)); err != nil {
		return false
	}
	yes := true
	w.s.language.progress(w.run, true)
	w.tell(&protocol.WorkDoneProgressBegin{Kind: "begin", Title: "waza: " + w.run.Record().Suite.Name, Cancellable: &yes, Percentage: new(uint32)})
	return true
}

// follow tells of the run's events until it has ended.
func (w *workDone) follow() {
	defer w.s.language.progress(w.run, false)
	sub := w.run.Subscribe(w.run.First())
	for {
		events, err := sub.Next(w.s.language.ctx)
		if err != nil {
			return // the client is gone
		}
		for _, e := range events {
			if e.Type == runner.End {
				w.end(e)
				return
			}
			w.take(e)
		}
		w.report()
	}
}

func (w *workDone) take(e *runner.Event) {
	switch e.Type {
	case runner.RunStart:
		w.total = e.TotalTrials
	case runner.RunResumed:
		w.total, w.done = e.TotalTrials, e.KeptTrials
	case runner.TrialComplete:
		w.done++
		switch e.Verdict {
		case runner.Failed, runner.TimedOut:
			w.failed++
		case runner.Errored:
			w.errors++
		}
	}
}

// report tells how far the run is, unless the client was told a moment ago.
func (w *workDone) report() {
	if !w.shown || time.Since(w.last) < progressEvery {
		return
	}
	w.last = time.Now()
	text, percent := w.text(), uint32(0)
	if w.total > 0 {
		percent = uint32(min(100, 100*w.done/w.total))
	}
	w.tell(&protocol.WorkDoneProgressReport{Kind: "report", Message: &text, Percentage: &percent})
}

// text is "12/40 trials, 1 failed".
func (w *workDone) text() string {
	s := fmt.Sprintf("%d/%d trials", w.done, w.total)
	if w.failed > 0 {
		s += fmt.Sprintf(", %d failed", w.failed)
	}
	if w.errors > 0 {
		s += fmt.Sprintf(", %d in error", w.errors)
	}
	return s
}

// end says what came out.
func (w *workDone) end(e *runner.Event) {
	text, grave := outcomeText(e)
	if w.shown {
		w.tell(&protocol.WorkDoneProgressEnd{Kind: "end", Message: &text})
		return
	}
	w.s.showMessage(grave, "waza: "+w.run.Record().Suite.Name+": "+text)
}

func outcomeText(e *runner.Event) (string, protocol.MessageType) {
	switch {
	case e.Status == runner.StatusCompleted && e.Summary != nil:
		c := e.Summary.Counts
		text := fmt.Sprintf("%d/%d tasks passed", c.Passed, c.Total)
		switch {
		case c.Errors > 0:
			return fmt.Sprintf("%s, %d in error", text, c.Errors), protocol.MessageTypeError
		case c.Passed < c.Total:
			return text, protocol.MessageTypeWarning
		}
		return text, protocol.MessageTypeInfo
	case e.Status == runner.StatusCancelled:
		return "the run was cancelled", protocol.MessageTypeWarning
	}
	return failure(e.Status, e.Error), protocol.MessageTypeError
}

func (w *workDone) tell(value any) {
	raw, err := protocol.Marshal(value)
	if err != nil {
		return
	}
	w.s.notifyClient("$/progress", &protocol.ProgressParams{Token: w.token, Value: raw})
}

// showMessage shows people a sentence.
func (s *session) showMessage(kind protocol.MessageType, text string) {
	s.notifyClient("window/showMessage", &protocol.ShowMessageParams{Type: kind, Message: text})
}

// notifyClient sends a notification of the Language Server Protocol. It fails when
// the client is gone, which the session notices itself.
func (s *session) notifyClient(method string, params any) {
	raw, err := protocol.Marshal(params)
	if err == nil {
		_ = s.stream.Notify(s.language.ctx, method, json.RawMessage(raw))
	}
}

// progress notes that the client shows a run's progress, or does so no more.
func (l *language) progress(run *runner.Run, shown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil {
		l.shown = map[string]*runner.Run{}
	}
	if delete(l.shown, "waza-"+run.ID()); shown {
		l.shown["waza-"+run.ID()] = run
	}
}

func (c *call) cancelProgress(_ context.Context, p *protocol.WorkDoneProgressCancelParams) (any, error) {
	token, _ := p.Token.(protocol.String)
	c.language.mu.Lock()
	run := c.language.shown[string(token)]
	c.language.mu.Unlock()
	if run != nil {
		run.Cancel()
	}
	return nil, nil
}
