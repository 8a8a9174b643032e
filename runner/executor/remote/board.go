package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"waza/eval/text"
	"waza/runner/pause"
)

// A run reports waiting trials after firstReport if no connected agent can execute them, and
// every reportInterval.
const (
	firstReport    = time.Second
	reportInterval = 30 * time.Second
	// agentsTimeout is the time limit for the server to list its agents.
	agentsTimeout = 5 * time.Second
	// maxReported is the maximum number of kinds of trials that one report names.
	maxReported = 4
)

// boards holds the boards of the runs of this process. It is safe for concurrent use.
type boards struct {
	hub Hub

	mu   sync.Mutex // guards the fields below and users of each board
	runs map[string]*board
}

// board counts the waiting trials of a run. Its goroutine reports them as long as there are any;
// leave ends it.
type board struct {
	hub   Hub
	runID string
	users int // executors of the run
	logf  func(level, format string, args ...any)

	ctx    context.Context // ends with the last user
	cancel context.CancelFunc
	ended  sync.WaitGroup // the goroutine

	mu      sync.Mutex // guards the fields below
	waiting map[*Want]struct{}
	reports bool // the goroutine is running
}

// join returns the board of a run. The caller must call leave.
func (bs *boards) join(runID string, logf func(level, format string, args ...any)) *board {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.runs[runID]
	if b == nil {
		b = &board{hub: bs.hub, runID: runID, logf: logf, waiting: map[*Want]struct{}{}}
		b.ctx, b.cancel = context.WithCancel(context.Background())
		if bs.runs == nil {
			bs.runs = map[string]*board{}
		}
		bs.runs[runID] = b
	}
	b.users++
	return b
}

func (bs *boards) leave(b *board) {
	bs.mu.Lock()
	b.users--
	last := b.users == 0
	if last {
		delete(bs.runs, b.runID)
	}
	bs.mu.Unlock()
	if last {
		b.cancel()
		b.ended.Wait()
	}
}

// wait counts a trial as waiting until the returned function is called.
func (b *board) wait(w *Want) (left func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[w] = struct{}{}
	if !b.reports && b.ctx.Err() == nil {
		b.reports = true
		b.ended.Go(b.report)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting, w)
	}
}

// report repeatedly logs the waiting trials, until none is waiting or the run is over.
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
		wants := b.wants()
		if wants == nil {
			return
		}
		if level, line := b.line(wants, first); line != "" {
			b.logf(level, "%s", line)
		}
	}
}

// wants returns the wants of waiting trials, or nil if no trial waits, which ends the reports.
func (b *board) wants() []*Want {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.reports = false
		return nil
	}
	return slices.Collect(maps.Keys(b.waiting))
}

// line returns a report. An urgent report omits reasons that pass by themselves.
func (b *board) line(wants []*Want, urgent bool) (level, line string) {
	ctx, cancel := context.WithTimeout(b.ctx, agentsTimeout)
	defer cancel()
	agents, err := b.hub.Agents(ctx)
	switch count := waits(len(wants)); {
	case b.ctx.Err() != nil:
		return "", ""
	case errors.Is(err, ErrNoServer):
		return "warning", fmt.Sprintf("%s: %v", count, err)
	case err != nil:
		return "warning", fmt.Sprintf("%s: cannot list the agents of the waza server: %v", count, err)
	}
	agents = slices.DeleteFunc(slices.Clone(agents), func(a *Agent) bool { return a.State == Gone })
	if len(agents) == 0 {
		return "warning", waits(len(wants)) + ": no agent is connected to the waza server"
	}
	if urgent {
		return "", ""
	}
	return describe(wants, agents)
}

// waits returns the number of waiting trials as text.
func waits(n int) string {
	return text.Count(n, "trial waits for an agent", "trials wait for an agent")
}

// describe returns which agents trials wait for, and why these cannot execute them.
func describe(wants []*Want, agents []*Agent) (level, line string) {
	type sort struct {
		*Want
		key   string
		count int
	}
	byKey := map[string]*sort{}
	for _, w := range wants {
		key := strings.Join([]string{w.Tool, strings.Join(w.Tools, ","), strings.Join(w.Clients, ",")}, "\n")
		if byKey[key] == nil {
			byKey[key] = &sort{Want: w, key: key}
		}
		byKey[key].count++
	}
	sorts := slices.SortedFunc(maps.Values(byKey), func(a, b *sort) int {
		if a.count != b.count {
			return b.count - a.count
		}
		return strings.Compare(a.key, b.key)
	})
	level = "info"
	var lines []string
	for i, s := range sorts {
		why, passes := s.why(agents)
		if !passes {
			level = "warning"
		}
		if i < maxReported {
			lines = append(lines, waits(s.count)+" with "+s.named()+": "+why)
		}
	}
	if more := len(sorts) - maxReported; more > 0 {
		lines = append(lines, text.Count(more, "other selection of agents", "other selections of agents"))
	}
	return level, strings.Join(lines, "; ")
}

// named returns the names of the tools that an agent must have.
func (w *Want) named() string {
	tools := append([]string{w.Tool}, w.Tools...)
	return fmt.Sprintf("the %s %s", text.Plural(len(tools), "tool", "tools"), text.Names(tools))
}

// why returns the reason why no agent can do the evaluation, and reports whether the reason
// passes by itself.
func (w *Want) why(agents []*Agent) (why string, passes bool) {
	chosen := agents
	if len(w.Clients) > 0 {
		chosen = slices.DeleteFunc(slices.Clone(agents), func(a *Agent) bool { return !slices.ContainsFunc(w.Clients, a.Is) })
		if len(chosen) == 0 {
			return fmt.Sprintf("none of remote.clients is connected (%s)", text.Names(w.Clients)), false
		}
	}
	var fit []*Agent
	states := map[string]int{}
	for _, a := range chosen {
		if w.Fits(a) {
			fit = append(fit, a)
			states[a.State]++
		}
	}
	switch n := len(fit); {
	case n == 0 && len(chosen) == 1:
		return "the connected agent does not have it", false
	case n == 0:
		return fmt.Sprintf("none of the %d connected agents has it", len(chosen)), false
	case states[Ready] > 0 && n == 1:
		return "the agent with it is busy", true
	case states[Ready] > 0:
		return fmt.Sprintf("all %d agents with it are busy", n), true
	case states[Paused] > 0:
		return "the agents with it are paused", true
	}
	return "the agents with it are not ready yet", false
}
