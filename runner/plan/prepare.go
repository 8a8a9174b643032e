package plan

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/record"
)

// Reading says how [Planner.Prepare] reads a suite. The zero value works.
type Reading struct {
	// Overlay and Looked are those of [eval.Options].
	Overlay map[string][]byte
	Looked  func(path string)
	// Complete, unless nil, completes the request when the suite is known and has no
	// errors. Its error is that of Prepare.
	Complete func(s *eval.Suite, req *record.Request) error
	// Later leaves looking for what this machine lacks to the caller, who may first
	// leave out tasks, see [Plan.Keep] and [Plan.Preflight].
	Later bool
}

// Prepared is a suite that was made ready to run, as far as that went.
type Prepared struct {
	// Suite is nil when its file cannot be read, or is no YAML map.
	Suite *eval.Suite
	// Plan is nil when the suite or this machine is not fit for the run: then
	// Diagnostics or Lacking have errors, or Prepare returned one. Start the plan, or
	// close it.
	Plan *Plan
	// Diagnostics are the findings about the suite's files. Lacking is what this machine
	// lacks for the run, looked for only if the suite has no errors; in order, and those
	// about the suite's own file under the path that Prepare was given.
	Diagnostics, Lacking decode.Diagnostics
}

// Close releases the plan, if there is one.
func (p *Prepared) Close() {
	if p.Plan != nil {
		p.Plan.Close()
	}
}

// All returns the findings of both kinds.
func (p *Prepared) All() decode.Diagnostics { return slices.Concat(p.Diagnostics, p.Lacking) }

// Prepare reads the suite at path, plans a run of it by a request, and looks for what
// this machine lacks for that. It is what every run begins with. What is wrong with the
// suite or the machine are diagnostics; an error says why there is no suite to read
// (then Suite is nil), or why the request cannot be met, see [Planner.Plan]. The
// Prepared is never nil.
func (r *Planner) Prepare(ctx context.Context, path string, req record.Request, o Reading) (*Prepared, error) {
	p := &Prepared{}
	var err error
	p.Suite, p.Diagnostics, err = eval.Load(path, eval.Options{
		Vocabulary: r.Vocabulary(), Executor: req.Executor, Agent: req.Agent, ContextDir: req.ContextDir, Overlay: o.Overlay, Looked: o.Looked,
	})
	if err != nil || p.Suite == nil || p.Diagnostics.HasErrors() {
		return p, err
	}
	if o.Complete != nil {
		if err := o.Complete(p.Suite, &req); err != nil {
			return p, err
		}
	}
	if filepath.Base(path) != filepath.Base(p.Suite.File) { // the directory that it is in
		path = p.Suite.File
	}
	p.Plan, err = r.Plan(ctx, p.Suite, req)
	if content := (*ContentError)(nil); errors.As(err, &content) {
		p.Diagnostics = append(p.Diagnostics, content.Diagnostic(path))
		return p, nil
	}
	if err != nil || o.Later {
		return p, err
	}
	p.Lacking = p.Plan.Preflight(ctx)
	for i := range p.Lacking {
		if d := &p.Lacking[i]; d.File == p.Suite.File {
			d.File = path
		}
	}
	SortDiagnostics(p.Lacking)
	if ctx.Err() != nil || p.Lacking.HasErrors() {
		p.Plan.Close()
		p.Plan = nil
		return p, context.Cause(ctx)
	}
	return p, nil
}

// SortDiagnostics puts findings in the order of files and lines.
func SortDiagnostics(ds decode.Diagnostics) {
	slices.SortStableFunc(ds, func(a, b decode.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
