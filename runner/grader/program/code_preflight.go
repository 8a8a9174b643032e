package program

import (
	"context"
	"fmt"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
	"waza/runner/grader/assertion"
)

// preflightCode looks for the interpreters of the assertions and checks the syntax of all Python
// assertions at once. The interpreter stays for the run. JavaScript assertions were checked with
// the suite.
func preflightCode(ctx context.Context, specs []*eval.Grader, env *grader.Env) []grader.Finding {
	var python, javaScript []*eval.Grader
	for _, spec := range specs {
		o, ok := spec.Options.(*CodeOptions)
		switch {
		case ok && o.Language == grader.LanguageJavaScript:
			javaScript = append(javaScript, spec)
		case ok:
			python = append(python, spec)
		}
	}
	findings := preflightPython(ctx, python, env)
	if err := assertion.JavaScriptUnavailable(); err != nil {
		findings = append(findings, unavailable(ctx, javaScript, err)...)
	}
	return findings
}

func preflightPython(ctx context.Context, specs []*eval.Grader, env *grader.Env) []grader.Finding {
	type place struct {
		spec  *eval.Grader
		index int
	}
	var places []place
	var sources []string
	for _, spec := range specs {
		for i, source := range spec.Options.(*CodeOptions).Assertions {
			if strings.TrimSpace(source) != "" {
				places = append(places, place{spec, i})
				sources = append(sources, source)
			}
		}
	}
	if len(sources) == 0 {
		return nil
	}
	faults, err := env.Interpreters(grader.LanguagePython).Check(ctx, sources)
	if err != nil {
		return unavailable(ctx, specs, err)
	}
	var findings []grader.Finding
	for i, f := range faults {
		if f != nil {
			findings = append(findings, grader.Finding{
				Grader: places[i].spec, Path: decode.At("assertions", places[i].index), Severity: decode.Error,
				Code: decode.CodeBadAssertion, Message: fmt.Sprintf("assertions[%d]: %s", places[i].index, f),
			})
		}
	}
	return findings
}

// unavailable reports for each grader that its interpreter is missing. That is a warning,
// because the suite is valid; its trials will be errors with the same text.
func unavailable(ctx context.Context, specs []*eval.Grader, err error) []grader.Finding {
	if ctx.Err() != nil {
		return nil
	}
	findings := make([]grader.Finding, len(specs))
	for i, spec := range specs {
		findings[i] = grader.Finding{Grader: spec, Severity: decode.Warning, Code: decode.CodeUnavailable, Message: err.Error()}
	}
	return findings
}
