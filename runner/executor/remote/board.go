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
	"waza/runner/executor"
)

const (
	// agentsTimeout is the time limit for the server to list its agents.
	agentsTimeout = 5 * time.Second
	// maxReported is the maximum number of kinds of trials that one report names.
	maxReported = 4
)

// boards holds the boards of the runs of this process. It is safe for concurrent use.
type boards struct {
	hub Hub

	mu   sync.Mutex // guards the field below and users of each board
	runs map[string]*board
}

// board holds the waiting trials of a run, which it reports.
type board struct {
	*executor.Queue[*Want]
	runID string
	users int // executors of the run
}

// join returns the board of a run. The caller must call leave.
func (bs *boards) join(runID string, logf func(level, format string, args ...any)) *board {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.runs[runID]
	if b == nil {
		b = &board{Queue: executor.NewQueue(logf, bs.line), runID: runID}
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
		b.Close()
	}
}

// line returns a report. An urgent report omits reasons that pass by themselves.
func (bs *boards) line(ctx context.Context, wants []*Want, urgent bool) (level, line string) {
	listing, cancel := context.WithTimeout(ctx, agentsTimeout)
	defer cancel()
	agents, err := bs.hub.Agents(listing)
	switch count := waits(len(wants)); {
	case ctx.Err() != nil:
		return "", ""
	case errors.Is(err, executor.ErrNoServer):
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
