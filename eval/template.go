package eval

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
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
	variableName = text.Pattern(`^[\pL_][\pL\pN_-]*$`)
	variableForm = text.Pattern(`^\.?[\pL_][\pL\pN_-]*(\.[\pL\pN_-]+)*$`)
)

// longestVariable bounds the text between two pairs of braces.
const longestVariable = 200

// MaxExpandedBytes is how long a text of a suite may become by its template
// variables. A short suite can name a long variable many times, and the result of
// that is larger than any memory.
const MaxExpandedBytes = decode.MaxTextBytes

// ExpansionError says that a text becomes too long by its template variables.
type ExpansionError struct {
	Text  string // as the suite has it
	Limit int    // in bytes
}

func (e *ExpansionError) Error() string {
	return fmt.Sprintf("the text %q becomes longer than %s by its template variables; shorten the variables or use them less often",
		text.Clip(e.Text, 60), files.Size(int64(e.Limit)))
}

// Expand puts the values of template variables into a text of the suite. A text
// without variables is returned as it is. A text that would become longer than
// limit bytes is an [*ExpansionError]; no more than the limit is ever made of it.
func (t *Task) Expand(text string, v TrialVars, limit int) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var b strings.Builder
	for piece := range t.pieces(text, v) {
		if b.Len()+len(piece) > limit {
			return "", &ExpansionError{Text: text, Limit: limit}
		}
		b.WriteString(piece)
	}
	return b.String(), nil
}

// fits reports whether a text becomes no longer than [MaxExpandedBytes]. It makes
// nothing of it.
func (t *Task) fits(text string, v TrialVars) bool {
	n := 0
	for piece := range t.pieces(text, v) {
		if n += len(piece); n > MaxExpandedBytes {
			return false
		}
	}
	return true
}

// pieces gives the parts of an expanded text, one by one.
func (t *Task) pieces(text string, v TrialVars) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			before, expr, after, ok := nextVariable(text)
			if !ok {
				yield(text)
				return
			}
			value, known := t.variable(expr, v)
			if !known {
				value = text[len(before) : len(text)-len(after)]
			}
			if !yield(before) || !yield(value) {
				return
			}
			text = after
		}
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
		if _, known := t.variable(expr, TrialVars{Params: params}); !known && variableForm().MatchString(expr) && !seen[expr] {
			seen[expr] = true
			written = append(written, text[len(before):len(text)-len(after)])
			exprs = append(exprs, expr)
		}
		text = after
	}
}

// templates checks the variables of the task's prompts, and how long they and the
// task's files become.
func (c *taskCheck) templates() {
	in := &c.task.Inputs
	if in.PromptFile != "" {
		file := c.promptPath()
		c.template(decode.NewSource(file, c.loader.display(file), in.Prompt), nil, in.Prompt)
	} else {
		c.template(c.src, decode.Place(c.node, c.input("prompt")...), in.Prompt)
	}
	checkTexts(c, in.Tool, c.input("tool"))
	checkTexts(c, in.URL, c.input("url"))
	checkTexts(c, in.Input, c.input("input"))
	for i, p := range in.FollowUpPrompts {
		c.template(c.src, decode.Place(c.node, c.input("follow_up_prompts", i)...), p)
	}
	for i, f := range in.Files {
		if f.Content != nil {
			c.length(c.src, decode.Place(c.node, c.input("files", i, "content")...), *f.Content)
		}
	}
}

// checkTexts checks the variables of all texts in a value that stands at a place of the task.
func checkTexts(c *taskCheck, value any, at decode.Path) {
	switch v := value.(type) {
	case string:
		c.template(c.src, decode.Place(c.node, at...), v)
	case []any:
		for i, one := range v {
			checkTexts(c, one, append(at[:len(at):len(at)], i))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			checkTexts(c, v[key], append(at[:len(at):len(at)], key))
		}
	}
}

// ExpandTexts returns a value as JSON has it with each text in it, keys aside, put
// through expand. The value stays as it is.
func ExpandTexts(value any, expand func(text string) string) any {
	switch v := value.(type) {
	case string:
		return expand(v)
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = ExpandTexts(one, expand)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, one := range v {
			m[key] = ExpandTexts(one, expand)
		}
		return m
	}
	return value
}

// template reports the unknown variables of a text that stands at a node, or is
// the whole of src when the node is nil.
func (c *taskCheck) template(src *decode.Source, at *yaml.Node, text string) {
	if !strings.Contains(text, "{{") {
		return
	}
	c.length(src, at, text)
	params := c.loader.suite.Config.Matrix.names()
	written, exprs := c.task.unknownVariables(text, params)
	for i, expr := range exprs {
		d := src.Diagnostic(at, decode.Warning, decode.CodeUnknownVariable, fmt.Sprintf("no variable %q; the text is sent as it stands", expr))
		if near := decode.Nearest(strings.TrimPrefix(expr, "."), c.task.variableNames(params)); near != "" {
			d.Suggestion = "{{" + near + "}}"
		}
		src.Locate(&d, at, written[i])
		c.loader.Report(d)
	}
}

// length reports a text that becomes too long.
func (c *taskCheck) length(src *decode.Source, at *yaml.Node, text string) {
	if !c.task.fits(text, TrialVars{}) {
		c.loader.Reportf(src, at, decode.Error, decode.CodeTooLarge, "%s", &ExpansionError{Text: text, Limit: MaxExpandedBytes})
	}
}
