package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/text"
)

// Limits on lists and texts about suites.
const (
	maxSuites   = 200
	maxTasks    = 200
	maxFindings = 50
	maxProblems = 20
	maxSentence = 500 // bytes
)

type dirInput struct {
	Dir string `json:"dir,omitempty" jsonschema:"directory to search; the server's directory when absent"`
}

type suiteList struct {
	Evals    []suiteLine `json:"evals"`
	Omitted  int         `json:"omitted,omitempty" jsonschema:"number of suites that were left out; search a subdirectory to see them"`
	Problems []string    `json:"problems,omitempty" jsonschema:"suites and directories that could not be read"`
}

type suiteLine struct {
	Path        string `json:"path"`
	Name        string `json:"name"`
	Skill       string `json:"skill"`
	Description string `json:"description,omitempty"`
}

func (s suiteTools) listSuites(ctx context.Context, _ *sdk.CallToolRequest, in dirInput) (*suiteList, error) {
	dir, err := s.within("dir", in.Dir)
	if err != nil {
		return nil, err
	}
	var found struct {
		Evals    []discover.Summary
		Problems decode.Diagnostics
	}
	if err := s.daemon.call(ctx, "eval.list", map[string]any{"directory": dir}, &found); err != nil {
		return nil, err
	}
	r := &suiteList{Evals: []suiteLine{}, Problems: s.sentences(found.Problems[:min(len(found.Problems), maxProblems)])}
	for _, e := range found.Evals {
		r.Evals = append(r.Evals, suiteLine{s.relative(e.Path), shorten(e.Name, 100), shorten(e.Skill, 100), shorten(e.Description, 150)})
	}
	r.Evals = limitList(r.Evals, maxSuites)
	r.Omitted = len(found.Evals) - len(r.Evals)
	return r, nil
}

// sentences returns the first findings, one line each.
func (s *server) sentences(ds decode.Diagnostics) []string {
	var list []string
	for i, d := range ds {
		if i == maxFindings {
			return append(list, fmt.Sprintf("… and %s", text.Count(len(ds)-i, "more finding", "more findings")))
		}
		list = append(list, shorten(s.brief(d.String()), maxSentence))
	}
	return list
}

type suiteInput struct {
	Path string `json:"path" jsonschema:"suite file, or a directory that holds one suite"`
}

type suiteDetails struct {
	Path         string         `json:"path"`
	Name         string         `json:"name"`
	Description  string         `json:"description,omitempty"`
	Skill        string         `json:"skill"`
	Config       map[string]any `json:"config"`
	Metrics      map[string]any `json:"metrics,omitempty"`
	Tasks        []taskName     `json:"tasks"`
	TasksOmitted int            `json:"tasks_omitted,omitempty" jsonschema:"number of tasks that were left out; waza_task_list lists them"`
	Graders      []graderName   `json:"graders" jsonschema:"graders of the suite, which apply to all tasks"`
}

type taskName struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type graderName struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func (s suiteTools) getSuite(ctx context.Context, _ *sdk.CallToolRequest, in suiteInput) (*suiteDetails, error) {
	path, err := s.within("path", in.Path)
	if err != nil {
		return nil, err
	}
	r := &suiteDetails{}
	if err := s.daemon.call(ctx, "eval.get", map[string]any{"path": path}, r); err != nil {
		return nil, err
	}
	r.Path, r.Description = path, shorten(r.Description, maxSentence)
	if r.Graders == nil {
		r.Graders = []graderName{}
	}
	tasks, err := s.tasks(ctx, path)
	if err != nil {
		return nil, err
	}
	r.Tasks = []taskName{}
	for _, t := range tasks {
		r.Tasks = append(r.Tasks, taskName{t.ID, shorten(t.Name, 100)})
	}
	r.Tasks = limitList(r.Tasks, maxTasks)
	r.TasksOmitted = len(tasks) - len(r.Tasks)
	return r, nil
}

type validateInput struct {
	Path     string `json:"path" jsonschema:"suite file, or a directory that holds one suite"`
	Executor string `json:"executor,omitempty" jsonschema:"executor to check for instead of the suite's"`
	Agent    string `json:"agent,omitempty" jsonschema:"agent to check for instead of the suite's"`
}

type validation struct {
	Valid    bool     `json:"valid" jsonschema:"whether the suite can run"`
	Errors   []string `json:"errors" jsonschema:"reasons why the suite cannot run, one line each"`
	Warnings []string `json:"warnings,omitempty" jsonschema:"other findings, one line each"`
}

func (s suiteTools) validateSuite(ctx context.Context, _ *sdk.CallToolRequest, in validateInput) (*validation, error) {
	path, err := s.within("path", in.Path)
	if err != nil {
		return nil, err
	}
	var found struct {
		Valid       bool
		Diagnostics decode.Diagnostics
	}
	in.Path = path
	if err := s.daemon.call(ctx, "eval.validate", in, &found); err != nil {
		return nil, err
	}
	r := &validation{Valid: found.Valid, Errors: []string{}}
	r.Errors = append(r.Errors, s.sentences(found.Diagnostics.Errors())...)
	var others decode.Diagnostics
	for _, d := range found.Diagnostics {
		if d.Severity != decode.Error {
			others = append(others, d)
		}
	}
	r.Warnings = s.sentences(others)
	return r, nil
}

type tasksInput struct {
	EvalPath string `json:"eval_path" jsonschema:"suite file, or a directory that holds one suite"`
	Offset   int    `json:"offset,omitempty" jsonschema:"number of tasks to skip"`
}

type taskList struct {
	Tasks   []taskLine `json:"tasks"`
	Omitted int        `json:"omitted,omitempty" jsonschema:"number of tasks that were left out; get them with offset"`
}

type taskLine struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	File        string   `json:"file" jsonschema:"file that declares the task, relative to the suite's directory"`
	Line        int      `json:"line"`
	Tags        []string `json:"tags,omitempty"`
}

func (s suiteTools) listTasks(ctx context.Context, _ *sdk.CallToolRequest, in tasksInput) (*taskList, error) {
	path, err := s.within("eval_path", in.EvalPath)
	if err != nil {
		return nil, err
	}
	tasks, err := s.tasks(ctx, path)
	if err != nil {
		return nil, err
	}
	tasks = tasks[min(max(0, in.Offset), len(tasks)):]
	r := &taskList{Tasks: []taskLine{}}
	for _, t := range tasks {
		t.Name, t.Description, t.Tags = shorten(t.Name, 100), shorten(t.Description, 150), firstNames(t.Tags)
		r.Tasks = append(r.Tasks, t)
	}
	r.Tasks = limitList(r.Tasks, maxTasks)
	r.Omitted = len(tasks) - len(r.Tasks)
	return r, nil
}

func (s suiteTools) tasks(ctx context.Context, path string) ([]taskLine, error) {
	var found struct{ Tasks []taskLine }
	err := s.daemon.call(ctx, "task.list", map[string]any{"path": path}, &found)
	return found.Tasks, err
}
