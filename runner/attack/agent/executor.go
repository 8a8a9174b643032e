package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/executor/command"
	"waza/runner/proc"
)

// ExecutorName is the name of the executor that [Kind] returns.
const ExecutorName = "attack"

// Places are directories that a forger tries to read and to change. In a sandbox they do not exist.
type Places struct {
	// State is the state directory of the run.
	State string
	// Temp contains the copies of the suite and State. No forger searches or changes anything else
	// outside of its workspace.
	Temp string
}

// Kind returns the executor that lets an agent do trials, and each forger and script as a process of
// the executor command. Its name is [ExecutorName].
func Kind(a Attacker, at Places) executor.Kind {
	k := command.Kind
	k.Kind = eval.Kind{
		Name: ExecutorName, Summary: a.Summary, Params: eval.ParamsInEnvironment, TakesSkills: true, TakesServers: true,
	}
	k.Capabilities = func(executor.Settings) executor.Capabilities {
		return executor.Capabilities{Skills: true, Simulated: true} // no trigger tests
	}
	k.Open = func(ctx context.Context, s executor.Settings) (executor.Executor, error) { return open(ctx, s, a, at) }
	k.Preflight, k.Needs = nil, nil
	k.LocalReason = func(executor.Settings) string { return "the agents of an attack run beside the suite's copy" }
	return k
}

// actor lets an agent do trials.
type actor struct {
	agent  Attacker
	places Places
	suite  *eval.Suite
	// process starts this program as the agent.
	process executor.Executor
}

func open(ctx context.Context, s executor.Settings, a Attacker, at Places) (executor.Executor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the program of the agent: %w", err)
	}
	line, err := s.Sandboxes.Own(self, []string{argument, a.Name})
	if err != nil {
		return nil, err
	}
	s.Options = &command.Options{Command: command.Line{Args: line}, PromptAs: command.Stdin}
	process, err := command.Kind.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	return &actor{agent: a, places: at, suite: s.Suite, process: process}, nil
}

func (x *actor) Close() error { return x.process.Close() }

func (x *actor) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	switch {
	case x.agent.Solves:
		return x.solve(ctx, t)
	case x.agent.act == nil:
		return x.answer(ctx, t, func(prompt string) string {
			if x.agent.Name == Echo {
				return prompt
			}
			return ""
		})
	}
	b := brief{
		Suite: x.suite.Dir, State: x.places.State, Temp: x.places.Temp, Run: t.RunID, Calls: wantedCalls(t.Task), Skills: skillsOf(t.Task),
	}
	encoded, err := json.Marshal(b)
	if err != nil {
		return executor.Outcome{}, err
	}
	return x.start(ctx, t, briefVariable+"="+string(encoded))
}

// start starts the process of the agent for each prompt, with a further variable.
func (x *actor) start(ctx context.Context, t *executor.Trial, variable string) (executor.Outcome, error) {
	with := *t
	with.Env = append(slices.Clip(t.Env), variable)
	return x.process.Execute(ctx, &with)
}

// answer answers each prompt without a process.
func (x *actor) answer(ctx context.Context, t *executor.Trial, reply func(prompt string) string) (out executor.Outcome, err error) {
	if _, err := t.Start(); err != nil { // graders look at the workspace
		return out, err
	}
	err = t.Converse(ctx, func(ctx context.Context, _ int, prompt string) (executor.Outcome, error) {
		t.Transcript.Message("user", prompt)
		if out.Output = reply(prompt); out.Output != "" {
			t.Transcript.Message("assistant", out.Output)
		}
		return out, context.Cause(ctx)
	})
	return out, err
}

// solve carries out the solution of the trial's task.
func (x *actor) solve(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	s := t.Task.Solution
	if s == nil {
		return executor.Outcome{}, executor.Permanent(fmt.Errorf("task %s has no solution", t.Task.ID))
	}
	dir, err := t.Dir()
	if err != nil {
		return executor.Outcome{}, err
	}
	if err := x.putFiles(dir, s.Files, t.Expand); err != nil {
		return executor.Outcome{}, executor.Permanent(fmt.Errorf("solution: %w", err))
	}
	reply := func(string) string { return t.Expand(s.Output) }
	if s.ScriptFile == "" {
		return x.answer(ctx, t, reply)
	}
	script, err := x.script(s.ScriptFile)
	if err != nil {
		return executor.Outcome{}, err
	}
	current := s.ScriptFile
	with := *t
	with.Env = append(slices.Clip(t.Env), script)
	if len(s.FollowUps) > 0 {
		with.After = func(ctx context.Context, turn executor.Turn) (prompt string, more bool, err error) {
			if prompt, more, err = t.Next(ctx, turn); err != nil || !more {
				return prompt, more, err
			}
			next := eval.SolutionTurn{}
			if turn.Num <= len(s.FollowUps) {
				next = s.FollowUps[turn.Num-1]
			}
			current = next.ScriptFile
			if script, err = x.script(current); err == nil {
				err = x.putFiles(dir, next.Files, t.Expand)
			}
			with.Env = append(slices.Clip(t.Env), script)
			return prompt, more, err
		}
	}
	out, err := x.process.Execute(ctx, &with)
	if exit := (*proc.ExitError)(nil); errors.As(err, &exit) {
		_, said, _ := strings.Cut(err.Error(), exit.Error())
		err = fmt.Errorf("%s: %w%s", filepath.Base(current), exit, said)
	}
	if s.Output != "" {
		out.Output = reply("")
	}
	return out, err
}

// script returns the variable with the text of a script of a solution, which does nothing without a file.
func (x *actor) script(file string) (variable string, err error) {
	if file == "" {
		return scriptVariable + "=:", nil
	}
	script, err := x.suite.ReadFile(file, eval.MaxSolutionScript)
	if err != nil {
		return "", executor.Permanent(fmt.Errorf("solution: %s: %w", file, err))
	}
	if strings.ContainsRune(string(script), 0) {
		return "", executor.Permanent(fmt.Errorf("solution: %s is not a script: it contains NUL", file))
	}
	return scriptVariable + "=" + string(script), nil
}

// putFiles writes the files of a solution to the workspace, in place of files with the same paths.
func (x *actor) putFiles(dir string, list []eval.InputFile, expand func(string) string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range list {
		mode, content := fs.FileMode(0o644), []byte(nil)
		if f.Content != nil {
			content = []byte(expand(*f.Content))
		} else {
			if content, err = x.suite.ReadFile(f.Source, eval.MaxFixtureBytes); err != nil {
				return err
			}
			if info, err := os.Stat(f.Source); err == nil && info.Mode()&0o111 != 0 {
				mode = 0o755
			}
		}
		name := filepath.FromSlash(f.Path)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := root.WriteFile(name, content, mode); err != nil {
			return err
		}
	}
	return nil
}

// skillsOf returns the names of the skills of a task.
func skillsOf(t *eval.Task) []string {
	var names []string
	for _, dir := range t.Skills {
		names = append(names, filepath.Base(dir))
	}
	return names
}
