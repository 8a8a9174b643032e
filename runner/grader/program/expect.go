package program

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/pattern"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/proc"
)

// ProgramExpectation holds conditions on the end and the output of a program. Each is one check.
type ProgramExpectation struct {
	// Exit code of the program.
	ExitCode int `yaml:"exit_code"`
	// Texts that its standard output must contain, in the same letter case. Can use template variables.
	StdoutContains []string `yaml:"stdout_contains"`
	// Texts that its standard error must contain, in the same letter case. Can use template variables.
	StderrContains []string `yaml:"stderr_contains"`
	// Regular expressions that must match somewhere in its standard output.
	StdoutMatches []string `yaml:"stdout_matches"`
	// Regular expressions that must not match anywhere in its standard output.
	StdoutNotMatches []string `yaml:"stdout_not_matches"`
	// Regular expressions that must match somewhere in its standard error.
	StderrMatches []string `yaml:"stderr_matches" json:",omitempty"`
	// Syntax of the regular expressions: that of Go (RE2), or that of JavaScript, where flags such as
	// (?i) at the start apply to the whole expression and a search of more than a second is an error.
	Syntax pattern.Syntax `yaml:"syntax" json:",omitempty" jsonschema:"enum=re2,enum=javascript,default=re2"`
}

// expectedOutput is the most bytes kept of each output of a program with expectations.
const expectedOutput = 4 << 20

func (e *ProgramExpectation) check(c *eval.Check) {
	for key, list := range map[string][]string{"stdout_contains": e.StdoutContains, "stderr_contains": e.StderrContains} {
		for i, want := range list {
			if want == "" {
				c.Errorf(decode.At("expect", key, i), decode.CodeInvalidValue, "expect.%s[%d] is empty, so every output contains it", key, i)
			}
		}
	}
	for key, list := range map[string][]string{
		"stdout_matches": e.StdoutMatches, "stdout_not_matches": e.StdoutNotMatches, "stderr_matches": e.StderrMatches,
	} {
		for i, want := range list {
			c.Pattern(decode.At("expect", key, i), e.Syntax, want)
		}
	}
}

// An outputTest is a ProgramExpectation ready for use.
type outputTest struct {
	*ProgramExpectation
	matches, notMatches, errMatches []*pattern.Pattern
}

func (e *ProgramExpectation) compile() (*outputTest, error) {
	t := &outputTest{ProgramExpectation: e}
	for _, list := range []struct {
		texts []string
		to    *[]*pattern.Pattern
	}{{e.StdoutMatches, &t.matches}, {e.StdoutNotMatches, &t.notMatches}, {e.StderrMatches, &t.errMatches}} {
		for _, expression := range list.texts {
			p, err := pattern.Compile(e.Syntax, expression)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, p)
		}
	}
	return t, nil
}

// errLongOutput means that conditions on the start of an output cannot be decided.
var errLongOutput = fmt.Errorf("the program printed more than %d MiB, and only the end is known", expectedOutput>>20)

// score returns the score of a program that ended with an exit code.
func (e *outputTest) score(s *grader.Subject, code int, stdout, stderr *proc.Tail) (grader.Score, error) {
	var t grader.Checklist
	complaint := ""
	if code != e.ExitCode {
		complaint = fmt.Sprintf("exit code %d, expected %d: %s", code, e.ExitCode, lastWords(stdout, stderr))
	}
	t.Add(fmt.Sprintf("exit code %d", e.ExitCode), complaint)
	cut := func(out *proc.Tail) error {
		if out.IsCut() {
			return errLongOutput
		}
		return nil
	}
	for _, out := range []struct {
		name string
		said *proc.Tail
		want []string
	}{{"standard output", stdout, e.StdoutContains}, {"standard error", stderr, e.StderrContains}} {
		for _, want := range out.want {
			want, complaint = s.Expanded(want), ""
			if !strings.Contains(out.said.String(), want) {
				complaint = fmt.Sprintf("the %s does not contain %q: %s", out.name, text.Clip(want, grader.ExcerptBytes), grader.Excerpt(out.said.String()))
			}
			t.Presence(fmt.Sprintf("%s contains %s", out.name, want), complaint, cut(out.said))
		}
	}
	for _, out := range []struct {
		name     string
		said     *proc.Tail
		patterns []*pattern.Pattern
		texts    []string
	}{{"standard output", stdout, e.matches, e.StdoutMatches}, {"standard error", stderr, e.errMatches, e.StderrMatches}} {
		for i, p := range out.patterns {
			_, found, err := p.Find(out.said.String())
			if complaint = ""; err != nil {
				return grader.Score{}, executor.Permanent(err)
			}
			if !found {
				complaint = fmt.Sprintf("the %s does not match /%s/: %s", out.name, out.texts[i], grader.Excerpt(out.said.String()))
			}
			t.Presence(out.name+" matches "+out.texts[i], complaint, cut(out.said))
		}
	}
	for i, p := range e.notMatches {
		m, found, err := p.Find(stdout.String())
		if complaint = ""; err != nil {
			return grader.Score{}, executor.Permanent(err)
		}
		if found {
			complaint = fmt.Sprintf("the standard output matches /%s/, which is forbidden: %s", e.StdoutNotMatches[i], grader.Excerpt(m))
		}
		t.Absence("standard output does not match "+e.StdoutNotMatches[i], complaint, cut(stdout))
	}
	return t.Result()
}

// startIn returns the directory of the workspace in which a program starts. complaint is the reason why the
// agent's workspace has none.
func (o *ProgramOptions) startIn(s *grader.Subject, workspace string) (dir, complaint string, err error) {
	if o.SubPath == "" {
		return workspace, "", nil
	}
	root, err := grader.OpenWorkspace(s)
	if err != nil {
		return "", "", err
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(o.SubPath)) // a link out of the workspace is an error
	switch {
	case err == nil && info.IsDir():
		return filepath.Join(workspace, filepath.FromSlash(o.SubPath)), "", nil
	case err == nil || grader.Absent(err) || errors.Is(grader.RootFault(err), grader.ErrEscapes):
		return "", fmt.Sprintf("the workspace has no folder %s", o.SubPath), nil
	}
	return "", "", err
}
