package chromium

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"waza/eval/jsonwalk"
	"waza/eval/text"
)

const (
	// openTime is the time limit for opening a page of a session.
	openTime = 30 * time.Second
	// maxTabs is the maximum number of tabs in a session. When a page opens more, the oldest are
	// closed.
	maxTabs = 8
	// maxOpened is the maximum number of tabs that a session follows over its life.
	maxOpened = 1000
	// maxDialogs is the maximum number of dialogs in a result, and maxDialogText the maximum
	// length of each in characters.
	maxDialogs, maxDialogText = 10, 500
)

// session is a command's view of the browser: tabs that share cookies. Tools use the last tab.
// Except for the events of its tabs, only one goroutine uses it at a time.
type session struct {
	id   string
	in   *instance
	ctx  context.Context // contains the browser context; ends with the session
	end  context.CancelFunc
	tabs []*tab // tools use the last one

	dialogsAnswered sync.WaitGroup

	mu      sync.Mutex         // guards the fields below
	seen    map[target.ID]bool // tabs that pages have opened
	opened  []target.ID        // opened tabs that are not adopted yet
	dialogs []dialog
}

// dialog is an alert, confirm or prompt of a page. All dialogs are accepted.
type dialog struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// open opens a session with an empty page.
func open(ctx context.Context, in *instance, id string) (*session, error) {
	s := &session{id: id, in: in, seen: map[target.ID]bool{}}
	first := newTab(s)
	s.ctx, s.end = chromedp.NewContext(in.pages, chromedp.WithNewBrowserContext(), chromedp.WithListener(first.on))
	first.ctx = s.ctx
	err := s.attach(ctx, first)
	if err == nil {
		deny := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: s.contextID()}
		_, err = cdp.Call(ctx, in.browser, browser.SetDownloadBehavior, deny)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// contextID returns Chromium's id of the session.
func (s *session) contextID() cdp.BrowserContextID {
	return chromedp.FromContext(s.ctx).BrowserContextID
}

// attach makes tools use a tab. It waits at most openTime for Chromium.
func (s *session) attach(ctx context.Context, t *tab) error {
	done := make(chan error, 1)
	go func() { done <- chromedp.Do(t.ctx) }() // the page ends with the context of this call
	waiting, cancel := context.WithTimeoutCause(ctx, openTime, errors.New("the browser does not answer"))
	defer cancel()
	var err error
	select {
	case err = <-done:
	case <-waiting.Done():
		err = context.Cause(waiting)
	}
	if err == nil {
		t.gone, err = chromedp.Detached(t.ctx)
	}
	if err != nil {
		return err
	}
	t.target = chromedp.FromContext(t.ctx).Target
	t.mu.Lock()
	t.frame = cdp.FrameID(t.target.TargetID)
	t.mu.Unlock()
	s.tabs = append(s.tabs, t)
	return nil
}

// close closes all tabs and removes the session's data.
func (s *session) close() {
	for _, t := range slices.Backward(s.tabs) {
		t.close()
	}
	s.end()
	s.dialogsAnswered.Wait()
}

// tab returns the tab for tools: the last open one. When pages have closed all tabs, it opens a
// new one.
func (s *session) tab(ctx context.Context) (*tab, error) {
	for len(s.tabs) > 0 {
		t := s.tabs[len(s.tabs)-1]
		if !t.closed() {
			return t, nil
		}
		s.tabs = s.tabs[:len(s.tabs)-1]
		t.close()
	}
	t := newTab(s)
	t.ctx, t.end = chromedp.NewContext(s.ctx, chromedp.WithListener(t.on))
	if err := s.attach(ctx, t); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// adopt makes tools use the tabs that pages have opened. It reports whether there were any.
func (s *session) adopt(ctx context.Context) (bool, error) {
	s.mu.Lock()
	opened := s.opened
	s.opened = nil
	s.mu.Unlock()
	for _, id := range opened {
		t := newTab(s)
		t.adopted = true
		t.ctx, t.end = chromedp.NewContext(s.ctx, chromedp.WithTargetID(id), chromedp.WithListener(t.on))
		if err := s.attach(ctx, t); err != nil {
			t.close()
			if ctx.Err() != nil {
				return false, err
			}
			continue // it was closed again
		}
		for len(s.tabs) > maxTabs {
			oldest := s.tabs[1] // the first tab owns the cookies of all tabs
			s.tabs = slices.Delete(s.tabs, 1, 2)
			oldest.close()
		}
	}
	return len(opened) > 0, nil
}

// noteOpened records a tab that a page has opened.
func (s *session) noteOpened(info *target.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.Type == "page" && info.OpenerID != "" && info.BrowserContextID == s.contextID() &&
		len(s.opened) < maxTabs && len(s.seen) < maxOpened && !s.seen[info.TargetID] {
		s.seen[info.TargetID] = true // each tab reports all opened tabs
		s.opened = append(s.opened, info.TargetID)
	}
}

// noteDialog records a dialog for the next result.
func (s *session) noteDialog(d dialog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dialogs) < maxDialogs {
		d.Message = text.Clip(d.Message, maxDialogText)
		s.dialogs = append(s.dialogs, d)
	}
}

// finish encodes a result, together with the dialogs that were accepted meanwhile.
func (s *session) finish(result any) (json.RawMessage, error) {
	b, err := jsonwalk.Encode(result)
	s.mu.Lock()
	dialogs := s.dialogs
	s.dialogs = nil
	s.mu.Unlock()
	if err != nil || len(dialogs) == 0 {
		return b, err
	}
	var members map[string]any
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, err
	}
	members["dialogs"] = dialogs
	return jsonwalk.Encode(members)
}
