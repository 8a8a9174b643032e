package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/link"
	"waza/runner/executor"
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/provider"
	"waza/runner/record"
)

// browsers has one extension, which one trial at a time can reserve.
type browsers struct {
	free     chan struct{}
	released chan struct{}
}

func newBrowsers() *browsers {
	h := &browsers{free: make(chan struct{}, 1), released: make(chan struct{}, 10)}
	h.free <- struct{}{}
	return h
}

func (h *browsers) Reserve(ctx context.Context, w *browser.Want) (browser.Slot, error) {
	if w.Extension == "never" {
		return nil, executor.Permanent(errors.New("there is no such extension"))
	}
	select {
	case <-h.free:
		return browserPlace{h, w}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *browsers) Extensions(context.Context) ([]*browser.Extension, error) {
	return []*browser.Extension{{ID: "e", Evaluation: true}}, nil
}

func (h *browsers) Assistants(context.Context) ([]*browser.Assistant, error) {
	return []*browser.Assistant{{ID: "a", Name: "Shopper", Capabilities: []string{"scroll"}}}, nil
}

type browserPlace struct {
	*browsers
	want *browser.Want
}

func (p browserPlace) ExtensionID() string { return "e/" + p.want.ID }

func (p browserPlace) Release() {
	p.free <- struct{}{}
	p.released <- struct{}{}
}

func (p browserPlace) Execute(ctx context.Context, c *browser.Command, step func(browser.Step)) (*browser.Answer, error) {
	switch c.Text {
	case "hang":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "again":
		return nil, &executor.RetryError{Reason: "the extension has left"}
	case "late":
		return nil, fmt.Errorf("too late: %w", executor.ErrTimeout)
	case "refused":
		return nil, &provider.Error{Kind: provider.Refused, Message: "wrong key"}
	case "budget":
		return nil, &provider.Error{Kind: provider.OverBudget, Message: "spent"}
	case "invalid":
		return nil, &provider.Error{Kind: provider.Invalid, Message: "no such model"}
	case "other":
		return nil, errors.New("unlucky")
	}
	for i := range 100 {
		step(browser.Step{Tool: &record.ToolCall{Name: "scroll", DurationMS: int64(i), Result: json.RawMessage(`{"y":1}`)}})
	}
	return &browser.Answer{Text: c.Text + " " + c.Made.Name, Model: "m", Requests: 2, Usage: record.Usage{InputTokens: 7, CostUSD: 0.5}}, nil
}

// serveBrowsers serves a state directory until the test ends.
func serveBrowsers(t *testing.T, dir string, h browser.Hub) *link.Server {
	t.Helper()
	s, err := link.Listen(dir)
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(link.Offer{Agents: newHub(1), Browsers: h, Log: slog.New(slog.DiscardHandler)}) })
	t.Cleanup(func() {
		_ = s.Close() // some tests have already closed it
		served.Wait()
	})
	return s
}

func TestBrowsers(t *testing.T) {
	t.Parallel()
	dir, h := t.TempDir(), newBrowsers()
	s := serveBrowsers(t, dir, h)
	c := client(t, dir)
	hub := c.Browsers()
	slot, err := hub.Reserve(t.Context(), &browser.Want{ID: "r/t/1/1"})
	require.NoError(t, err)
	require.Equal(t, "e/r/t/1/1", slot.ExtensionID())
	var steps []browser.Step
	answer, err := slot.Execute(t.Context(), &browser.Command{Text: "hi", Made: &browser.Made{Name: "n"}},
		func(s browser.Step) { steps = append(steps, s) })
	require.NoError(t, err)
	require.Equal(t, &browser.Answer{Text: "hi n", Model: "m", Requests: 2, Usage: record.Usage{InputTokens: 7, CostUSD: 0.5}}, answer)
	require.Len(t, steps, 100, "all updates arrived before the answer")
	require.Equal(t, int64(42), steps[42].Tool.DurationMS)

	execute := func(text string) error {
		_, err := slot.Execute(t.Context(), &browser.Command{Text: text}, nil)
		return err
	}
	require.Equal(t, "the extension has left", executor.AsRetry(execute("again")).Reason)
	err = execute("late")
	require.ErrorIs(t, err, executor.ErrTimeout)
	require.EqualError(t, err, "timeout exceeded: too late")
	err = execute("refused")
	require.False(t, executor.AsStop(err).Orderly)
	require.EqualError(t, err, "wrong key")
	require.True(t, executor.AsStop(execute("budget")).Orderly)
	err = execute("invalid")
	require.True(t, executor.IsPermanent(err))
	require.EqualError(t, err, "no such model")
	err = execute("other")
	require.False(t, executor.IsPermanent(err))
	require.EqualError(t, err, "unlucky")

	// Another trial waits until the slot is released.
	why := errors.New("the run was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = hub.Reserve(ctx, &browser.Want{})
	require.ErrorIs(t, err, why)
	ctx, cancel = context.WithCancelCause(t.Context())
	hanging := make(chan error, 1)
	go func() {
		_, err := slot.Execute(ctx, &browser.Command{Text: "hang"}, nil)
		hanging <- err
	}()
	cancel(why)
	require.ErrorIs(t, <-hanging, why)
	slot.Release()
	<-h.released
	slot, err = hub.Reserve(t.Context(), &browser.Want{})
	require.NoError(t, err)

	// Agents are assigned independently of it.
	room, err := c.Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err)
	room.Release()

	_, err = hub.Reserve(t.Context(), &browser.Want{Extension: "never"})
	require.True(t, executor.IsPermanent(err))
	extensions, err := hub.Extensions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []*browser.Extension{{ID: "e", Evaluation: true}}, extensions)
	assistants, err := hub.Assistants(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Shopper", assistants[0].Name)

	// When the server ends, the next one admits the trial again.
	require.NoError(t, s.Close())
	<-h.released
	_, err = slot.Execute(t.Context(), &browser.Command{Text: "hi"}, nil)
	require.Equal(t, "lost the connection to the waza server", executor.AsRetry(err).Reason)
	_, err = hub.Extensions(t.Context())
	require.ErrorIs(t, err, executor.ErrNoServer)
	serveBrowsers(t, dir, newBrowsers())
	again, err := hub.Reserve(t.Context(), &browser.Want{ID: "r/t/1/1"})
	require.NoError(t, err)
	again.Release()
}

// A server with a closed door reports a permanent error.
func TestNoBrowsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveBrowsers(t, dir, nil)
	hub := client(t, dir).Browsers()
	_, err := hub.Reserve(t.Context(), &browser.Want{})
	require.EqualError(t, err, "the waza server accepts no browser assistants: it runs with --browser off")
	require.True(t, executor.IsPermanent(err))
	extensions, err := hub.Extensions(t.Context())
	require.NoError(t, err)
	require.Empty(t, extensions)
}
