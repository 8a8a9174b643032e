package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/invopop/jsonschema"

	"waza/eval"
	"waza/rpc/internal/dispatch"
	"waza/runner/record"
)

func taskMethods() []*method {
	return []*method{
		dispatch.Define("task.list", dispatch.Heavy, "List the tasks of a suite.", listTasks),
		dispatch.Define("task.get", dispatch.Heavy, "Return the prompt, inputs and graders of a task.", getTask),
		dispatch.Define("task.run", dispatch.Heavy,
			"Start a run of some tasks of a suite, or of one trial of them. Reply and notifications are like those of eval.run.", runTasks),
	}
}

type taskListResult struct {
	Tasks []taskLine `json:"tasks"`
}

type taskLine struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	File        string   `json:"file" doc:"File that declares the task, relative to the suite's directory."`
	Line        int      `json:"line" doc:"Line where the task starts, from 1."`
	Tags        []string `json:"tags,omitempty"`
	Golden      bool     `json:"golden,omitempty" doc:"The task must never fail."`
	Cluster     string   `json:"cluster,omitempty" doc:"The name that dependent tasks share, such as the document that they are about."`
}

func listTasks(ctx context.Context, c *call, p *suiteParams) (*taskListResult, error) {
	suite, err := load(ctx, c, p.Path, eval.Options{Params: p.Params})
	if err != nil {
		return nil, err
	}
	r := &taskListResult{Tasks: []taskLine{}}
	listed := map[string]bool{}
	for _, t := range suite.Tasks {
		if !listed[t.ID] { // tasks of different cells can have the same id
			r.Tasks = append(r.Tasks, lineOf(t))
		}
		listed[t.ID] = true
	}
	return r, nil
}

func lineOf(t *eval.Task) taskLine {
	return taskLine{ID: t.ID, Name: t.Name, Description: t.Description, File: t.RelFile, Line: t.Line, Tags: t.Tags, Golden: t.Golden, Cluster: t.Cluster}
}

type taskParams struct {
	Path   string      `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	TaskID string      `json:"taskId" jsonschema:"required" doc:"Id of the task."`
	Params paramValues `json:"params" doc:"Values of the parameters of the suite, as in eval.run."`
}

type taskDetails struct {
	ID              string        `json:"id"`
	Name            string        `json:"name"`
	Description     string        `json:"description"`
	Prompt          string        `json:"prompt" doc:"Prompt for the agent; template variables are not filled in."`
	FollowUpPrompts []string      `json:"follow_up_prompts,omitempty"`
	Tool            string        `json:"tool,omitempty" doc:"Tool that a remote agent uses."`
	URL             string        `json:"url,omitempty" doc:"Address that a remote agent works on."`
	Input           any           `json:"input,omitempty" doc:"Input for the tool of a remote agent; template variables are not filled in."`
	Priority        string        `json:"priority,omitempty" doc:"Priority of the task for remote agents: low, normal or high."`
	Graders         []graderShown `json:"graders" doc:"The graders that apply to the task, including those of the suite."`
	File            string        `json:"file" doc:"File that declares the task, relative to the suite's directory."`
	Line            int           `json:"line" doc:"Line where the task starts, from 1."`
	Tags            []string      `json:"tags,omitempty"`
	Golden          bool          `json:"golden,omitempty" doc:"The task must never fail."`
	Cluster         string        `json:"cluster,omitempty" doc:"The name that dependent tasks share, such as the document that they are about."`
	TimeoutSeconds  float64       `json:"timeout_seconds,omitempty" doc:"The task's own timeout; absent when the suite's timeout applies."`
}

// graderShown is a grader: name, type, weight and config. Members of config whose names are free
// are also members of the grader.
type graderShown map[string]any

// JSONSchema describes the result of showGrader.
func (graderShown) JSONSchema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), Required: []string{"name", "type", "weight", "config"}}
	s.Properties.Set("name", &jsonschema.Schema{Type: "string"})
	s.Properties.Set("type", &jsonschema.Schema{Type: "string", Description: "As the suite writes it."})
	s.Properties.Set("kind", &jsonschema.Schema{Type: "string", Description: "The type's canonical name, if the suite uses an alias."})
	s.Properties.Set("weight", &jsonschema.Schema{Type: "number"})
	s.Properties.Set("config", &jsonschema.Schema{
		Type:        "object",
		Description: "The options as written in the suite; they are also members of the grader itself if their names are free.",
	})
	s.AdditionalProperties = jsonschema.TrueSchema
	return s
}

func getTask(ctx context.Context, c *call, p *taskParams) (*taskDetails, error) {
	suite, err := load(ctx, c, p.Path, eval.Options{Params: p.Params})
	if err != nil {
		return nil, err
	}
	t := suite.Task(p.TaskID)
	if t == nil {
		return nil, noTask(suite, p.TaskID)
	}
	d := &taskDetails{
		ID: t.ID, Name: t.Name, Description: t.Description, Prompt: t.Inputs.Prompt, FollowUpPrompts: t.Inputs.FollowUpPrompts,
		Tool: t.Inputs.Tool, URL: t.Inputs.URL, Input: t.Inputs.Input, Priority: t.Inputs.Priority,
		Graders: []graderShown{}, File: t.RelFile, Line: t.Line, Tags: t.Tags, Golden: t.Golden, Cluster: t.Cluster, TimeoutSeconds: t.TimeoutSeconds,
	}
	for _, g := range t.Effective {
		d.Graders = append(d.Graders, showGrader(g))
	}
	return d, nil
}

func noTask(suite *eval.Suite, id string) error {
	e := &dispatch.TaskNotFoundError{ID: id}
	for _, t := range suite.Tasks {
		e.Known = append(e.Known, t.ID)
	}
	return e
}

func showGrader(g *eval.Grader) graderShown {
	config := plainMap(g.Config)
	shown := graderShown{}
	for k, v := range config {
		shown[k] = v
	}
	weight := g.Weight
	if weight <= 0 {
		weight = 1
	}
	shown["name"], shown["type"], shown["weight"], shown["config"] = g.Name, g.Type, weight, config
	if g.TypeAlias != "" && g.TypeAlias != g.Type {
		shown["type"], shown["kind"] = g.TypeAlias, g.Type
	}
	return shown
}

// plainMap converts a map of a suite's values for JSON.
func plainMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = plain(v)
	}
	return out
}

// plain converts a value of a suite for JSON: keys become strings, and values without a JSON
// form become text.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return plainMap(v)
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[fmt.Sprint(k)] = plain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	}
	if _, err := json.Marshal(v); err != nil {
		return fmt.Sprint(v)
	}
	return v
}

type taskRunParams struct {
	Path   string   `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	TaskID string   `json:"taskId" doc:"Id of the task to run. Either this or tasks is required."`
	Tasks  []string `json:"tasks" doc:"Run only tasks whose id or name matches one of these globs."`
	Trial  int      `json:"trial" jsonschema:"minimum=1" doc:"Run only the trial with this number, from 1."`
	RunOptions
}

func runTasks(ctx context.Context, c *call, p *taskRunParams) (*runStarted, error) {
	switch {
	case p.TaskID == "" && len(p.Tasks) == 0:
		return nil, dispatch.WrongParam("taskId", nil, ` is missing (or give "tasks")`)
	case p.TaskID != "" && len(p.Tasks) > 0:
		return nil, &dispatch.ParamError{Parameter: "tasks", Message: `give either "taskId" or "tasks", not both`}
	}
	req := record.Request{Tasks: p.Tasks, Task: p.TaskID, Trial: p.Trial}
	return start(ctx, c, p.Path, req, &p.RunOptions, func(suite *eval.Suite, _ *record.Request) error {
		// the plan checks ids of tasks in a combination of a matrix
		if p.TaskID != "" && suite.Task(p.TaskID) == nil && !strings.HasSuffix(p.TaskID, "]") {
			return noTask(suite, p.TaskID)
		}
		return nil
	})
}
