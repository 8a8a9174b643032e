package rpc

import (
	"context"
	"errors"
	"slices"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner/catalog"
	"waza/runner/record"
)

func cleanupMethods() []*method {
	return []*method{
		dispatch.Define("run.rm", dispatch.Long,
			"Delete a run and everything it recorded. An active run, or one whose record is being changed, is refused.",
			removeRun),
		dispatch.Define("run.gc", dispatch.Heavy,
			"Delete leftovers: workspaces of runs whose process was killed, and unfinished files. With keep, olderThan "+
				"or status, also delete the runs that match all given parameters. "+
				"Active runs are never deleted. `$/cancelRequest` stops the cleanup; files deleted until then stay deleted.", collectRuns),
	}
}

type removedRun struct {
	RunID string `json:"runId"`
	Bytes int64  `json:"bytes" doc:"Number of bytes deleted."`
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
	Keep      *int            `json:"keep" jsonschema:"minimum=0" doc:"Keep this many of the newest runs (of the given statuses) and delete older ones."`
	OlderThan string          `json:"olderThan" doc:"Delete runs that ended longer ago than this, such as 30d or 12h; an interrupted run counts from its start."`
	Status    []record.Status `json:"status" doc:"Delete only runs of these statuses."`
	DryRun    bool            `json:"dryRun" doc:"Delete nothing, and only report what would be deleted."`
}

type collected struct {
	Removed      []catalog.Removed `json:"removed" doc:"Runs and files that were deleted, or would be; at most 1000 entries."`
	TotalRemoved int               `json:"totalRemoved" doc:"Number of all entries."`
	Bytes        int64             `json:"bytes" doc:"Size of all entries in bytes."`
	DryRun       bool              `json:"dryRun"`
	Error        string            `json:"error,omitempty" doc:"Errors of deletions that failed; absent if all succeeded."`
}

// retention returns the retention that the parameters describe.
func (p *collectParams) retention() (catalog.Retention, error) {
	o := catalog.Retention{Keep: p.Keep, Statuses: p.Status}
	for _, s := range p.Status {
		if !slices.Contains(overStatuses, s) {
			return o, dispatch.WrongParam("status", map[string]any{"known": overStatuses}, " must contain only %v", overStatuses)
		}
	}
	if p.OlderThan != "" {
		var err error
		if o.OlderThan, err = catalog.ParseAge(p.OlderThan); err != nil {
			return o, dispatch.WrongParam("olderThan", nil, ": %v", err)
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
	r := &collected{Removed: orEmpty(slices.Clip(list[:min(len(list), maxChanges)])), TotalRemoved: len(list), DryRun: p.DryRun}
	for _, what := range list {
		r.Bytes += what.Bytes
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r, nil
}
