package language

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/rpc/internal/dispatch"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/replay"
)

// progressEvery is the minimum time between two progress notifications of a run.
const progressEvery = 100 * time.Millisecond

func commandMethods() []*method {
	return []*method{
		lspMethod("workspace/executeCommand", dispatch.Heavy,
			"Execute one of the commands below. The argument is one object, and so is the result.", executeCommand),
		lspMethod("window/workDoneProgress/cancel", dispatch.Quick, "Cancel the run of a progress.", cancelProgress),
	}
}

func executeCommand(ctx context.Context, q *Request, p *protocol.ExecuteCommandParams) (any, error) {
	var argument json.RawMessage // commands use only the first argument
	if len(p.Arguments) > 0 && string(p.Arguments[0]) != "null" {
		argument = json.RawMessage(p.Arguments[0])
	}
	return q.Execute(ctx, p.Command, argument)
}

// ShowProgress shows the client the progress of a run, once replied is closed; replied may be
// nil. It uses a work done progress. A client that does not support it gets a message when the
// run ends. ShowProgress does not block.
func (e *Editor) ShowProgress(run *runner.Run, replied <-chan struct{}) {
	e.sending.Go(func() {
		if replied != nil && !e.await(replied) {
			return
		}
		w := &workDone{e: e, run: run, token: protocol.String("waza-" + run.ID()), state: replay.NewFollower(run.Record(), nil)}
		w.shown = e.capabilities().ShowsProgress() && w.create()
		w.follow()
	})
}

// workDone is the progress of one run in a client.
type workDone struct {
	e     *Editor
	run   *runner.Run
	token protocol.ProgressToken
	shown bool
	state *replay.Follower
	last  time.Time
}

func (w *workDone) create() bool {
	params := &protocol.WorkDoneProgressCreateParams{Token: w.token}
	if _, err := w.e.call(w.e.asking, "window/workDoneProgress/create", params); err != nil {
		return false
	}
	yes := true
	w.e.progress(w.run, true)
	w.tell(&protocol.WorkDoneProgressBegin{
		Kind: "begin", Title: "waza: " + w.run.Record().Suite.Name, Cancellable: &yes, Percentage: new(uint32),
	})
	return true
}

// follow reports the run's events until it has ended.
func (w *workDone) follow() {
	defer w.e.progress(w.run, false)
	sub := w.run.SubscribeHeads(w.run.First())
	for {
		events, err := sub.Next(w.e.asking)
		if err != nil {
			return // the client is gone
		}
		for _, e := range events {
			if e.Type == record.End {
				w.end(e)
				return
			}
			w.state.Apply(e)
		}
		w.report()
	}
}

// report sends the progress of the run, unless it did so a moment ago.
func (w *workDone) report() {
	if !w.shown || time.Since(w.last) < progressEvery {
		return
	}
	w.last = time.Now()
	text, percent := w.text(), uint32(0)
	if done, trials := w.done(); trials.Total > 0 {
		percent = uint32(min(100, 100*done/trials.Total))
	}
	w.tell(&protocol.WorkDoneProgressReport{Kind: "report", Message: &text, Percentage: &percent})
}

// done returns the number of trials that have ended in all sessions, and the counts of this one.
func (w *workDone) done() (int, record.Counts) {
	trials := w.state.AllTrials()
	return w.state.Ended(), trials
}

// text returns a text such as "12/40 trials, 1 failed".
func (w *workDone) text() string {
	done, trials := w.done()
	s := fmt.Sprintf("%d/%d trials", done, trials.Total)
	if failed := trials.Failed + trials.Timeouts; failed > 0 {
		s += fmt.Sprintf(", %d failed", failed)
	}
	if trials.Errors > 0 {
		s += fmt.Sprintf(", %d in error", trials.Errors)
	}
	return s
}

func (w *workDone) end(e *record.Event) {
	text, grave := outcomeText(e, w.e.o.Failure)
	if w.shown {
		w.tell(&protocol.WorkDoneProgressEnd{Kind: "end", Message: &text})
		return
	}
	w.e.ShowMessage(grave, "waza: "+w.run.Record().Suite.Name+": "+text)
}

func outcomeText(e *record.Event, failure func(record.Status, string) string) (string, protocol.MessageType) {
	switch {
	case e.Status == record.StatusCompleted && e.Summary != nil:
		c := e.Summary.Counts
		text := fmt.Sprintf("%d/%d tasks passed", c.Passed, c.Total)
		switch {
		case c.Errors > 0:
			return fmt.Sprintf("%s, %d in error", text, c.Errors), protocol.MessageTypeError
		case c.Passed < c.Total:
			return text, protocol.MessageTypeWarning
		}
		return text, protocol.MessageTypeInfo
	case e.Status == record.StatusCancelled:
		return "the run was cancelled", protocol.MessageTypeWarning
	}
	return failure(e.Status, e.Error), protocol.MessageTypeError
}

func (w *workDone) tell(value any) {
	raw, err := protocol.Marshal(value)
	if err != nil {
		return
	}
	w.e.notify("$/progress", &protocol.ProgressParams{Token: w.token, Value: raw})
}

// ShowMessage asks the client to show a message.
func (e *Editor) ShowMessage(kind protocol.MessageType, text string) {
	e.notify("window/showMessage", &protocol.ShowMessageParams{Type: kind, Message: text})
}

// notify sends a notification of the Language Server Protocol. It fails only if the client is
// gone, which the connection notices itself.
func (e *Editor) notify(method string, params any) {
	raw, err := protocol.Marshal(params)
	if err == nil {
		_ = e.o.Client.Notify(e.asking, method, json.RawMessage(raw))
	}
}

// progress records whether the client shows a run's progress.
func (e *Editor) progress(run *runner.Run, shown bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shown == nil {
		e.shown = map[string]*runner.Run{}
	}
	if delete(e.shown, "waza-"+run.ID()); shown {
		e.shown["waza-"+run.ID()] = run
	}
}

func cancelProgress(_ context.Context, q *Request, p *protocol.WorkDoneProgressCancelParams) (any, error) {
	token, _ := p.Token.(protocol.String)
	q.editor.mu.Lock()
	run := q.editor.shown[string(token)]
	q.editor.mu.Unlock()
	if run != nil {
		run.Cancel()
	}
	return nil, nil
}

// ShowDocument asks the client to show a document in another program. It returns false if the
// client does not, or does not answer in time.
func (e *Editor) ShowDocument(ctx context.Context, u string) bool {
	if !e.capabilities().ShowsDocuments() {
		return false
	}
	yes := true
	answer, err := e.call(ctx, "window/showDocument", &protocol.ShowDocumentParams{URI: uri.URI(u), External: &yes})
	var shown protocol.ShowDocumentResult
	return err == nil && protocol.Unmarshal(answer, &shown) == nil && shown.Success
}
