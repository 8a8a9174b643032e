package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner/catalog"
	"waza/runner/compare"
	"waza/runner/history"
	"waza/runner/record"
)

func compareMethods() []*method {
	return []*method{
		dispatch.Define("run.compare", dispatch.Heavy,
			"Tell what became better or worse from the first run to each further one, task by task and in all, and what may be chance. "+
				"Of a run that goes on, what has ended is compared. One run alone is compared by the cells of its matrix, each with the first.", compareRuns),
		dispatch.Define("task.history", dispatch.Heavy,
			"Tell what became of the tasks of a suite over its recorded runs, the flakiest first: verdicts, trials, and where each change of verdict comes from.", getHistory),
	}
}

type compareParams struct {
	RunIDs     []string `json:"runIds" jsonschema:"required" doc:"The runs, the reference first: ids, the beginnings of ids, latest, or latest~1 for the one before it of the same suite."`
	Tasks      []string `json:"tasks" doc:"Globs; only tasks whose id or name matches one are compared."`
	Confidence float64  `json:"confidence" jsonschema:"minimum=0.5,maximum=0.999" doc:"Of intervals, and of what is called improved or regressed in all tasks together; 0.95 when absent."`
	Margin     float64  `json:"margin" jsonschema:"minimum=0.001,maximum=1" doc:"By how much pass rates and scores may differ and still be the same; 0.1 when absent."`
}

// maxCompared bounds the runs of one comparison.
const maxCompared = 20

func compareRuns(ctx context.Context, c *call, p *compareParams) (*compare.Comparison, error) {
	if len(p.RunIDs) == 0 || len(p.RunIDs) > maxCompared {
		return nil, &dispatch.ParamError{Parameter: "runIds", Message: fmt.Sprintf(`parameter "runIds" must name 1 to %d runs`, maxCompared)}
	}
	var sources []compare.Source
	for _, ref := range p.RunIDs {
		h, err := findRef(c, "runIds", ref)
		if err != nil {
			return nil, err
		}
		if len(p.RunIDs) > 1 {
			sources = append(sources, compare.FromRun(h))
		} else if sources = compare.FromCells(h); len(sources) < 2 {
			return nil, &dispatch.ParamError{Parameter: "runIds", Message: `parameter "runIds" names one run, and that has no matrix to compare`, Data: map[string]any{"runId": h.ID()}}
		}
	}
	result, err := compare.Compare(ctx, sources, compare.Options{Confidence: p.Confidence, Margin: p.Margin, Tasks: p.Tasks})
	if errors.Is(err, compare.ErrNothingCompared) {
		return nil, &dispatch.ParamError{Parameter: "runIds", Message: err.Error()}
	}
	return result, err
}

// findRef gives the run that a parameter names in any way that people may.
func findRef(c *call, parameter, ref string) (record.Handle, error) {
	h, err := c.conn.runner.Catalog().Find(ref)
	var several *catalog.AmbiguousRunError
	switch {
	case errors.As(err, &several):
		return nil, &dispatch.ParamError{Parameter: parameter, Message: fmt.Sprintf("%q fits %d runs", dispatch.Clip(ref), len(several.RunIDs)), Data: map[string]any{"known": dispatch.Some(several.RunIDs)}}
	case errors.Is(err, record.ErrRunNotFound):
		reason := strings.TrimPrefix(err.Error(), record.ErrRunNotFound.Error()+": ")
		if reason == ref {
			reason = ""
		}
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "", dispatch.Compact(map[string]any{"runId": dispatch.Clip(ref), "reason": dispatch.Clip(reason)}))
	}
	return h, err
}

type historyParams struct {
	Path   string `json:"path" jsonschema:"required" doc:"Suite file, the directory that holds it, or the name of the suite; it need not be there any more."`
	TaskID string `json:"taskId" doc:"Only this task; a glob may stand for several."`
	Limit  int    `json:"limit" jsonschema:"minimum=1,maximum=1000" doc:"Most runs, the newest; 20 when absent."`
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
	var none *history.NoHistoryError
	if errors.As(err, &none) {
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "", map[string]any{"path": dispatch.Clip(p.Path), "reason": dispatch.Clip(none.Error())})
	}
	return h, err
}
