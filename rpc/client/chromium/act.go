package chromium

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
)

// open opens an address and waits for a milestone of its document.
func (t *tab) open(ctx context.Context, s *session, address, milestone string) (any, error) {
	t.mu.Lock()
	t.status = 0
	before := t.loads
	t.mu.Unlock()
	went, err := cdp.Call(ctx, t.target, page.Navigate, page.NavigateParams{URL: address})
	switch {
	case err != nil:
		return nil, err
	case went.IsDownload || went.ErrorText == "net::ERR_ABORTED":
		return nil, fmt.Errorf("%s is a file to download; this browser does not download files", address)
	case went.ErrorText != "":
		reason := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(went.ErrorText, "net::ERR_"), "_", " "))
		return nil, fmt.Errorf("%s could not be opened: %s", address, reason)
	}
	if went.LoaderID != "" { // a different document
		err := t.until(ctx, func() bool {
			switch {
			case t.loads == before:
				return false
			case t.loader == went.LoaderID:
				return t.reached[milestone]
			}
			return t.reached["load"] // of the document after redirects by scripts
		})
		if err != nil {
			return nil, err
		}
	}
	at, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return struct {
		where
		Status int64 `json:"status,omitempty"`
	}{at, t.status}, nil
}

// loaded waits until a new tab has its document.
func (t *tab) loaded(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	var ready struct {
		Complete bool `json:"complete"`
	}
	for {
		if err := t.call(waiting, "ready", struct{}{}, &ready); err != nil || ready.Complete {
			return err
		}
		changed := t.changes()
		select {
		case <-changed:
		case <-t.gone:
			return errors.New("the page has closed itself")
		case <-waiting.Done():
			return context.Cause(ctx)
		}
	}
}

// press presses and releases the left button of the mouse.
func (t *tab) press(ctx context.Context, x, y float64) error {
	e := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y}
	for _, e.Type = range []input.DispatchMouseEventType{
		input.DispatchMouseEventTypeMouseMoved, input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased,
	} {
		if e.Type == input.DispatchMouseEventTypeMousePressed {
			e.Button, e.Buttons, e.ClickCount = input.MouseButtonLeft, 1, 1
		}
		if _, err := cdp.Call(ctx, t.target, input.DispatchMouseEvent, e); err != nil {
			return err
		}
	}
	return nil
}

// insert types a text into the element that has the focus.
func (t *tab) insert(ctx context.Context, text string) error {
	_, err := cdp.Call(ctx, t.target, input.InsertText, input.InsertTextParams{Text: text})
	return err
}

// enter presses the Enter key.
func (t *tab) enter(ctx context.Context) error {
	e := input.DispatchKeyEventParams{
		Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, Text: "\r", UnmodifiedText: "\r",
		Type: input.DispatchKeyEventTypeKeyDown,
	}
	if _, err := cdp.Call(ctx, t.target, input.DispatchKeyEvent, e); err != nil {
		return err
	}
	e.Type, e.Text, e.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
	_, err := cdp.Call(ctx, t.target, input.DispatchKeyEvent, e)
	return err
}

// Limits for screenshots.
const (
	maxScreenshot  = 4 << 20 // bytes
	maxShotWidth   = 4000    // pixels
	maxShotHeight  = 10_000
	screenshotGood = 80 // quality of JPEG
	screenshotPoor = 40
)

func screenshot(ctx context.Context, _ *session, t *tab, p *struct {
	Selector string `json:"selector"`
	Full     bool   `json:"full_page"`
}) (any, error) {
	if t.blank() {
		return nil, errNoPage
	}
	var r struct{ X, Y, Width, Height float64 }
	if err := t.find(ctx, "rect", map[string]any{"selector": p.Selector, "full": p.Full}, &r); err != nil {
		return nil, err
	}
	truncated := r.Width > maxShotWidth || r.Height > maxShotHeight
	r.Width, r.Height = min(r.Width, maxShotWidth), min(r.Height, maxShotHeight)
	yes := true
	for _, quality := range []int64{screenshotGood, screenshotPoor} {
		shot, err := cdp.Call(ctx, t.target, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatJpeg, Quality: &quality, CaptureBeyondViewport: &yes,
			Clip: &page.Viewport{X: r.X, Y: r.Y, Width: r.Width, Height: r.Height, Scale: 1},
		})
		if err != nil {
			return nil, err
		}
		if len(shot.Data) <= maxScreenshot {
			return map[string]any{
				"format": "jpeg", "width": int(r.Width), "height": int(r.Height), "truncated": truncated,
				"data_url": "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(shot.Data),
			}, nil
		}
	}
	return nil, fmt.Errorf("the screenshot is larger than %d MB: select a smaller part of the page with selector", maxScreenshot>>20)
}
