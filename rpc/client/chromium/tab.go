package chromium

import (
	"context"
	_ "embed" // page.js
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"waza/runner/pause"
)

// script is evaluated in pages.
//
//go:embed page.js
var script string

const (
	// answerTime is the time limit for Chromium to close a dialog.
	answerTime = 5 * time.Second
	// findTime is how long an element can take to appear, and findPause the pause between two
	// searches.
	findTime, findPause = time.Second, 50 * time.Millisecond
	// A navigation caused by a click starts within leaveTime when the click was on a link or a
	// button of a form, and within stayTime otherwise.
	leaveTime, stayTime = 500 * time.Millisecond, 100 * time.Millisecond
	// maxWait is how long a tool waits for a navigation that may not happen.
	maxWait = 10 * time.Second
)

// tab is a page. The goroutine of its events calls on. Only the goroutine of the tool uses the
// rest.
type tab struct {
	session *session
	ctx     context.Context    // context of chromedp
	end     context.CancelFunc // nil for the first tab, which ends with the session
	target  *chromedp.Target
	gone    <-chan struct{} // closed when the page is closed
	adopted bool            // a page has opened it

	mu      sync.Mutex // guards the fields below
	changed chan struct{}
	frame   cdp.FrameID // main frame
	loading bool
	crashed bool
	loads   int // number of loaded documents
	loader  cdp.LoaderID
	address string
	reached map[string]bool // milestones of the document: DOMContentLoaded, load, networkIdle
	status  int64           // HTTP status
}

func newTab(s *session) *tab {
	return &tab{session: s, changed: make(chan struct{}), reached: map[string]bool{}}
}

// on handles an event of the page.
func (t *tab) on(event any) {
	switch e := event.(type) {
	case *target.EventTargetCreated:
		t.session.noteOpened(e.TargetInfo)
		return
	case *page.EventJavascriptDialogOpening:
		t.session.noteDialog(dialog{Type: string(e.Type), Message: e.Message})
		t.session.dialogsAnswered.Go(func() { t.acceptDialog(e.DefaultPrompt) })
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *page.EventFrameStartedLoading:
		t.loading = t.loading || t.mainLocked(e.FrameID)
	case *page.EventFrameStoppedLoading:
		t.loading = t.loading && !t.mainLocked(e.FrameID)
	case *page.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			t.frame, t.address = e.Frame.ID, e.Frame.URL
			t.newDocumentLocked(e.Frame.LoaderID)
		}
	case *page.EventLifecycleEvent:
		if !t.mainLocked(e.FrameID) {
			return
		}
		t.newDocumentLocked(e.LoaderID)
		t.reached[e.Name] = true
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument && t.mainLocked(e.FrameID) {
			t.status = e.Response.Status
		}
	case *inspector.EventTargetCrashed:
		t.crashed = true
	default:
		return
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *tab) mainLocked(id cdp.FrameID) bool { return t.frame == "" || id == t.frame }

func (t *tab) newDocumentLocked(loader cdp.LoaderID) {
	if loader != t.loader {
		t.loader, t.loads = loader, t.loads+1
		clear(t.reached)
	}
}

// acceptDialog closes a dialog of the page, which is blocked until then.
func (t *tab) acceptDialog(prompt string) {
	ctx, cancel := context.WithTimeout(t.session.ctx, answerTime)
	defer cancel()
	_, _ = cdp.Call(ctx, chromedp.FromContext(t.ctx).Target, page.HandleJavaScriptDialog,
		page.HandleJavaScriptDialogParams{Accept: true, PromptText: prompt}) // fails only when the page is closed
}

// close closes the page unless the session closes it.
func (t *tab) close() {
	if t.end != nil {
		t.end()
	}
}

func (t *tab) closed() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// until waits until fits returns true. It calls fits with the lock held. The error is the cause
// of ctx, or reports that the page is closed.
func (t *tab) until(ctx context.Context, fits func() bool) error {
	for {
		t.mu.Lock()
		ok, crashed, changed := fits(), t.crashed, t.changed
		t.mu.Unlock()
		switch {
		case crashed:
			return errors.New("the page has crashed")
		case ok:
			return nil
		}
		select {
		case <-changed:
		case <-t.gone:
			return errors.New("the page has closed itself")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// blank reports whether the tab has not shown a page yet.
func (t *tab) blank() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.adopted && (t.address == "" || t.address == "about:blank")
}

// changes returns a channel that is closed at the next event of the page.
func (t *tab) changes() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// count returns the number of documents loaded so far.
func (t *tab) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loads
}

// settle waits until the navigation caused by an action is done. It expects the navigation to
// start within the function.
func (t *tab) settle(ctx context.Context, before int, begin time.Duration) (navigated bool, err error) {
	beginning, cancel := context.WithTimeout(ctx, begin)
	err = t.until(beginning, func() bool { return t.loading || t.loads > before })
	cancel()
	if ctx.Err() != nil || err != nil && beginning.Err() == nil {
		return false, err
	}
	loading, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	err = t.until(loading, func() bool { return !t.loading && (t.loads == before || t.reached["load"]) })
	if err != nil && (ctx.Err() != nil || loading.Err() == nil) {
		return false, err
	}
	return t.count() > before, nil
}

// errMissing is the error of a search for an element that may appear later.
type errMissing struct{ text string }

func (e *errMissing) Error() string { return e.text }

// find calls an operation of the script, and repeats it for a while when the element is missing.
func (t *tab) find(ctx context.Context, operation string, args, result any) error {
	for end := time.Now().Add(findTime); ; {
		err := t.call(ctx, operation, args, result)
		if missing := (*errMissing)(nil); !errors.As(err, &missing) || time.Now().After(end) {
			return err
		}
		if pause.For(ctx, findPause) != nil {
			return err
		}
	}
}

// call calls an operation of the script. When the page navigates meanwhile, it calls the
// operation in the next document.
func (t *tab) call(ctx context.Context, operation string, args, result any) error {
	for try := 1; ; try++ {
		err := t.callOnce(ctx, operation, args, result)
		if err == nil || try == 3 || ctx.Err() != nil || !left(err) {
			return err
		}
		if _, err := t.settle(ctx, t.count(), stayTime); err != nil {
			return err
		}
	}
}

// left reports whether an error means that the document no longer exists.
func left(err error) bool {
	for _, text := range []string{
		"Cannot find context", "context was destroyed", "navigated or closed", "No frame for given id",
		"Frame with the given",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func (t *tab) callOnce(ctx context.Context, operation string, args, result any) error {
	given, err := json.Marshal(args)
	if err != nil {
		return err
	}
	t.mu.Lock()
	frame := t.frame
	t.mu.Unlock()
	world, err := cdp.Call(ctx, t.target, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame, WorldName: "waza"})
	if err != nil {
		return err
	}
	yes := true
	answer, err := cdp.Call(ctx, t.target, runtime.Evaluate, runtime.EvaluateParams{
		Expression: fmt.Sprintf("(%s)(%q, %s)", strings.TrimSpace(script), operation, given),
		ContextID:  world.ExecutionContextID, ReturnByValue: &yes, AwaitPromise: &yes, UserGesture: &yes,
	})
	if err != nil {
		return err
	}
	if answer.ExceptionDetails != nil {
		return fmt.Errorf("the page could not be read: %s", answer.ExceptionDetails.Text)
	}
	var said struct {
		Value   json.RawMessage `json:"value"`
		Fault   string          `json:"fault"`
		Missing bool            `json:"missing"`
	}
	if err := json.Unmarshal(answer.Result.Value, &said); err != nil {
		return fmt.Errorf("the page could not be read: %w", err)
	}
	switch {
	case said.Missing:
		return &errMissing{said.Fault}
	case said.Fault != "":
		return errors.New(said.Fault)
	}
	return json.Unmarshal(said.Value, result)
}
