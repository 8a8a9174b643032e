package eval

import (
	"strconv"
	"strings"

	"waza/eval/decode"
	"waza/eval/template"
	"waza/eval/text"
)

// Texts of a suite can contain variables in double braces, see package template. waza accepts
// the spellings of several tools:
//
//	{{name}} {{ .name }} {{.Vars.name}} {{inputs.name}}   a column of the dataset, or an input of the suite
//	{{context.key.key}}                                    a value of the task's inputs.context
//	{{task_id}} {{task_name}} {{.TaskName}}                the task
//	{{fixture:file}}                                       the text of a fixture, in prompts
//	{{run_id}} {{.JobID}} {{timestamp}} {{trial}} {{.Iteration}} {{attempt}}   the trial
//	{{model}}                                              the requested model
//	{{name}} {{params.name}}                               a parameter of config.matrix
//
// A variable of the suite overrides a built-in one of the same name. A text that looks like a
// variable and has no value gets a warning.

var variableName = text.Pattern(`^[\pL_][\pL\pN_-]*$`)

// MaxExpandedBytes is the maximum length of a text after template variables are replaced. A
// short suite can use a long variable many times, and the result could exceed any memory.
const MaxExpandedBytes = decode.MaxTextBytes

// Expand replaces the template variables in a text of the suite with their values. It returns a
// text without variables unchanged. If the result would be longer than limit bytes, it returns a
// [*template.TooLongError] without building more than the limit.
func (t *Task) Expand(text string, v TrialVars, limit int) (string, error) {
	return template.Expand(text, t.values(v), limit)
}

func (t *Task) values(v TrialVars) template.Values {
	return func(expr string) (string, bool) { return t.variable(expr, v) }
}

// fits reports whether an expanded text is at most [MaxExpandedBytes] long.
func (t *Task) fits(text string) bool {
	return template.Fits(text, t.values(TrialVars{}), MaxExpandedBytes)
}

// variable returns the value of the expression between the braces.
func (t *Task) variable(expr string, v TrialVars) (value string, known bool) {
	if t.Literal {
		return "", false
	}
	if value, known = t.Vars[expr]; known {
		return value, true
	}
	name := strings.TrimPrefix(expr, ".")
	if value, known = t.Vars[name]; known {
		return value, true
	}
	if value, known = v.Params[name]; known {
		return value, true
	}
	space, rest, dotted := strings.Cut(name, ".")
	switch strings.ToLower(space) {
	case "params":
		if dotted {
			value, known = v.Params[rest]
			return value, known
		}
	case "vars", "inputs":
		if dotted {
			value, known = t.Vars[rest]
			return value, known
		}
	case "context":
		if dotted {
			return template.Lookup(t.Inputs.Context, strings.Split(rest, "."))
		}
	}
	switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
	case "runid", "jobid":
		return v.RunID, true
	case "trial", "iteration":
		return strconv.Itoa(v.Trial), true
	case "timestamp":
		return template.Timestamp(v.RunID), true
	case "attempt":
		return strconv.Itoa(v.Attempt), true
	case "taskid":
		return t.ID, true
	case "taskname":
		return t.Name, true
	case "model":
		return v.Model, true
	}
	return "", false
}

// isBuiltin reports whether a name is a variable in every suite.
func isBuiltin(name string) bool {
	if _, known := (&Task{}).variable(name, TrialVars{}); known {
		return true
	}
	switch strings.ToLower(name) {
	case "vars", "inputs", "context", "params":
		return true
	}
	return false
}

// variableNames returns the available variables, for suggestions.
func (t *Task) variableNames(params map[string]string) []string {
	names := BuiltinVariables()
	for k := range t.Vars {
		names = append(names, k)
	}
	for k := range params {
		names = append(names, k)
	}
	for k := range t.Inputs.Context {
		names = append(names, "context."+k)
	}
	return names
}

// unknownVariables calls [template.Unknown] with the task's variables and params.
func (t *Task) unknownVariables(text string, params map[string]string) (written, exprs []string) {
	if t.Literal {
		return nil, nil
	}
	return template.Unknown(text, t.values(TrialVars{Params: params}))
}
