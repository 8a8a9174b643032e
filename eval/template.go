package eval

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Texts of a suite may use variables in double braces. What may stand between
// them is the union of what suites write:
//
//	{{name}} {{ .name }} {{.Vars.name}} {{inputs.name}}   a column of the dataset, or an input of the suite
//	{{context.key.key}}                                    a value of the task's inputs.context
//	{{task_id}} {{task_name}} {{.TaskName}}                the task
//	{{run_id}} {{.JobID}} {{trial}} {{.Iteration}} {{attempt}}   the trial
//	{{model}}                                              the model that is asked for
//	{{name}} {{params.name}}                               a parameter of config.matrix
//
// Nothing is computed, and a value that holds braces is not expanded again. A
// variable of the suite comes before a built-in one of the same name. Braces
// around anything else stay as they are, since a prompt may well ask about
// another template language; of those, only what looks like a variable that was
// forgotten or misspelt gets a warning.

var (
	variableName = regexp.MustCompile(`^[\pL_][\pL\pN_-]*$`)
	variableForm = regexp.MustCompile(`^\.?[\pL_][\pL\pN_-]*(\.[\pL\pN_-]+)*$`)
)

// longestVariable bounds the text between two pairs of braces.
const longestVariable = 200

// Expand puts the values of template variables into a text of the suite. A text
// without variables is returned as it is.
func (t *Task) Expand(text string, v TrialVars) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var b strings.Builder
	rest := text
	for {
		before, expr, after, ok := nextVariable(rest)
		if !ok {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(before)
		if value, known := t.variable(expr, v); known {
			b.WriteString(value)
		} else {
			b.WriteString(rest[len(before) : len(rest)-len(after)])
		}
		rest = after
	}
}

// nextVariable splits text at its first pair of double braces that holds no
// other: what is before it, the trimmed text in it, what is after it.
func nextVariable(text string) (before, expr, after string, ok bool) {
	from := 0
	for {
		open := strings.Index(text[from:], "{{")
		if open < 0 {
			return "", "", "", false
		}
		open += from
		for strings.HasPrefix(text[open+1:], "{{") {
			open++ // of three braces the inner two count
		}
		inside := text[open+2 : min(len(text), open+2+longestVariable)]
		end := strings.Index(inside, "}}")
		if end >= 0 && !strings.Contains(inside[:end], "{{") {
			return text[:open], strings.TrimSpace(inside[:end]), text[open+2+end+2:], true
		}
		from = open + 2
	}
}

// variable returns the value of what stands between braces.
func (t *Task) variable(expr string, v TrialVars) (value string, known bool) {
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
			return fromContext(t.Inputs.Context, strings.Split(rest, "."))
		}
	}
	switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
	case "runid", "jobid":
		return v.RunID, true
	case "trial", "iteration":
		return strconv.Itoa(v.Trial), true
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

// isBuiltin reports whether a name means something in every suite.
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

func fromContext(value any, keys []string) (string, bool) {
	for _, k := range keys {
		m, ok := value.(map[string]any)
		if !ok {
			return "", false
		}
		if value, ok = m[k]; !ok {
			return "", false
		}
	}
	switch x := value.(type) {
	case nil:
		return "", true
	case string:
		return x, true
	case map[string]any, []any:
		data, err := json.Marshal(x)
		return string(data), err == nil
	}
	return fmt.Sprint(value), true
}

// variableNames lists what may be used, for suggestions.
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

// unknownVariables lists what looks like a variable and has no value, each once,
// as it is written, with its braces.
func (t *Task) unknownVariables(text string, params map[string]string) (written, exprs []string) {
	seen := map[string]bool{}
	for {
		before, expr, after, ok := nextVariable(text)
		if !ok {
			return written, exprs
		}
		if _, known := t.variable(expr, TrialVars{Params: params}); !known && variableForm.MatchString(expr) && !seen[expr] {
			seen[expr] = true
			written = append(written, text[len(before):len(text)-len(after)])
			exprs = append(exprs, expr)
		}
		text = after
	}
}

// templates checks the variables of the task's prompts.
func (c *taskCheck) templates() {
	in := &c.task.Inputs
	if in.PromptFile != "" {
		file := c.promptPath()
		c.template(newSource(file, c.loader.display(file), in.Prompt), nil, in.Prompt)
	} else {
		c.template(c.src, place(c.node, c.input("prompt")...), in.Prompt)
	}
	for i, p := range in.FollowUpPrompts {
		c.template(c.src, place(c.node, c.input("follow_up_prompts", i)...), p)
	}
}

// template reports the unknown variables of a text that stands at a node, or is
// the whole of src when the node is nil.
func (c *taskCheck) template(src *source, at *yaml.Node, text string) {
	if !strings.Contains(text, "{{") {
		return
	}
	params := c.loader.paramNames()
	written, exprs := c.task.unknownVariables(text, params)
	for i, expr := range exprs {
		d := src.diagnostic(at, Warning, CodeUnknownVariable, fmt.Sprintf("no variable %q; the text is sent as it stands", expr))
		if near := Nearest(strings.TrimPrefix(expr, "."), c.task.variableNames(params)); near != "" {
			d.Suggestion = "{{" + near + "}}"
		}
		src.locate(&d, at, written[i])
		c.loader.report(d)
	}
}

// locate moves a finding to the first place after a node where text stands.
func (s *source) locate(d *Diagnostic, at *yaml.Node, text string) {
	from := 0
	if at != nil && at.Line > 0 && at.Line <= len(s.lines) {
		from = s.lines[at.Line-1]
	}
	if i := strings.Index(s.text[from:], text); i >= 0 {
		d.Line, d.Column = s.position(from + i)
		d.EndColumn = d.Column + len([]rune(text))
	}
}
