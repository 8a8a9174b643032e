package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"waza/eval/text"
	"waza/runner/pause"
)

// A run reports waiting trials after firstReport if no extension can execute them, and every
// reportInterval.
const (
	firstReport    = time.Second
	reportInterval = 30 * time.Second
)

// board counts waiting trials. Its goroutine reports them as long as there are any; close ends
// it.
type board struct {
	hub       Hub
	extension string // required extension; empty for any
	logf      func(level, format string, args ...any)

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	ended  sync.WaitGroup // the goroutine

	mu      sync.Mutex // guards the fields below
	waiting int
	reports bool // the goroutine is running
}

func newBoard(hub Hub, extension string, logf func(level, format string, args ...any)) *board {
	b := &board{hub: hub, extension: extension, logf: logf}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

func (b *board) close() {
	b.cancel()
	b.ended.Wait()
}

// wait counts a trial as waiting until the returned function is called.
func (b *board) wait() (left func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting++
	if !b.reports && b.ctx.Err() == nil {
		b.reports = true
		b.ended.Go(b.report)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.waiting--
	}
}

// report repeatedly logs the waiting trials, until none is waiting or the executor is closed.
func (b *board) report() {
	next := firstReport
	for first := true; ; first = false {
		if pause.For(b.ctx, next) != nil {
			return
		}
		next = reportInterval
		if first {
			next -= firstReport
		}
		b.mu.Lock()
		n := b.waiting
		b.reports = n > 0
		b.mu.Unlock()
		if n == 0 {
			return
		}
		if level, why := b.why(); why != "" && !(first && level == "info") {
			b.logf(level, "%s: %s", text.Count(n, "trial waits for a browser", "trials wait for a browser"), why)
		}
	}
}

// why returns the reason why no extension can execute a trial. The level is info if the reason
// passes by itself.
func (b *board) why() (level, why string) {
	ctx, cancel := context.WithTimeout(b.ctx, serverTime)
	defer cancel()
	all, err := b.hub.Extensions(ctx)
	switch {
	case b.ctx.Err() != nil:
		return "", ""
	case errors.Is(err, ErrNoServer):
		return "warning", err.Error()
	case err != nil:
		return "warning", fmt.Sprintf("cannot list the extensions of the waza server: %v", err)
	}
	w := &Want{Extension: b.extension}
	fit := 0
	for _, e := range all {
		if w.Fits(e) {
			fit++
		}
	}
	switch {
	case fit == 0 && b.extension != "":
		return "warning", fmt.Sprintf("the extension %s is not connected", b.extension)
	case fit == 0 && len(all) == 0:
		return "warning", "no extension is connected: start one with waza browser-agent"
	case fit == 0:
		return "warning", "no connected extension is available for evaluations: start one with waza browser-agent, or set config.extension"
	case fit == 1:
		return "info", "the extension is busy"
	}
	if free := slices.IndexFunc(all, func(e *Extension) bool { return w.Fits(e) && e.Trial == "" && e.Command == "" }); free >= 0 {
		return "info", "" // an extension has just become free
	}
	return "info", fmt.Sprintf("all %d extensions are busy", fit)
}
