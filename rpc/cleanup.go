package rpc

import (
	"context"
	"errors"
	"slices"

	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner/catalog"
	"waza/runner/record"
)

func cleanupMethods() []*method {
	return []*method{
		dispatch.Define("run.rm", dispatch.Long, "Delete a run with all it recorded. One that goes on, or whose record is being changed, is refused.", removeRun),
		dispatch.Define("run.gc", dispatch.Heavy,
			"Delete what nobody needs: workspaces of runs whose process was killed, and files that were not finished. With keep, olderThan or status also runs, of which every parameter that is given must say that they go; "+
				"one that goes on never does. `$/cancelRequest` ends it; what was deleted until then is.", collectRuns),
	}
}

type removedRun struct {
	RunID string `json:"runId"`
	Bytes int64  `json:"bytes" doc:"How much was deleted."`
}

func removeRun(_ context.Context, c *call, p *runParams) (*removedRun, error) {
	bytes, err := c.conn.runner.Catalog().Remove(p.RunID)
	var busy *record.BusyError
	switch {
	case errors.Is(err, record.ErrRunNotFound):
		return nil, dispatch.NewFault(wire.CodeRunNotFound, "", map[string]any{"runId": dispatch.Clip(p.RunID)})
	case errors.As(err, &busy):
		return nil, err
	case err != nil:
		return nil, &dispatch.RunFailedError{Err: err}
	}
	return &removedRun{p.RunID, bytes}, nil
}

type collectParams struct {
	Keep      *int            `json:"keep" jsonschema:"minimum=0" doc:"Keep this many of the newest runs, of those of the given status, and delete others."`
	OlderThan string          `json:"olderThan" doc:"Delete runs that ended longer ago than this, such as 30d or 12h; one that was interrupted counts from its beginning."`
	Status    []record.Status `json:"status" doc:"Delete runs of these statuses only."`
	DryRun    bool            `json:"dryRun" doc:"Delete nothing, and tell what would be."`
}

type collected struct {
	Removed      []catalog.Removed `json:"removed" doc:"What was deleted, or would be; 1000 at most."`
	TotalRemoved int               `json:"totalRemoved" doc:"How many there are."`
	Bytes        int64             `json:"bytes" doc:"How much all of it is."`
	DryRun       bool              `json:"dryRun"`
	Error        string            `json:"error,omitempty" doc:"What could not be deleted; absent when nothing."`
}

// retention is what the parameters choose.
func (p *collectParams) retention() (catalog.Retention, error) {
	o := catalog.Retention{Keep: p.Keep, Statuses: p.Status}
	for _, s := range p.Status {
		if !slices.Contains(overStatuses, s) {
			return o, &dispatch.ParamError{Parameter: "status", Message: "parameter \"status\" must hold some of " + overStatuses.String(), Data: map[string]any{"known": overStatuses}}
		}
	}
	if p.OlderThan != "" {
		var err error
		if o.OlderThan, err = catalog.ParseAge(p.OlderThan); err != nil {
			return o, &dispatch.ParamError{Parameter: "olderThan", Message: "parameter \"olderThan\": " + err.Error()}
		}
	}
	return o, nil
}

func collectRuns(ctx context.Context, c *call, p *collectParams) (*collected, error) {
	o, err := p.retention()
	if err != nil {
		return nil, err
	}
	list, err := c.conn.runner.Catalog().Collect(ctx, o, p.DryRun)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r := &collected{Removed: slices.Clip(list[:min(len(list), maxChanges)]), TotalRemoved: len(list), DryRun: p.DryRun}
	if r.Removed == nil {
		r.Removed = []catalog.Removed{}
	}
	for _, what := range list {
		r.Bytes += what.Bytes
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r, nil
}
