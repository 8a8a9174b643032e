package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner/baselines"
	"waza/runner/catalog"
	"waza/runner/compare"
	"waza/runner/history"
	"waza/runner/record"
)

func compareMethods() []*method {
	return []*method{
		dispatch.Define("run.compare", dispatch.Heavy,
			"Report what improved or regressed from the first run to each other run, per task and overall, and which differences may be chance. "+
				"Only the ended trials of an active run are compared. A single run is compared by the cells of its matrix, each with the first.",
			compareRuns),
		dispatch.Define("task.history", dispatch.Heavy,
			"Report the history of a suite's tasks over its recorded runs, the flakiest first: verdicts, trials, and the "+
				"cause of each change of verdict.",
			getHistory),
	}
}

type compareParams struct {
	RunIDs     []string `json:"runIds" jsonschema:"required" doc:"The runs, the reference first: ids, starts of ids, latest for the newest run of the project of the connection's first folder, or latest~1 for the run before it of the same suite. Without a folder, latest is the newest of all runs."`
	Tasks      []string `json:"tasks" doc:"Compare only tasks whose id or name matches one of these globs."`
	Confidence float64  `json:"confidence" jsonschema:"minimum=0.5,maximum=0.999" doc:"Confidence level of intervals, of all outcomes together, and of calling all tasks together improved or regressed; 0.95 when absent."`
	Margin     float64  `json:"margin" jsonschema:"minimum=0.001,maximum=1" doc:"Largest difference of pass rates and scores that counts as unchanged; 0.1 when absent."`

	About record.Question `json:"about" jsonschema:"enum=these_tasks,enum=tasks_like_these" doc:"Question of the outcome: whether anything changed on exactly these tasks, or on all tasks like these. When absent, the latter unless there are too few tasks."`

	AcceptDamaged bool `json:"acceptDamaged" doc:"Also compare runs with a damaged record, without its lost parts, and runs whose record cannot be verified; otherwise such a run is refused."`
}

// maxCompared limits the runs of one comparison.
const maxCompared = 20

func compareRuns(ctx context.Context, c *call, p *compareParams) (*compare.Comparison, error) {
	if len(p.RunIDs) == 0 || len(p.RunIDs) > maxCompared {
		return nil, dispatch.WrongParam("runIds", nil, " must contain 1 to %d runs", maxCompared)
	}
	var sources []compare.Source
	for _, ref := range p.RunIDs {
		h, err := c.findRef("runIds", ref)
		if err != nil {
			return nil, err
		}
		if len(p.RunIDs) > 1 {
			sources = append(sources, compare.FromRun(h))
		} else if sources = compare.FromCells(h); len(sources) < 2 {
			return nil, dispatch.WrongParam("runIds", map[string]any{"runId": h.ID()},
				" contains one run, which has no matrix; give a second run to compare")
		}
	}
	result, err := compare.Compare(ctx, sources, compare.Options{
		Confidence: p.Confidence, Margin: p.Margin, Tasks: p.Tasks, About: p.About, AcceptDamaged: p.AcceptDamaged,
		Ledger: baselines.In(c.conn.runner.Catalog().StateDir()),
	})
	if errors.Is(err, compare.ErrNothingCompared) {
		return nil, &dispatch.ParamError{Parameter: "runIds", Message: err.Error()}
	}
	if damaged, ok := errors.AsType[*compare.DamagedError](err); ok {
		return nil, &dispatch.ParamError{
			Parameter: "runIds", Message: err.Error() + "; acceptDamaged compares it without the lost parts",
			Data: map[string]any{"runId": damaged.RunID, "damage": damaged.Damage},
		}
	}
	return result, err
}

// findRef returns the run for a reference in any of the forms that people use.
func (c *call) findRef(parameter, ref string) (record.Handle, error) {
	h, err := c.conn.runner.Catalog().Find(c.conn.projectDir(), ref)
	var several *catalog.AmbiguousRunError
	switch {
	case errors.As(err, &several):
		return nil, &dispatch.ParamError{
			Parameter: parameter,
			Message:   fmt.Sprintf("%q matches %d runs", dispatch.Clip(ref), len(several.RunIDs)),
			Data:      map[string]any{"known": dispatch.FirstNames(several.RunIDs)},
		}
	case errors.Is(err, record.ErrRunNotFound):
		reason := strings.TrimPrefix(err.Error(), record.ErrRunNotFound.Error()+": ")
		if reason == ref {
			reason = ""
		}
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "",
			dispatch.Compact(map[string]any{"runId": dispatch.Clip(ref), "reason": dispatch.Clip(reason)}))
	}
	return h, err
}

type historyParams struct {
	Path   string `json:"path" jsonschema:"required" doc:"Suite file, the directory that holds it, or the name of the suite; the file need not exist any more."`
	TaskID string `json:"taskId" doc:"Only this task; a glob can match several."`
	Limit  int    `json:"limit" jsonschema:"minimum=1,maximum=1000" doc:"Maximum number of runs, the newest first; 20 when absent."`
}

func getHistory(ctx context.Context, c *call, p *historyParams) (*history.History, error) {
	path, err := c.conn.resolve("path", p.Path)
	if err != nil {
		return nil, err
	}
	o := history.Options{Suites: []string{p.Path, path}, Limit: p.Limit}
	if p.TaskID != "" {
		o.Tasks = []string{p.TaskID}
	}
	h, err := history.Read(ctx, c.conn.runner.Catalog(), o)
	if none, ok := errors.AsType[*history.NoHistoryError](err); ok {
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "",
			map[string]any{"path": dispatch.Clip(p.Path), "reason": dispatch.Clip(none.Error())})
	}
	return h, err
}
