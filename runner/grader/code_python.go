package grader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"waza/eval"
)

// pythonGrader evaluates Python assertions in an interpreter that is kept warm.
// It is safe for concurrent use.
type pythonGrader struct {
	sources []string
	uses    []string // the names of the scope that the sources mention
	env     *Env
}

func (g *pythonGrader) Grade(ctx context.Context, s *Subject) (Score, error) {
	subject, err := scopeJSON(ctx, s, g.uses)
	if err != nil {
		return Score{}, err
	}
	complaints := make([]string, 0, len(g.sources))
	pool, timeout := g.env.pythons(), g.env.assertionTimeout()
	// Each round ends with the last assertion, or with one that took its
	// interpreter down; the rest goes on in another.
	for len(complaints) < len(g.sources) {
		w, err := pool.acquire(ctx)
		if err != nil {
			return Score{}, err
		}
		rest := g.sources[len(complaints):]
		err = w.grade(ctx, subject, rest, timeout, func(c string) { complaints = append(complaints, c) })
		if err == nil {
			pool.release(w)
			continue
		}
		said := pool.discard(w)
		var unreadable *errRequest
		switch cause := context.Cause(ctx); {
		case cause != nil:
			return Score{}, cause
		case errors.As(err, &unreadable):
			return Score{}, err
		}
		complaints = append(complaints, downfall(err, timeout, said))
	}
	return assertionScore(g.sources, complaints, s.Output), nil
}

// downfall says how an assertion took its interpreter down.
func downfall(err error, timeout time.Duration, said string) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("timed out after %v", timeout)
	}
	return "it crashed the interpreter" + said
}

// preflightPython looks for an interpreter and lets it check the syntax of all
// Python assertions at once. The interpreter stays for the run.
func preflightPython(ctx context.Context, specs []*eval.Grader, env *Env) []Finding {
	type place struct {
		spec  *eval.Grader
		index int
	}
	var places []place
	var sources []string
	var users []*eval.Grader
	for _, spec := range specs {
		o, ok := spec.Options.(*CodeOptions)
		if !ok || o.Language == languageJavaScript {
			continue
		}
		users = append(users, spec)
		for i, source := range o.Assertions {
			if strings.TrimSpace(source) != "" {
				places = append(places, place{spec, i})
				sources = append(sources, source)
			}
		}
	}
	if len(sources) == 0 {
		return nil
	}
	faults, err := checkPython(ctx, env, sources)
	if err != nil {
		return unavailable(ctx, users, err)
	}
	var findings []Finding
	for i, f := range faults {
		if f != nil {
			findings = append(findings, Finding{
				Grader: places[i].spec, Path: eval.At("assertions", places[i].index), Severity: eval.Error,
				Code: eval.CodeBadAssertion, Message: fmt.Sprintf("assertions[%d]: %s", places[i].index, f),
			})
		}
	}
	return findings
}

func checkPython(ctx context.Context, env *Env, sources []string) ([]*pythonFault, error) {
	pool := env.pythons()
	w, err := pool.acquire(ctx)
	if err != nil {
		return nil, err
	}
	faults, err := w.check(ctx, sources)
	if err != nil {
		return nil, fmt.Errorf("the Python interpreter failed: %w%s", err, pool.discard(w))
	}
	pool.release(w)
	return faults, nil
}

// unavailable tells of each grader that something it needs is missing. That is
// a warning: the suite is well, and its trials will say that they are in error.
func unavailable(ctx context.Context, specs []*eval.Grader, err error) []Finding {
	if ctx.Err() != nil {
		return nil
	}
	findings := make([]Finding, len(specs))
	for i, spec := range specs {
		findings[i] = Finding{Grader: spec, Severity: eval.Warning, Code: eval.CodeUnavailable, Message: err.Error()}
	}
	return findings
}
