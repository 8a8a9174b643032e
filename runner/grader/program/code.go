package program

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/assertion"
)

// Code evaluates assertions in Python or JavaScript over the trial.
var Code = grader.Kind{
	Kind: grader.KindOf(eval.Kind{
		Name:    "code",
		Aliases: []string{"inline_script"},
		Summary: "Evaluates assertions, expressions of Python or JavaScript over the trial. The score is the share that is true; all must be.",
		Options: func() any { return &CodeOptions{Language: grader.LanguagePython} },
	}, checkCode, nil).Kind,
	New:       newCode,
	Preflight: preflightCode,
}

// CodeOptions are the options of the code grader.
type CodeOptions struct {
	// Expressions that must be true. They see output, output_json, outcome, transcript, tool_calls, errors, duration_ms,
	// context and files. output_json is the value of an output that is one JSON text, with or without a Markdown fence
	// around it, and None or null for any other. One that throws an exception, takes more than 5 seconds or too much memory is not true. A promise of
	// JavaScript is awaited: one that is rejected, or never settles, is not true.
	Assertions []string `yaml:"assertions"`
	// Language of the assertions: python, which needs a python3 (3.7 or later) on PATH or in WAZA_PYTHON, or javascript,
	// which needs nothing. Either runs in a process of its own, without the environment variables of waza.
	Language string `yaml:"language" jsonschema:"enum=python,enum=javascript"`
}

func checkCode(c *eval.Check, o *CodeOptions) {
	if len(o.Assertions) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give assertions")
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

// codeGrader evaluates assertions in an interpreter that is kept warm. It is safe
// for concurrent use.
type codeGrader struct {
	sources  []string
	language string
	uses     []string // the names of the scope that the sources mention
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

// assertionScore is the score of assertions by what is wrong with each; an
// empty text means nothing.
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

// decidable says why assertions that use these names of the scope prove nothing:
// what they are about was cut, so that neither what is absent nor what is counted
// is known.
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

// scopeNames are the names that assertions see, with what each holds.
var scopeNames = map[string]func(ctx context.Context, s *grader.Subject) (any, error){
	"output":      func(_ context.Context, s *grader.Subject) (any, error) { return s.Output, nil },
	"output_json": func(_ context.Context, s *grader.Subject) (any, error) { return scopeOutputJSON(s), nil },
	"outcome":     func(_ context.Context, s *grader.Subject) (any, error) { return scopeOutcome(s), nil },
	"transcript":  func(_ context.Context, s *grader.Subject) (any, error) { return scopeTranscript(s), nil },
	"tool_calls":  func(_ context.Context, s *grader.Subject) (any, error) { return scopeToolCalls(s), nil },
	"errors":      func(_ context.Context, s *grader.Subject) (any, error) { return append([]string{}, s.Errors...), nil },
	"duration_ms": func(_ context.Context, s *grader.Subject) (any, error) { return s.Duration.Milliseconds(), nil },
	"context":     func(_ context.Context, s *grader.Subject) (any, error) { return scopeContext(s), nil },
	"files":       scopeFiles,
}

// mentioned returns the names of the scope that the sources use, and perhaps some
// that they do not: only those are made, since reading all files of a workspace
// should not be for nothing.
func mentioned(sources []string) []string {
	var names []string
	for name := range scopeNames {
		if slices.ContainsFunc(sources, func(source string) bool { return mentions(source, name) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// mentions reports whether a name stands in a source outside of quotes. Where
// quotes are not plain, inside of them counts too.
func mentions(source, name string) bool {
	if !strings.Contains(source, name) {
		return false
	}
	if notPlain().MatchString(source) {
		return true
	}
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(quoted().ReplaceAllString(source, `""`))
}

var (
	// notPlain finds texts with code in them, texts over several lines, comments
	// and what may be a regular expression of JavaScript.
	notPlain = text.Pattern("(?i)\\bf?r?f['\"]|`|\"\"\"|'''|[#/]")
	quoted   = text.Pattern(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
)
