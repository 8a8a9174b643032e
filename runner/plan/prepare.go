package plan

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/runner/record"
)

// PrepareOptions configures how [Planner.Prepare] reads a suite. The zero value is valid.
type PrepareOptions struct {
	// Overlay and Accessed are those of [eval.Options].
	Overlay  map[string][]byte
	Accessed func(path string)
	// Complete, unless nil, completes the request when the suite has been read without errors.
	// Prepare returns its error.
	Complete func(s *eval.Suite, req *record.Request) error
	// WithPrograms runs the programs that return parts of the suite, see [Planner.Load]. Without it, the tasks
	// that need them are blocked.
	WithPrograms bool
	// Later makes Prepare skip the search for what this machine lacks. The caller can then first
	// remove tasks, see [Plan.Keep] and [Plan.Preflight].
	Later bool
}

// Prepared is the result of preparing a suite.
type Prepared struct {
	// Suite is nil when its file cannot be read or is not a YAML map.
	Suite *eval.Suite
	// Plan is nil when the suite or this machine is not ready for the run: Diagnostics or
	// Lacking then contain errors, or Prepare returned one. Start the plan, or close it.
	Plan *Plan
	// Diagnostics are the findings about the suite's files. Lacking lists what this machine
	// lacks for the run; Prepare checks this only if the suite has no errors. Both are sorted.
	// Findings about the suite's own file have the path that Prepare was given.
	Diagnostics, Lacking decode.Diagnostics
}

// Close closes the plan, if it exists.
func (p *Prepared) Close() {
	if p.Plan != nil {
		p.Plan.Close()
	}
}

// All returns the findings of both kinds.
func (p *Prepared) All() decode.Diagnostics { return slices.Concat(p.Diagnostics, p.Lacking) }

// Prepare reads the suite at path, plans a run of it for a request, and checks what this machine
// lacks for the run. Every run starts with it. Problems of the suite or the machine are
// diagnostics. An error states that the suite cannot be read (then Suite is nil), or that the
// request cannot be fulfilled, see [Planner.Plan]. The Prepared is never nil.
func (r *Planner) Prepare(ctx context.Context, path string, req record.Request, o PrepareOptions) (*Prepared, error) {
	p := &Prepared{}
	req.Baseline = req.Baseline || req.Against != nil || req.Decide != nil && req.Decide.Baseline()
	var err error
	load := r.Load
	if !o.WithPrograms {
		load = func(_ context.Context, path string, o eval.Options) (*eval.Suite, decode.Diagnostics, error) {
			return eval.Load(path, o)
		}
	}
	p.Suite, p.Diagnostics, err = load(ctx, path, eval.Options{
		Vocabulary: r.Vocabulary(), Executor: req.Executor, Agent: req.Agent, JudgeModel: req.JudgeModel,
		JudgeAgent: req.JudgeAgent, Sandbox: req.Sandbox, ExactTools: req.ExactTools, ContextDir: req.ContextDir,
		Baseline: req.Baseline, NoSkills: req.NoSkills, UpdateSnapshots: req.UpdateSnapshots, PassReward: req.PassReward,
		Params: req.Params, SecretParams: req.SecretParams,
		View: files.View{Overlay: o.Overlay, Accessed: o.Accessed},
	})
	if err != nil || p.Suite == nil || p.Diagnostics.HasErrors() {
		return p, err
	}
	if o.Complete != nil {
		if err := o.Complete(p.Suite, &req); err != nil {
			return p, err
		}
	}
	if filepath.Base(path) != filepath.Base(p.Suite.File) { // path is the directory of the suite
		path = p.Suite.File
	}
	p.Plan, err = r.Plan(ctx, p.Suite, req)
	if content := (*ContentError)(nil); errors.As(err, &content) {
		p.Diagnostics = append(p.Diagnostics, content.Diagnostic(path))
		return p, nil
	}
	if question := (*record.QuestionError)(nil); req.Decide == nil && errors.As(err, &question) {
		p.Diagnostics = append(p.Diagnostics, diagnose(p.Suite, question))
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

// SortDiagnostics sorts findings by file and line.
func SortDiagnostics(ds decode.Diagnostics) {
	slices.SortStableFunc(ds, func(a, b decode.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
