// Package attack tests whether a suite can be fooled. [Run] lets the agents of package agent do its
// tasks, each on copies of the suite and with a state directory of its own, and reports which of
// them passed.
//
//	suite ─► for each agent: a copy, a run with executor attack ─► verdicts ─► Report
package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner"
	"waza/runner/attack/agent"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Options describe an attack.
type Options struct {
	// Path is the suite's file, or a directory that holds one suite.
	Path string
	// Tasks and Tags choose tasks like those of a run; empty means all.
	Tasks, Tags []string
	// Agents are the names of the agents to run; empty means all.
	Agents []string
	// JudgeModel, JudgeAgent and ContextDir replace those of the suite when not empty.
	JudgeModel, JudgeAgent, ContextDir string
	// Params are the values of parameters of the suite, by their names.
	Params map[string]string
	// Sandbox changes keys of the suite's config.sandbox: a mode or a map; empty means none.
	Sandbox string
	// Timeout replaces the timeouts of the suite and its tasks when positive.
	Timeout time.Duration
	// Progress is called after each trial, by one goroutine at a time; nil for nobody.
	Progress func(Progress)
	// Logger receives what belongs to no trial; nil discards it.
	Logger *slog.Logger
}

// Progress is a trial that has ended.
type Progress struct {
	Agent  string `json:"agent"`
	TaskID string `json:"taskId"`
	// Verdict is that of the trial. An agent that forges should not pass.
	Verdict record.Verdict `json:"verdict"`
	// Done and Total count trials, those that are skipped included.
	Done  int `json:"done"`
	Total int `json:"total"`
}

// An AgentError reports an agent that does not exist.
type AgentError struct{ Name string }

func (e *AgentError) Error() string {
	return fmt.Sprintf("unknown agent %q; known agents: %s", e.Name, strings.Join(agent.Names(), ", "))
}

// A SuiteError reports that a suite is invalid, or that it cannot be attacked.
type SuiteError struct {
	Path        string
	Diagnostics decode.Diagnostics
}

func (e *SuiteError) Error() string {
	var lines []string
	for _, d := range e.Diagnostics.Errors() {
		lines = append(lines, d.String())
	}
	return fmt.Sprintf("%s: the suite is invalid: %s", e.Path, strings.Join(lines, "; "))
}

// An UnreadError reports a suite file that does not exist or cannot be read.
type UnreadError struct {
	Path string
	Err  error
}

func (e *UnreadError) Error() string { return e.Err.Error() }

func (e *UnreadError) Unwrap() error { return e.Err }

// A KindError reports a suite whose purpose is not to grade tasks.
type KindError struct{ Kind eval.SuiteKind }

func (e *KindError) Error() string {
	return fmt.Sprintf("a suite of the kind %s cannot be attacked; its kind must be %s or %s", e.Kind, eval.ToolEval, eval.ParamTune)
}

// Run attacks a suite. It changes neither the suite nor any recorded run: everything happens in a
// temporary directory, which it removes. Files outside of the suite's repository have no copy. Hooks
// of the suite run in the copy, once for each agent.
//
// It returns an [*AgentError], an [*UnreadError], a [*SuiteError], a [*KindError], an error of
// [plan.Planner.Plan], or the cause of ctx. It blocks until all agents have ended, or, when ctx
// ends, until their processes have.
func Run(ctx context.Context, o Options) (*Report, error) {
	agents, err := chosen(o.Agents)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "waza-attack-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := os.RemoveAll(temp); err != nil {
			o.log().Warn("cannot remove the copies of an attack", "dir", temp, "error", err)
		}
	}()
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return nil, err
	}
	a := &attack{o: o, temp: temp, report: &Report{Agents: agents}}
	start := time.Now()
	if err := a.read(ctx); err != nil {
		return nil, err
	}
	for _, one := range agents {
		if err := a.let(ctx, one); err != nil {
			return nil, err
		}
	}
	a.report.conclude()
	a.report.DurationMS = time.Since(start).Milliseconds()
	return a.report, nil
}

func (o *Options) log() *slog.Logger { return cmp.Or(o.Logger, slog.New(slog.DiscardHandler)) }

// chosen returns the agents with the given names, in the order of the table; all if names is empty.
func chosen(names []string) ([]agent.Attacker, error) {
	for _, name := range names {
		if _, ok := agent.Find(name); !ok {
			return nil, &AgentError{name}
		}
	}
	return slices.DeleteFunc(agent.All(), func(a agent.Attacker) bool { return len(names) > 0 && !slices.Contains(names, a.Name) }), nil
}

// attack is an attack that is under way. Only one goroutine uses it.
type attack struct {
	o        Options
	temp     string // contains the copies and the state directories
	original *original
	tasks    []*eval.Task // in the order of the suite
	report   *Report
	done     int // trials
	copies   int
	copy     string // the root of the last copy
}

// read reads the suite and chooses its tasks.
func (a *attack) read(ctx context.Context) error {
	depends := map[string]bool{}
	nop, _ := agent.Find(agent.Nop)
	s, err := a.open(nop, filepath.Join(a.temp, "state"))
	if err != nil {
		return err
	}
	defer s.close()
	p, err := s.prepare(ctx, a.o.Path, false, plan.PrepareOptions{Accessed: func(path string) { depends[path] = true }})
	if err != nil {
		return err
	}
	defer p.Close()
	for path := range p.Plan.Files.Files {
		depends[path] = true
	}
	for _, t := range p.Suite.Tasks {
		for _, path := range t.Solution.Sources() {
			depends[path] = true
		}
	}
	a.original = newOriginal(p.Suite, depends, a.temp)
	a.report.Name, a.report.Path = p.Suite.Name, p.Suite.File
	if a.report.Sandbox, err = sandbox.Choose(p.Suite.Config.Sandbox.Mode); err != nil {
		return err
	}
	for _, t := range p.Plan.Tasks {
		a.tasks = append(a.tasks, t.Task)
		a.report.Tasks = append(a.report.Tasks, AttackedTask{ID: t.Task.ID})
	}
	for _, d := range p.All() {
		if d.Severity == decode.Warning && d.Code == decode.CodeUnavailable {
			a.report.Warnings = append(a.report.Warnings, d.String())
		}
	}
	return nil
}

// let lets an agent do all tasks.
func (a *attack) let(ctx context.Context, one agent.Attacker) error {
	var able []string
	for i, t := range a.tasks {
		res := TrialOutcome{Agent: one.Name}
		switch {
		case one.Solves && t.Solution == nil:
			res.Outcome, res.Reason = Unsolved, "the task has no solution"
		case one.Judged && !slices.ContainsFunc(t.AllGraders(), func(g *eval.Grader) bool { return isJudge(g.Type) }):
			res.Outcome, res.Reason = Skipped, "no judge: no grader asks a model"
		default:
			able = append(able, t.ID)
			res.Outcome, res.Reason = Errored, "the trial did not end"
			a.report.Tasks[i].Results = append(a.report.Tasks[i].Results, res)
			continue
		}
		a.report.Tasks[i].Results = append(a.report.Tasks[i].Results, res)
		a.advance(one, t.ID, record.Skipped)
	}
	if !one.Apart {
		if len(able) == 0 {
			return nil
		}
		return a.try(ctx, one, able)
	}
	for _, id := range able {
		if err := a.try(ctx, one, []string{id}); err != nil {
			return err
		}
	}
	return nil
}

// advance reports a trial that has ended.
func (a *attack) advance(one agent.Attacker, task string, v record.Verdict) {
	a.done++
	if a.o.Progress != nil {
		a.o.Progress(Progress{Agent: one.Name, TaskID: task, Verdict: v, Done: a.done, Total: len(a.report.Agents) * len(a.tasks)})
	}
}

// try lets an agent do some tasks in a copy of the suite of its own, and removes the copy.
func (a *attack) try(ctx context.Context, one agent.Attacker, tasks []string) error {
	a.copies++
	dir := filepath.Join(a.temp, fmt.Sprint(a.copies))
	defer os.RemoveAll(dir)
	a.copy = filepath.Join(dir, "suite", filepath.Base(a.original.root)) // suites of other tools are named like their folders
	suite, err := a.original.copyTo(ctx, a.copy)
	if err != nil {
		return fmt.Errorf("cannot copy the suite: %w", err)
	}
	state := filepath.Join(dir, "state")
	s, err := a.open(one, state)
	if err != nil {
		return err
	}
	defer s.close()
	run, err := s.run(ctx, suite, tasks, false, func(task string, v record.Verdict) { a.advance(one, task, v) })
	if err != nil {
		return err
	}
	if !one.Records {
		return a.take(one, run)
	}
	return a.reread(ctx, one, state, suite, run.ID(), tasks)
}

// reread takes the results of an agent from the records that it could change: those of its own run,
// and those that a later run reuses.
func (a *attack) reread(ctx context.Context, one agent.Attacker, state, suite, id string, tasks []string) error {
	nop, _ := agent.Find(agent.Nop)
	s, err := a.open(nop, state)
	if err != nil {
		return err
	}
	defer s.close()
	reused, err := s.run(ctx, suite, tasks, true, func(string, record.Verdict) {})
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		// The records were destroyed, so that they prove nothing.
		a.set(one, tasks, TrialOutcome{Agent: one.Name, Outcome: Failed, Reason: "the records are damaged: " + err.Error()})
		return nil
	}
	if err := a.take(one, reused); err != nil {
		return err
	}
	recorded, err := s.runner.Catalog().Run(id)
	if err != nil {
		return nil // nobody can read a forged pass there
	}
	forged := map[string]bool{}
	err = recorded.Trials(func(task int, t *record.Trial) error {
		ref := recorded.Record().Tasks[task]
		forged[cmp.Or(ref.Task, ref.ID)] = t.Verdict == record.Passed
		return nil
	})
	damage, derr := recorded.Damage()
	if err != nil || derr != nil || damage != nil {
		return nil // waza reports the damage to everyone who reads the run
	}
	for _, id := range tasks {
		if forged[id] {
			a.set(one, []string{id}, TrialOutcome{Agent: one.Name, Outcome: Passed})
		}
	}
	return nil
}

// set replaces the results of an agent in some tasks.
func (a *attack) set(one agent.Attacker, tasks []string, r TrialOutcome) {
	for i := range a.report.Tasks {
		t := &a.report.Tasks[i]
		if slices.Contains(tasks, t.ID) {
			if old := t.result(one.Name); old != nil {
				*old = r
			}
		}
	}
}

// take takes the results of an agent from a run.
func (a *attack) take(one agent.Attacker, run *runner.Run) error {
	ids := map[string]string{}
	for _, ref := range run.Record().Tasks {
		ids[ref.ID] = cmp.Or(ref.Task, ref.ID)
	}
	return run.Trials(func(_ int, t *record.Trial) error {
		r := resultOf(one, t, isJudge)
		r.Reason = strings.ReplaceAll(r.Reason, a.copy, a.original.root)
		a.set(one, []string{ids[t.TaskID]}, r)
		return nil
	})
}

// isJudge reports whether a type of graders asks models.
func isJudge(typ string) bool {
	k, ok := builtin.Graders.Lookup(typ)
	return ok && k.Judges != nil
}

// session is a runner for one agent.
type session struct {
	*attack
	runner *runner.Runner
}

// open opens a runner whose executor [agent.ExecutorName] is an agent.
func (a *attack) open(one agent.Attacker, state string) (*session, error) {
	kind := agent.Kind(one, agent.Places{State: state, Temp: a.temp})
	r, err := runner.New(runner.Options{StateDir: state, Executors: plan.Executors.With(kind), Logger: a.o.Logger})
	if err != nil {
		return nil, err
	}
	return &session{a, r}, nil
}

// closeTime limits the time for processes of cancelled agents to end.
const closeTime = 10 * time.Second

func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := s.runner.Close(ctx); err != nil {
		s.o.log().Warn("processes of an attack did not end", "error", err)
	}
}

// prepare prepares one trial of each chosen task.
func (s *session) prepare(ctx context.Context, path string, cache bool, po plan.PrepareOptions) (*plan.Prepared, error) {
	o := &s.o
	req := record.Request{
		Executor: agent.ExecutorName, Tasks: o.Tasks, Tags: o.Tags, JudgeModel: o.JudgeModel, JudgeAgent: o.JudgeAgent,
		ContextDir: o.ContextDir, Sandbox: o.Sandbox, Timeout: o.Timeout, Trials: 1, Stopping: new(float64), Fleet: record.FleetNone, Cache: cache,
		Params: o.Params,
	}
	po.Complete, po.WithPrograms = simplify, true
	p, err := s.runner.Planner().Prepare(ctx, path, req, po)
	switch {
	case err != nil && p.Suite == nil:
		return nil, &UnreadError{Path: path, Err: err}
	case err != nil:
		p.Close()
		return nil, err
	case p.Plan == nil:
		return nil, &SuiteError{Path: path, Diagnostics: p.All()}
	}
	return p, nil
}

// simplify removes from a suite that was just read what makes it try a task more than once: other
// models and combinations, baselines, further attempts. Only the kinds of suites that grade tasks
// can be attacked.
func simplify(s *eval.Suite, req *record.Request) error {
	if kind := cmp.Or(s.Kind, eval.ToolEval); kind != eval.ToolEval && kind != eval.ParamTune {
		return &KindError{kind}
	}
	s.Baseline, s.Config.MaxAttempts, s.Config.FailFast = false, 1, false
	s.Variants = s.Variants[:min(len(s.Variants), 1)]
	for i := range s.Variants {
		s.Variants[i].Executor, s.Variants[i].Options = agent.ExecutorName, nil
	}
	if len(s.Config.Models) > 0 {
		req.Model = s.Config.Models[0]
	}
	return nil
}

// run runs some tasks of a suite to their end. ended is called after each trial.
func (s *session) run(
	ctx context.Context, suite string, tasks []string, cache bool, ended func(task string, v record.Verdict),
) (*runner.Run, error) {
	p, err := s.prepare(ctx, suite, cache, plan.PrepareOptions{})
	if err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	ids := map[string]string{}
	for _, t := range p.Plan.Tasks {
		keep[t.ID], ids[t.ID] = slices.Contains(tasks, t.Task.ID), t.Task.ID
	}
	for id, wanted := range keep {
		if !wanted {
			delete(keep, id)
		}
	}
	p.Plan.Keep(keep)
	run, err := s.runner.Start(p.Plan)
	if err != nil {
		return nil, err
	}
	for events := run.SubscribeHeads(1); ; {
		batch, err := events.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			run.Cancel()
			break
		}
		for _, e := range batch {
			if e.Type == record.TrialComplete {
				ended(ids[e.TaskID], e.Verdict)
			}
		}
	}
	<-run.Done()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if status := run.Status(); status != record.StatusCompleted {
		return nil, fmt.Errorf("the run with an agent of the attack ended as %s", status)
	}
	return run, nil
}
