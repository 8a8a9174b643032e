// Package program grades a trial with code of the suite: programs, and assertions in Python or
// JavaScript. Use [Program] and [Code] through the registry of [waza/runner/grader/builtin].
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/match"
	"waza/runner/proc"
)

// Program runs a program of the suite in the workspace of the trial.
var Program = func() grader.Kind {
	k := grader.KindOf(eval.Kind{
		Name:    "program",
		Aliases: []string{"script"},
		Summary: "Runs a program in the workspace with the output on its standard input. Exit code 0 scores 1, any other 0, unless its last line gives a score.",
		Options: func() any { return &ProgramOptions{Timeout: 30} },
	}, checkProgram, newProgram)
	k.Preflight = preflightProgram
	k.Needs = programNeeds
	return k
}()

const (
	// programOutput is the most bytes kept of the end of a program's output.
	programOutput = 64 << 10
	// maxProgramFeedback is the most bytes of a program's feedback.
	maxProgramFeedback = 8 << 10
)

// ProgramOptions holds the options of the program grader.
type ProgramOptions struct {
	// Program to run: a file of the suite, of its repository, beside the task file or of the
	// process's directory, else one on PATH. It finds the trial through WAZA_WORKSPACE_DIR,
	// WAZA_OUTPUT_FILE and WAZA_TRANSCRIPT_FILE; WAZA_OUTPUT_DROPPED is the number of bytes cut
	// from the output. Its last line can be a JSON object with score, passed, feedback and
	// details.
	Command string `yaml:"command" jsonschema_extras:"x-refers=program" path:"maybe"`
	// Its arguments. Can use template variables. A script for an interpreter is found like the
	// program.
	Args []string `yaml:"args" path:"words"`
	// Old-style script, found like the program. It reads the trial from its standard input as
	// one JSON object with output, outcome, transcript, tool_calls, errors, duration_ms and
	// context.
	Script string `yaml:"script" jsonschema_extras:"x-refers=suite-file" path:"maybe"`
	// Maximum number of seconds that it can take. A program that takes longer is killed, and the
	// trial fails.
	Timeout float64 `yaml:"timeout" jsonschema:"exclusiveMinimum=0"`

	eval.Beside `yaml:"-"`
}

// Refers returns the program, its arguments and files named in commands among them, if they are
// files of the suite.
func (o *ProgramOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	return append(grader.ResolveFiles(o.Beside, suite, append([]string{o.Command, o.Script}, o.Args...)...), suite.Mentioned("", o.Args...)...)
}

func checkProgram(c *eval.Check, o *ProgramOptions) {
	switch {
	case strings.TrimSpace(o.Command) == "" && o.Script == "":
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to run: give command")
	case o.Command != "" && o.Script != "":
		c.Warnf(decode.At("script"), decode.CodeNoEffect, "script has no effect because command is set")
	case o.Script != "":
		c.File(decode.At("script"), o.Script)
	}
}

func newProgram(o *ProgramOptions, env *grader.Env) (grader.Grader, error) {
	return &programGrader{options: o, suite: env.Suite}, nil
}

type programGrader struct {
	options *ProgramOptions
	suite   *eval.Suite
}

// preflightProgram reports missing programs and scripts.
func preflightProgram(ctx context.Context, specs []*eval.Grader, env *grader.Env) []grader.Finding {
	var findings []grader.Finding
	for _, spec := range specs {
		o, ok := spec.Options.(*ProgramOptions)
		if !ok {
			continue
		}
		g := &programGrader{options: o, suite: env.Suite}
		if _, err := g.args(func(s string) string { return s }, os.Environ()); err != nil {
			key := "command"
			if o.Command == "" {
				key = "script"
			}
			findings = append(findings, grader.Finding{
				Grader: spec, Path: decode.At(key), Severity: decode.Warning, Code: decode.CodeUnavailable, Message: key + ": " + err.Error(),
			})
		} else if i, tried, missing := g.missingScript(); missing {
			findings = append(findings, grader.Finding{
				Grader: spec, Path: decode.At("args", i), Severity: decode.Warning, Code: decode.CodeMissingFile,
				Message: fmt.Sprintf("args[%d]: no such file: %s (tried %s), and the agent probably does not write it", i, o.Args[i], strings.Join(tried, ", ")),
			})
		}
	}
	return findings
}

func (g *programGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	environ := s.Env
	if environ == nil {
		environ = os.Environ()
	}
	args, err := g.args(s.Expanded, environ)
	if err != nil {
		return grader.Score{}, executor.Permanent(err)
	}
	if s.Dir == nil {
		return grader.Score{}, errors.New("the executor has no workspace")
	}
	if err := s.MissingAt(""); err != nil { // the program can read any file
		return grader.Score{}, err
	}
	dir, err := s.Dir()
	if err != nil {
		return grader.Score{}, fmt.Errorf("workspace: %w", err)
	}
	stdin, err := g.stdin(ctx, s)
	if err != nil {
		return grader.Score{}, err
	}
	temp, err := writeTrial(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer os.RemoveAll(temp)
	environ = append(environ[:len(environ):len(environ)],
		"WAZA_WORKSPACE_DIR="+dir,
		"WAZA_OUTPUT_FILE="+filepath.Join(temp, outputFile),
		"WAZA_TRANSCRIPT_FILE="+filepath.Join(temp, transcriptFile),
		fmt.Sprintf("WAZA_OUTPUT_DROPPED=%d", s.OutputDropped),
	)
	return g.run(ctx, proc.Command{Args: args, Dir: dir, Env: environ, Stdin: stdin})
}

// stdin returns the output, or the whole trial for an old-style script.
func (g *programGrader) stdin(ctx context.Context, s *grader.Subject) (io.Reader, error) {
	if g.options.Command != "" {
		return strings.NewReader(s.Output), nil
	}
	trial, err := scopeJSON(ctx, s, []string{"output", "outcome", "transcript", "tool_calls", "errors", "duration_ms", "context"})
	return bytes.NewReader(trial), err
}

// The names of the files that a program can read.
const (
	outputFile     = "output.txt"
	transcriptFile = "transcript.json"
)

// writeTrial writes the files that a program can read to a new directory outside the workspace.
// The caller removes it.
func writeTrial(s *grader.Subject) (dir string, err error) {
	if s.Temp != "" {
		if err := os.MkdirAll(s.Temp, 0o700); err != nil {
			return "", err
		}
	}
	dir, err = os.MkdirTemp(s.Temp, "waza-grader-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	if err = os.WriteFile(filepath.Join(dir, outputFile), []byte(s.Output), 0o600); err != nil {
		return "", err
	}
	transcript, err := match.EncodeJSON(scopeTranscript(s))
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, transcriptFile), transcript, 0o600)
}

// run runs the program and reads its verdict. A program that crashes or exceeds its timeout
// fails the trial, because it works on the agent's output: an agent must not escape the pass
// rate by making graders hang. If a signal from outside ends the program, there is no verdict,
// and run returns an error.
func (g *programGrader) run(ctx context.Context, cmd proc.Command) (grader.Score, error) {
	limit := time.Duration(g.options.Timeout * float64(time.Second))
	name := filepath.Base(cmd.Args[0])
	overrun := fmt.Errorf("%s ran longer than its timeout of %v", name, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overrun)
	defer cancel()
	stdout, stderr := &tail{max: programOutput}, &tail{max: programOutput}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := proc.Run(ctx, cmd)
	var exit *proc.ExitError
	switch {
	case errors.Is(err, overrun):
		return grader.Score{Feedback: fmt.Sprintf("%s: %s", overrun, lastWords(stdout, stderr))}, nil
	case err != nil && !errors.As(err, &exit):
		return grader.Score{}, err
	case exit != nil && exit.FromOutside():
		return grader.Score{}, fmt.Errorf("%s was %w: %s", name, exit, lastWords(stdout, stderr))
	case exit != nil && exit.Signal != "":
		return grader.Score{Feedback: fmt.Sprintf("%s crashed, %s: %s", name, exit, lastWords(stdout, stderr))}, nil
	}
	score := grader.Score{Score: 1, Passed: true}
	if exit != nil {
		score = grader.Score{Feedback: fmt.Sprintf("exit code %d: %s", exit.Code, lastWords(stdout, stderr))}
	}
	return overrideScore(score, stdout.String())
}

// lastWords returns the end of a program's output for a feedback.
func lastWords(stdout, stderr *tail) string {
	for _, t := range []*tail{stderr, stdout} {
		if words := strings.TrimSpace(t.String()); words != "" {
			return text.ClipStart(words, 4*grader.ExcerptBytes)
		}
	}
	return "it printed nothing"
}

// overrideScore applies the verdict in the last line of a program's output: a JSON object with
// score, passed, feedback and details. It must contain score or passed. A missing score follows
// from passed, and a missing passed from the exit code.
func overrideScore(score grader.Score, stdout string) (grader.Score, error) {
	var v struct {
		Score    *float64 `json:"score"`
		Passed   *bool    `json:"passed"`
		Feedback string   `json:"feedback"`
		Message  string   `json:"message"` // older spelling of feedback
		Details  any      `json:"details"`
	}
	line := match.WithoutBOM(lastLine(stdout))
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &v) != nil || v.Score == nil && v.Passed == nil {
		return score, nil
	}
	out := grader.Score{Passed: score.Passed, Feedback: v.Feedback, Details: v.Details}
	if out.Feedback == "" {
		out.Feedback = v.Message
	}
	out.Feedback = text.Clip(out.Feedback, maxProgramFeedback)
	if v.Passed != nil {
		out.Passed = *v.Passed
	}
	switch {
	case v.Score == nil && out.Passed:
		out.Score = 1
	case v.Score == nil:
	case math.IsNaN(*v.Score) || *v.Score < 0 || *v.Score > 1:
		return grader.Score{}, fmt.Errorf("its last line gives the score %v, expected a number from 0 to 1", *v.Score)
	default:
		out.Score = *v.Score
	}
	if !out.Passed && out.Feedback == "" {
		out.Feedback = "according to the program: " + text.Clip(line, grader.ExcerptBytes)
		if score.Feedback != "" {
			out.Feedback = score.Feedback
		}
	}
	return out, nil
}

// lastLine returns the last line of a text that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
