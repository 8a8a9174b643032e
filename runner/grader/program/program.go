// Package program grades a trial with code of the suite: programs, and assertions in Python or
// JavaScript. Use [Program], [Code] and [Reward] through the registry of [waza/runner/grader/builtin].
package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
	"waza/runner/internal/given"
	"waza/runner/internal/trajectory"
	"waza/runner/proc"
	"waza/runner/sandbox"
)

// Program runs a program of the suite.
var Program = func() grader.Kind {
	k := grader.KindOf(eval.Kind{
		Name:    "program",
		Aliases: []string{"script"},
		Summary: "Runs a program with the output on its standard input. Exit code 0 scores 1, any other 0, unless its last line gives a score.",
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
	// from the output. WAZA_SUITE_DIR is the directory of the suite, unless it trusts the workspace. Its last line can be a JSON object with score (a number from 0 to 1),
	// passed (true or false), feedback and details; any other score or passed is an error. A program
	// that cannot decide gives the score null and error, the reason. On Linux it can write that object to the file descriptor WAZA_RESULT_FD instead, which counts
	// only from its first process: programs that it starts cannot give a verdict then.
	Command string `yaml:"command" jsonschema_extras:"x-refers=program" path:"maybe"`
	// Its arguments. Can use template variables. A script for an interpreter is found like the
	// program.
	Args []string `yaml:"args" path:"words"`
	// Old-style script, found like the program. It reads the trial from its standard input as
	// one JSON object with output, outcome, transcript, tool_calls, errors, duration_ms and
	// context.
	Script string `yaml:"script" jsonschema_extras:"x-refers=suite-file" path:"maybe"`
	// Start the program in the workspace and let it trust what the agent left there: modules that
	// an interpreter imports, settings of git. Otherwise it starts in an empty directory and finds
	// the workspace through WAZA_WORKSPACE_DIR, Python imports neither from the current directory
	// nor from the user's packages, and git starts no program that the workspace names. Set it
	// only for programs that run the agent's code, such as pytest, because that code can then
	// decide the verdict.
	TrustWorkspace bool `yaml:"trust_workspace"`
	// Folder of the workspace in which the program starts; needs trust_workspace. If the folder does not
	// exist, the trial fails.
	SubPath string `yaml:"sub_path" json:",omitempty"`
	// Environment variables of the program.
	Env map[string]string `yaml:"env" json:",omitempty"`
	// Name of an environment variable with the path of a JSON file about the trial, in the form of Vally:
	// trajectory with events, metrics, output, workDir and stimulus, and stimulus with name and prompt.
	Trajectory string `yaml:"trajectory" json:",omitempty"`
	// Name of an environment variable with the absolute path of the workspace, as in WAZA_WORKSPACE_DIR.
	Workspace string `yaml:"workspace" json:",omitempty"`
	// A program that prints anything must print a JSON object with passed, and text can follow it. Otherwise
	// text without a verdict leaves the decision to the exit code.
	Strict bool `yaml:"strict" json:",omitempty"`
	// Conditions on the exit code and the output, instead of a verdict that the program prints. The score
	// is the share of conditions met; passes if all are.
	Expect *ProgramExpectation `yaml:"expect" json:",omitempty"`
	// Let the program use the network of the machine. In a sandbox it has none otherwise.
	Network bool `yaml:"network"`
	// Maximum number of seconds that it can take. A program that takes longer is killed, and the
	// trial fails.
	Timeout float64 `yaml:"timeout" jsonschema:"exclusiveMinimum=0"`

	eval.Beside `yaml:"-"`
}

// Refers returns the program, its arguments and files named in commands among them, if they are
// files of the suite, and the files that these use as far as their texts name them.
func (o *ProgramOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	named := append(grader.ResolveFiles(o.Beside, suite, append([]string{o.Command, o.Script}, o.Args...)...),
		suite.Mentioned("", o.Args...)...)
	return append(named, companions(suite, named)...)
}

// Words returns the program and its arguments.
func (o *ProgramOptions) Words() []string { return append([]string{o.Command, o.Script}, o.Args...) }

func checkProgram(c *eval.Check, o *ProgramOptions) {
	switch {
	case strings.TrimSpace(o.Command) == "" && o.Script == "":
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to run: give command")
	case o.Command != "" && o.Script != "":
		c.Warnf(decode.At("script"), decode.CodeNoEffect, "script has no effect because command is set")
	case o.Script != "":
		c.File(decode.At("script"), o.Script)
	}
	if c.Has(decode.At("sub_path")) {
		grader.CheckLocal(c, decode.At("sub_path"), o.SubPath)
		if !o.TrustWorkspace {
			c.Errorf(decode.At("sub_path"), decode.CodeNoEffect,
				"sub_path needs trust_workspace: true, because a program starts in an empty directory otherwise")
		}
	}
	for _, v := range []struct{ key, name string }{{"trajectory", o.Trajectory}, {"workspace", o.Workspace}} {
		if strings.ContainsAny(v.name, "=\x00") {
			c.Errorf(decode.At(v.key), decode.CodeInvalidValue, "%s must be the name of an environment variable, got %q", v.key, text.Clip(v.name, 60))
		}
	}
	if o.Strict && o.Expect != nil {
		c.Warnf(decode.At("strict"), decode.CodeNoEffect, "strict has no effect because expect decides")
	}
	if o.Expect != nil {
		o.Expect.check(c)
	}
}

func newProgram(o *ProgramOptions, env *grader.Env) (grader.Grader, error) {
	g := &programGrader{options: o, env: env}
	var err error
	if o.Expect != nil {
		g.expect, err = o.Expect.compile()
	}
	return g, err
}

type programGrader struct {
	options *ProgramOptions
	env     *grader.Env
	expect  *outputTest // nil if the program gives its verdict itself
}

// preflightProgram reports missing programs and scripts.
func preflightProgram(ctx context.Context, specs []*eval.Grader, env *grader.Env) []grader.Finding {
	var findings []grader.Finding
	for _, spec := range specs {
		o, ok := spec.Options.(*ProgramOptions)
		if !ok {
			continue
		}
		g := &programGrader{options: o, env: env}
		if _, err := g.commandLine(func(s string) string { return s }, os.Environ()); err != nil {
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
				Message: fmt.Sprintf("args[%d]: no such file: %s (tried %s), and the agent probably does not write it", i,
					o.Args[i], strings.Join(tried, ", ")),
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
	line, err := g.commandLine(s.Expanded, environ)
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
	// A process that the agent left can change files until the program has read them, so the
	// result counts only if nothing changed in the meantime.
	before := g.env.Planned.Compare(g.options, s.Task)
	if len(before.Changed) == 0 {
		score, err := g.gradeWith(ctx, s, line, dir, environ, nil, before.Compiled)
		if ctx.Err() != nil {
			return score, err
		}
		if score.Compared = g.env.Planned.Compare(g.options, s.Task).Same(before); score.Compared {
			return score, err
		}
	}
	contents, err := g.env.Planned.Contents(g.options, s.Task)
	if err != nil {
		return grader.Score{}, err
	}
	return g.gradeWith(ctx, s, line, dir, environ, contents, true)
}

// gradeWith runs the program once. If contents is not nil, it contains the files of the suite to
// use instead of those on disk. compiled reports whether there can be compiled modules of
// others.
func (g *programGrader) gradeWith(
	ctx context.Context, s *grader.Subject, line commandLine, workspace string, environ []string,
	contents map[string]grader.PlannedFile, compiled bool,
) (grader.Score, error) {
	stdin, err := g.stdin(ctx, s)
	if err != nil {
		return grader.Score{}, err
	}
	temp, err := writeTrial(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer os.RemoveAll(temp)
	if !g.options.TrustWorkspace { // the agent's code need not know it
		environ = append(slices.Clone(environ), suiteVariable+"="+g.env.Suite.Dir)
	}
	if contents != nil {
		if line, environ, err = g.copied(line, environ, contents, filepath.Join(temp, "suite"), workspace); err != nil {
			return grader.Score{}, fmt.Errorf("copies of the grader's files: %w", err)
		}
	}
	start, complaint, err := g.options.startIn(s, workspace)
	if err != nil || complaint != "" {
		return grader.Score{Feedback: complaint}, err
	}
	cmd := proc.Command{Args: line.args, Dir: start, Stdin: stdin}
	if !g.options.TrustWorkspace {
		cmd.Dir = filepath.Join(temp, "work")
		if err := os.Mkdir(cmd.Dir, 0o700); err != nil {
			return grader.Score{}, err
		}
		environ = apartEnviron(ctx, environ, workspace, temp, line, compiled)
	}
	var own []string
	for name, value := range g.options.Env {
		own = append(own, name+"="+value)
	}
	if name := g.options.Trajectory; name != "" {
		path := filepath.Join(temp, trajectoryFile)
		if err := writeTrajectory(s, workspace, path); err != nil {
			return grader.Score{}, err
		}
		own = append(own, name+"="+path)
	}
	if name := g.options.Workspace; name != "" {
		own = append(own, name+"="+workspace)
	}
	cmd.Env = append(slices.Concat(environ, own),
		"WAZA_WORKSPACE_DIR="+workspace,
		"WAZA_OUTPUT_FILE="+filepath.Join(temp, outputFile),
		"WAZA_TRANSCRIPT_FILE="+filepath.Join(temp, transcriptFile),
		fmt.Sprintf("WAZA_OUTPUT_DROPPED=%d", s.OutputDropped),
	)
	cmd.Sandbox = g.env.Sandboxes.For(sandbox.View{
		Env: cmd.Env, Suite: true, Read: append(g.visible(line), s.Borrowed...), Copy: []string{workspace}, Write: []string{temp}, Isolated: !g.options.Network, Task: s.Task.Sandbox, Workspace: workspace,
	})
	return g.run(ctx, cmd, s, workspace)
}

// visible returns the directories that the program can read in a sandbox besides the system: the
// suite's repository, and those of its own files elsewhere.
func (g *programGrader) visible(line commandLine) []string {
	dirs := []string{g.env.Suite.Root(), g.env.Suite.Dir}
	for _, i := range line.own {
		dirs = append(dirs, filepath.Dir(line.args[i]))
	}
	return dirs
}

// stdin returns the output, or the whole trial for an old-style script.
func (g *programGrader) stdin(ctx context.Context, s *grader.Subject) (io.Reader, error) {
	if g.options.Command != "" {
		return strings.NewReader(s.Output), nil
	}
	trial, err := scopeJSON(ctx, s, []string{"output", "outcome", "transcript", "tool_calls", "errors", "duration_ms", "context"})
	return bytes.NewReader(trial), err
}

// suiteVariable names the directory of the suite, or of the copies of its files.
const suiteVariable = "WAZA_SUITE_DIR"

// The names of the files that a program can read.
const (
	outputFile     = "output.txt"
	transcriptFile = "transcript.json"
	trajectoryFile = "trajectory.json"
)

// writeTrajectory writes the trial in the form of Vally.
func writeTrajectory(s *grader.Subject, workspace, path string) error {
	t := trajectory.From(s.Prompt, s.Output, s.Transcript, time.Time{})
	t.SetUsage(s.Usage)
	if !s.Untimed {
		took := s.Duration.Milliseconds()
		t.Metrics.WallTimeMS = &took
	}
	if s.Task != nil {
		t.Stimulus.Name = s.Task.ID
	}
	t.ID, t.WorkDir = t.Stimulus.Name, workspace
	data, err := jsonwalk.Encode(map[string]any{"trajectory": t, "stimulus": t.Stimulus})
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

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
	transcript, err := jsonwalk.Encode(grader.ScopeTranscript(s))
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, transcriptFile), transcript, 0o600)
}

// run runs the program and reads its verdict. A program that crashes or exceeds its timeout
// fails the trial, because it works on the agent's output: an agent must not escape the pass
// rate by making graders hang. If a signal from outside ends the program, there is no verdict,
// and run returns an error.
func (g *programGrader) run(ctx context.Context, cmd proc.Command, s *grader.Subject, workspace string) (grader.Score, error) {
	limit := time.Duration(g.options.Timeout * float64(time.Second))
	name := filepath.Base(cmd.Args[0])
	overrun := fmt.Errorf("%s ran longer than its timeout of %v", name, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overrun)
	defer cancel()
	kept := programOutput
	if g.expect != nil {
		kept = expectedOutput
	}
	stdout, stderr := &proc.Tail{Max: kept}, &proc.Tail{Max: kept}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	said, note, err := runWithChannel(ctx, cmd)
	var exit *proc.ExitError
	var exceeded *sandbox.LimitError
	switch {
	case errors.As(err, &exceeded):
		return grader.Score{Undecided: true, Feedback: fmt.Sprintf("%s was %v: %s", name, exceeded, lastWords(stdout, stderr))}, nil
	case errors.Is(err, overrun):
		return grader.Score{Undecided: true, Feedback: fmt.Sprintf("%s: %s", overrun, lastWords(stdout, stderr))}, nil
	case err != nil && !errors.As(err, &exit):
		return grader.Score{}, err
	case exit != nil && exit.FromOutside():
		return grader.Score{}, fmt.Errorf("%s was %w: %s", name, exit, lastWords(stdout, stderr))
	case exit != nil && exit.Signal != "":
		return grader.Score{Undecided: true, Feedback: fmt.Sprintf("%s crashed, %s: %s", name, exit, lastWords(stdout, stderr))}, nil
	}
	if g.expect != nil {
		code := 0
		if exit != nil {
			code = exit.Code
		}
		return g.expect.score(s, code, stdout, stderr)
	}
	score := grader.Score{Score: 1, Passed: true}
	if exit != nil {
		score = grader.Score{Feedback: fmt.Sprintf("exit code %d: %s", exit.Code, lastWords(stdout, stderr))}
	}
	if said == "" && g.options.Strict {
		said = anyVerdict(stdout.String())
		if said == "" && exit == nil && strings.TrimSpace(stdout.String()) != "" {
			return grader.Score{}, fmt.Errorf("%s printed no verdict; print a JSON object with passed, true or false, or nothing; got %s",
				name, lastWords(stdout, stdout))
		}
	} else if said == "" {
		if isCutVerdict(stdout) {
			return grader.Score{}, fmt.Errorf("the verdict of %s is longer than %d KiB; print fewer details", name, programOutput>>10)
		}
		said = printedVerdict(stdout.String())
	}
	if score, err = overrideScore(score, said); err == nil && note != "" {
		score.Feedback = strings.TrimSpace(score.Feedback + "\n" + note)
	}
	if err == nil && !g.options.TrustWorkspace {
		hint := distrustHint(cmd, workspace, score.Passed, stderr.String()+"\n"+stdout.String())
		score.Feedback = strings.TrimSpace(score.Feedback + "\n" + hint)
	}
	return score, err
}

// resultVariable names the file descriptor on which a program can give its verdict.
const resultVariable = "WAZA_RESULT_FD"

// runWithChannel runs a program that can give its verdict on a channel of its own, see [channel].
func runWithChannel(ctx context.Context, cmd proc.Command) (verdict, note string, err error) {
	c, err := openChannel()
	if err != nil {
		return "", "", err
	}
	if c == nil {
		return "", "", proc.Run(ctx, cmd)
	}
	cmd.ExtraFiles, cmd.OutputVariable = []*os.File{c.program}, sandbox.OutputVariable
	cmd.Env = append(slices.Clone(cmd.Env), resultVariable+"=3")
	p, err := proc.Start(ctx, cmd)
	if err != nil {
		c.close()
		return "", "", err
	}
	c.start(p.Pid())
	err = p.Wait()
	verdict, note = c.end()
	return verdict, note, err
}

// lastWords returns the end of a program's output for a feedback.
func lastWords(stdout, stderr *proc.Tail) string {
	for _, t := range []*proc.Tail{stderr, stdout} {
		if words := strings.TrimSpace(t.String()); words != "" {
			return text.ClipStart(words, 4*grader.ExcerptBytes)
		}
	}
	return "it printed nothing"
}

// programAnswer is the verdict that a program prints.
type programAnswer struct {
	Score    given.Score `json:"score"`
	Passed   given.Bool  `json:"passed"`
	Feedback string      `json:"feedback"`
	Message  string      `json:"message"`  // older spelling of feedback
	Evidence string      `json:"evidence"` // spelling of Vally
	Details  any         `json:"details"`
}

// overrideScore applies the verdict of a program, which can be empty: a JSON object with score, passed,
// feedback and details. It must contain score or passed. A missing score follows from passed,
// and a missing passed from the exit code. A score that is not a number from 0 to 1 is an error,
// because the exit code is not what the program says about the trial.
func overrideScore(score grader.Score, said string) (grader.Score, error) {
	if said == "" {
		return score, nil
	}
	var v programAnswer
	if err := json.Unmarshal([]byte(said), &v); err != nil {
		if reason := undecided(said); reason != "" {
			return grader.Score{}, errors.New(reason)
		}
		return grader.Score{}, fmt.Errorf("invalid verdict %s: %w; print a JSON object with score, a number from 0 to "+
			"1, or passed, true or false",
			text.Clip(said, grader.ExcerptBytes), err)
	}
	out := grader.Score{
		Score: v.Score.Value, Passed: score.Passed,
		Feedback: text.Clip(cmp.Or(v.Feedback, v.Message, v.Evidence), maxProgramFeedback), Details: v.Details,
	}
	if v.Passed.Given {
		out.Passed = v.Passed.Value
	}
	if !v.Score.Given && out.Passed {
		out.Score = 1
	}
	if !out.Passed && out.Feedback == "" {
		out.Feedback = "according to the program: " + text.Clip(said, grader.ExcerptBytes)
		if score.Feedback != "" {
			out.Feedback = score.Feedback
		}
	}
	return out, nil
}

// undecided returns the reason why a program gives no verdict; empty if it names none.
func undecided(said string) string {
	var v struct {
		Score  *float64 `json:"score"`
		Passed *bool    `json:"passed"`
		Error  string   `json:"error"`
	}
	if json.Unmarshal([]byte(said), &v) != nil || v.Score != nil || v.Passed != nil {
		return ""
	}
	return text.Clip(strings.TrimSpace(v.Error), maxProgramFeedback)
}

// verdictName finds the names of a verdict in a text that resembles JSON, such as a printed
// Python dictionary or JavaScript object.
var verdictName = text.Pattern(`(?i)(["']?)\b(score|passed)\b["']?\s*:`)

// printedVerdict returns the part of a program's output that is a verdict, or is meant to be
// one: the object at its end, on one line or on several of which the first starts with its brace.
// It returns an empty text if the output contains no verdict.
func printedVerdict(stdout string) string {
	said := lastObject(match.WithoutBOM(strings.TrimSpace(stdout)))
	if said == "" {
		return ""
	}
	var names map[string]json.RawMessage
	if json.Unmarshal([]byte(said), &names) != nil {
		if verdictName().MatchString(said) {
			return said
		}
		return ""
	}
	for name := range names {
		if strings.EqualFold(name, "score") || strings.EqualFold(name, "passed") {
			return said
		}
	}
	return ""
}

// anyVerdict returns the last object with passed that a program printed at the start of a line; text can
// follow it. It returns an empty text without one.
func anyVerdict(stdout string) (said string) {
	rest := "\n" + match.WithoutBOM(strings.TrimSpace(stdout))
	for invalid := 0; invalid < 1000; { // each can be as long as the output
		i := strings.Index(rest, "\n{")
		if i < 0 {
			return said
		}
		rest = rest[i+1:]
		var object json.RawMessage
		d := json.NewDecoder(strings.NewReader(rest))
		if d.Decode(&object) != nil {
			invalid++
			continue
		}
		if v := (programAnswer{}); json.Unmarshal(object, &v) != nil || v.Passed.Given {
			said = string(object)
		}
		rest = rest[d.InputOffset():]
	}
	return ""
}

// lastObject returns the object at the end of a text, which can be invalid JSON: the last line, or
// the lines from a brace at the start of a line. A valid object starts at the first such brace,
// any other at the last one.
func lastObject(text string) string {
	last := lastLine(text)
	first := strings.Index("\n"+text, "\n{")
	switch {
	case strings.HasSuffix(last, "}") && first >= 0 && json.Valid([]byte(text[first:])):
		return text[first:]
	case strings.HasPrefix(last, "{"):
		return last
	case strings.HasSuffix(last, "}") && first >= 0:
		return text[strings.LastIndex("\n"+text, "\n{"):]
	}
	return ""
}

// isCutVerdict reports whether the output ends with an object whose start was not kept.
func isCutVerdict(stdout *proc.Tail) bool {
	kept := strings.TrimSpace(stdout.String())
	return stdout.IsCut() && strings.HasSuffix(kept, "}") && lastObject(kept) == "" && verdictName().MatchString(kept)
}

// lastLine returns the last line of a text that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
