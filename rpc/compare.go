package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waza/rpc/wire"
	"waza/runner"
)

func compareMethods() []*method {
	return []*method{
		define("run.compare", heavy,
			"Tell what became better or worse from the first run to each further one, task by task and in all, and what may be chance. "+
				"Of a run that goes on, what has ended is compared. One run alone is compared by the cells of its matrix, each with the first.", (*call).runCompare),
		define("task.history", heavy,
			"Tell what became of the tasks of a suite over its recorded runs, the flakiest first: verdicts, trials, and where each change of verdict comes from.", (*call).taskHistory),
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

func (c *call) runCompare(ctx context.Context, p *compareParams) (*runner.Comparison, error) {
	if len(p.RunIDs) == 0 || len(p.RunIDs) > maxCompared {
		return nil, &paramError{parameter: "runIds", message: fmt.Sprintf(`parameter "runIds" must name 1 to %d runs`, maxCompared)}
	}
	var sources []runner.Source
	for _, ref := range p.RunIDs {
		h, err := c.findRef("runIds", ref)
		if err != nil {
			return nil, err
		}
		if len(p.RunIDs) > 1 {
			sources = append(sources, runner.FromRun(h))
		} else if sources = runner.FromCells(h); len(sources) < 2 {
			return nil, &paramError{parameter: "runIds", message: `parameter "runIds" names one run, and that has no matrix to compare`, data: map[string]any{"runId": h.ID()}}
		}
	}
	result, err := runner.Compare(ctx, sources, runner.CompareOptions{Confidence: p.Confidence, Margin: p.Margin, Tasks: p.Tasks})
	if errors.Is(err, runner.ErrNothingCompared) {
		return nil, &paramError{parameter: "runIds", message: err.Error()}
	}
	return result, err
}

// findRef gives the run that a parameter names in any way that people may.
func (c *call) findRef(parameter, ref string) (runner.Handle, error) {
	h, err := c.server.runner.Catalog().Find(ref)
	var several *runner.AmbiguousRunError
	switch {
	case errors.As(err, &several):
		return nil, &paramError{parameter: parameter, message: fmt.Sprintf("%q fits %d runs", clip(ref), len(several.RunIDs)), data: map[string]any{"known": some(several.RunIDs)}}
	case errors.Is(err, runner.ErrRunNotFound):
		reason := strings.TrimPrefix(err.Error(), runner.ErrRunNotFound.Error()+": ")
		if reason == ref {
			reason = ""
		}
		return nil, newFault(wire.CodeRunNotFound, "", compact(map[string]any{"runId": clip(ref), "reason": clip(reason)}))
	}
	return h, err
}

type historyParams struct {
	Path   string `json:"path" jsonschema:"required" doc:"Suite file, the directory that holds it, or the name of the suite; it need not be there any more."`
	TaskID string `json:"taskId" doc:"Only this task; a glob may stand for several."`
	Limit  int    `json:"limit" jsonschema:"minimum=1,maximum=1000" doc:"Most runs, the newest; 20 when absent."`
}

func (c *call) taskHistory(ctx context.Context, p *historyParams) (*runner.History, error) {
	path, err := c.resolve("path", p.Path)
	if err != nil {
		return nil, err
	}
	o := runner.HistoryOptions{Suites: []string{p.Path, path}, Limit: p.Limit}
	if p.TaskID != "" {
		o.Tasks = []string{p.TaskID}
	}
	h, err := c.server.runner.Catalog().History(ctx, o)
	var none *runner.NoHistoryError
	if errors.As(err, &none) {
		return nil, newFault(wire.CodeRunNotFound, "", map[string]any{"path": clip(p.Path), "reason": clip(none.Error())})
	}
	return h, err
}
