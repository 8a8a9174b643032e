package mcp

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval/files"
	"waza/runner/catalog"
	"waza/runner/record"
)

// Limits on lists of runs.
const (
	usualRuns  = 20  // in a list, unless the call asks for more
	mostRuns   = 200 // in a list
	summedRuns = 500 // newest runs in a summary
)

type sumInput struct {
	Dir string `json:"dir,omitempty" jsonschema:"only runs of suites below this directory; the server's directory when absent"`
}

type runsSummary struct {
	TotalRuns   int     `json:"totalRuns" jsonschema:"number of recorded runs; only the newest 500 count"`
	TotalTasks  int     `json:"totalTasks" jsonschema:"number of tasks of all these runs"`
	PassRate    float64 `json:"passRate" jsonschema:"share of the counted tasks that passed, 0 to 100; errors are not counted"`
	Damaged     int     `json:"damagedRuns,omitempty" jsonschema:"number of runs with a damaged record: what is left of them counts"`
	AvgTokens   float64 `json:"avgTokens" jsonschema:"average tokens of a completed run"`
	AvgCost     float64 `json:"avgCost" jsonschema:"average US dollars of a completed run"`
	AvgDuration float64 `json:"avgDuration" jsonschema:"average seconds of a completed run"`
}

func (s recordTools) sumUpRuns(ctx context.Context, _ *sdk.CallToolRequest, in sumInput) (*runsSummary, error) {
	infos, err := s.runsBelow(ctx, in.Dir, summedRuns)
	if err != nil {
		return nil, err
	}
	r := &runsSummary{TotalRuns: len(infos)}
	counted, passed, completed := 0, 0, 0
	for _, info := range infos {
		r.TotalTasks += info.Tasks.Total
		if info.Damage.Damaged() {
			r.Damaged++
		}
		counted += info.Tasks.Counted()
		passed += info.Tasks.Passed
		if info.Status != record.StatusCompleted {
			continue
		}
		completed++
		tokens, cost := s.spentBy(info.RunID)
		r.AvgTokens += float64(tokens)
		r.AvgCost += cost
		r.AvgDuration += secondsOf(&info)
	}
	if counted > 0 {
		r.PassRate = round(100 * float64(passed) / float64(counted))
	}
	if n := float64(completed); n > 0 {
		r.AvgTokens, r.AvgCost, r.AvgDuration = round(r.AvgTokens/n), round(r.AvgCost/n), round(r.AvgDuration/n)
	}
	return r, nil
}

type runsInput struct {
	Dir   string `json:"dir,omitempty" jsonschema:"only runs of suites below this directory; the server's directory when absent"`
	Limit int    `json:"limit,omitempty" jsonschema:"maximum number of runs, the newest; 20 when absent, up to 200"`
}

// runLine is a run in the form of microsoft/waza.
type runLine struct {
	ID         string  `json:"id"`
	Spec       string  `json:"spec"` // name of the suite
	Model      string  `json:"model"`
	JudgeModel string  `json:"judgeModel,omitempty"`
	Outcome    string  `json:"outcome"` // passed or failed, if the run completed; else its status
	PassCount  int     `json:"passCount"`
	TaskCount  int     `json:"taskCount"`
	Tokens     int64   `json:"tokens"`
	Cost       float64 `json:"cost"`     // US dollars
	Duration   float64 `json:"duration"` // seconds
	Timestamp  string  `json:"timestamp"`
	Source     string  `json:"source"` // suite file
	Damage     string  `json:"damage,omitempty"`
}

func (s recordTools) listRuns(ctx context.Context, _ *sdk.CallToolRequest, in runsInput) ([]runLine, error) {
	if in.Limit < 0 || in.Limit > mostRuns {
		return nil, fmt.Errorf("limit must be between 1 and %d, got %d", mostRuns, in.Limit)
	}
	limit := in.Limit
	if limit == 0 {
		limit = usualRuns
	}
	infos, err := s.runsBelow(ctx, in.Dir, limit)
	if err != nil {
		return nil, err
	}
	list := []runLine{}
	for _, info := range infos {
		tokens, cost := s.spentBy(info.RunID)
		line := runLine{
			ID: info.RunID, Spec: shorten(info.Suite.Name, 100), Model: info.Model, Outcome: outcomeOfRun(&info),
			PassCount: info.Tasks.Passed, TaskCount: info.Tasks.Total,
			Tokens: tokens, Cost: cost, Duration: secondsOf(&info), Timestamp: info.StartedAt.UTC().Format(time.RFC3339),
			Source: s.relative(info.Suite.Path), Damage: damageText(info.Damage),
		}
		if h, err := s.runner.Catalog().Run(info.RunID); err == nil {
			line.JudgeModel = h.Record().Config.JudgeModel
		}
		list = append(list, line)
	}
	return limitList(list, limit), nil
}

func outcomeOfRun(info *catalog.Info) string {
	switch {
	case info.Status != record.StatusCompleted:
		return foreignStatus(info.Status)
	case info.Tasks.Passed == info.Tasks.Total:
		return "passed"
	}
	return "failed"
}

// runsBelow lists the newest runs of suites below a directory.
func (s recordTools) runsBelow(ctx context.Context, dir string, limit int) ([]catalog.Info, error) {
	rel, err := s.within("dir", dir)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(s.dir, rel)
	infos, err := s.runner.Catalog().List(0)
	if err != nil {
		return nil, err
	}
	var below []catalog.Info
	real := map[string]string{} // paths without links
	for _, info := range infos {
		path, ok := real[info.Suite.Path]
		if !ok {
			path = files.RealPath(info.Suite.Path)
			real[info.Suite.Path] = path
		}
		if within, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(within) {
			below = append(below, info)
		}
		if len(below) == limit {
			break
		}
	}
	return below, context.Cause(ctx)
}

// spentBy returns the known cost of a run.
func (s recordTools) spentBy(id string) (tokens int64, cost float64) {
	h, err := s.runner.Catalog().Run(id)
	if err != nil {
		return 0, 0
	}
	p, err := h.Progress()
	if err != nil || p.Summary == nil || p.Summary.Usage == nil {
		return 0, 0
	}
	return p.Summary.Usage.Total(), p.Summary.Usage.CostUSD
}

// secondsOf returns the duration of a run; 0 if it has not ended.
func secondsOf(info *catalog.Info) float64 {
	if info.DurationMS == nil {
		return 0
	}
	return float64(*info.DurationMS) / 1000
}
