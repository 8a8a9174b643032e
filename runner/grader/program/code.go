package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/assertion"
	"waza/runner/record"
)

// Code evaluates assertions about the trial in Python or JavaScript.
var Code = grader.Kind{
	Kind: grader.KindOf(eval.Kind{
		Name:    "code",
		Aliases: []string{"inline_script"},
		Summary: "Evaluates assertions: expressions in Python or JavaScript about the trial. The score is the share " +
			"that is true. Passes if all are true. A JavaScript function can score the trial instead.",
		Options: func() any { return &CodeOptions{Language: grader.LanguagePython} },
	}, checkCode, nil).Kind,
	New:       newCode,
	Preflight: preflightCode,
	Needs: func(spec *eval.Grader, _ *grader.Env) []record.Need {
		if o, ok := spec.Options.(*CodeOptions); !ok || o.Language == grader.LanguageJavaScript || o.Function != "" {
			return nil // waza is the interpreter
		}
		return executor.ProgramNeeds("python3", false)
	},
}

// CodeOptions holds the options of the code grader.
type CodeOptions struct {
	// Expressions that must be true. They can use output, output_json, outcome, transcript,
	// tool_calls, errors, duration_ms, context, files and created_files. output_json is the value
	// of an output that is one JSON text, with or without a Markdown fence around it, and None or
	// null for any other output. created_files is the list of the paths of the files that the agent
	// created. An assertion fails if it throws an exception, takes more than 5 seconds or takes too
	// much memory. A JavaScript promise is awaited; it fails if it is rejected or never settles.
	Assertions []string `yaml:"assertions"`
	// Language of the assertions: python, which needs a python3 (3.7 or later) on PATH or in
	// WAZA_PYTHON, or javascript, which needs nothing. Both run in separate processes, without
	// the environment variables of waza.
	Language string `yaml:"language" jsonschema:"enum=python,enum=javascript"`
	// Body of a JavaScript function of output and context, in place of assertions. It returns true or
	// false, a number, which is the score, or an object with pass, score (a number) and reason. The
	// grader fails if it returns anything else, throws an exception, or takes too much time or memory.
	// output is the answer, or the value that transform made of it. The function can also use
	// transcript, tool_calls and created_files, as assertions do. It finds no modules and nothing of
	// Node.js; if it needs some, the trial is an error.
	Function string `yaml:"function"`
	// Least number for function to pass; when absent, any number above 0 passes.
	Threshold *float64 `yaml:"threshold"`
}

func checkCode(c *eval.Check, o *CodeOptions) {
	if o.Function != "" {
		checkFunction(c, o)
		return
	}
	if len(o.Assertions) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give assertions or a function")
	}
	if c.Negated() {
		c.Errorf(decode.At(), decode.CodeInvalidValue, "negate cannot be used with assertions; write the opposite of each")
	}
	if o.Threshold != nil {
		c.Errorf(decode.At("threshold"), decode.CodeNoEffect, "threshold has an effect only with function")
	}
	for i, source := range o.Assertions {
		at := decode.At("assertions", i)
		if strings.TrimSpace(source) == "" {
			c.Errorf(at, decode.CodeInvalidValue, "%s is empty", at)
			continue
		}
		if o.Language != grader.LanguageJavaScript {
			continue // Preflight asks the interpreter
		}
		if fault := assertion.CheckJavaScript(source); fault != nil {
			c.Errorf(at, decode.CodeBadAssertion, "%s: %s", at, fault)
		}
	}
}

func newCode(spec *eval.Grader, env *grader.Env) (grader.Grader, error) {
	o, ok := spec.Options.(*CodeOptions)
	if !ok {
		return nil, fmt.Errorf("options of type code are missing")
	}
	if o.Function != "" {
		return newFunction(o, env)
	}
	for i, source := range o.Assertions {
		if o.Language != grader.LanguageJavaScript {
			break
		}
		if fault := assertion.CheckJavaScript(source); fault != nil {
			return nil, fmt.Errorf("%s: %w", decode.At("assertions", i), fault)
		}
	}
	return &codeGrader{sources: o.Assertions, language: o.Language, uses: mentioned(o.Assertions), env: env}, nil
}

// A codeGrader evaluates assertions in interpreters that are kept warm. It is safe for
// concurrent use.
type codeGrader struct {
	sources  []string
	language string
	uses     []string // the names of the scope that the sources use
	env      *grader.Env
}

func (g *codeGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	if err := decidable(s, g.uses); err != nil {
		return grader.Score{}, err
	}
	subject, err := scopeJSON(ctx, s, g.uses)
	if err != nil {
		return grader.Score{}, err
	}
	complaints, err := g.env.Interpreters(g.language).Grade(ctx, subject, g.sources, g.env.AssertionLimit())
	if unavailable := (*assertion.UnavailableError)(nil); errors.As(err, &unavailable) {
		err = executor.Permanent(err)
	}
	if err != nil {
		return grader.Score{}, err
	}
	return assertionScore(g.sources, complaints, s.Output), nil
}

// assertionScore returns the score of assertions from the complaint about each. An empty
// complaint means that the assertion is true.
func assertionScore(sources, complaints []string, output string) grader.Score {
	t := grader.NewChecklist(len(sources))
	for i, source := range sources {
		complaint := ""
		if complaints[i] != "" {
			complaint = fmt.Sprintf("%s: %s", text.Clip(strings.TrimSpace(source), grader.ExcerptBytes), complaints[i])
		}
		t.Add(source, complaint)
	}
	score := t.Score()
	if !score.Passed && strings.Contains(score.Feedback, "output") {
		score.Feedback += "\noutput: " + grader.Excerpt(output)
	}
	return score
}

// decidable returns an error if assertions that use these names prove nothing because the
// trial's data was cut. Absent data and counts are then unknown.
func decidable(s *grader.Subject, names []string) error {
	for _, name := range names {
		var cut error
		switch name {
		case "output", "output_json":
			cut = s.OutputCut()
		case "outcome", "transcript", "tool_calls", "errors":
			cut = s.TranscriptCut()
		}
		if cut != nil {
			return fmt.Errorf("assertions that use %s prove nothing: %w", name, cut)
		}
	}
	return nil
}

// scopeNames maps the names that assertions can use to the functions that return their values.
var scopeNames = map[string]func(ctx context.Context, s *grader.Subject) (any, error){
	"output":        func(_ context.Context, s *grader.Subject) (any, error) { return s.Output, nil },
	"output_json":   func(_ context.Context, s *grader.Subject) (any, error) { return scopeOutputJSON(s), nil },
	"outcome":       func(_ context.Context, s *grader.Subject) (any, error) { return scopeOutcome(s), nil },
	"transcript":    func(_ context.Context, s *grader.Subject) (any, error) { return grader.ScopeTranscript(s), nil },
	"tool_calls":    func(_ context.Context, s *grader.Subject) (any, error) { return grader.ScopeToolCalls(s), nil },
	"errors":        func(_ context.Context, s *grader.Subject) (any, error) { return append([]string{}, s.Errors...), nil },
	"duration_ms":   func(_ context.Context, s *grader.Subject) (any, error) { return scopeDuration(s) },
	"context":       func(_ context.Context, s *grader.Subject) (any, error) { return scopeContext(s), nil },
	"files":         scopeFiles,
	"created_files": func(ctx context.Context, s *grader.Subject) (any, error) { return s.CreatedFiles(ctx) },
}

func scopeDuration(s *grader.Subject) (any, error) {
	took, err := s.Took()
	if err != nil {
		return nil, fmt.Errorf("duration_ms: %w", err)
	}
	return took.Milliseconds(), nil
}

// mentioned returns the names of the scope that the sources use, and perhaps some that they do
// not use. Only these values are built, because reading all files of a workspace is expensive.
func mentioned(sources []string) []string {
	var names []string
	for name := range scopeNames {
		if slices.ContainsFunc(sources, func(source string) bool { return grader.Mentions(source, name) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
