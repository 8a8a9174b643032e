package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"waza/eval/jsonwalk"
	"waza/eval/template"
	"waza/eval/text"
	"waza/runner/executor"
)

// maxDepth is the deepest nesting of bodies and responses that waza reads as JSON.
const maxDepth = 500

// A filler replaces variables in the texts of one request. It keeps the first error.
type filler struct {
	*api
	trial  *executor.Trial
	prompt string
	// instructions is the value of {{system_prompt}}.
	instructions string
	left         int // bytes that texts can still have
	err          error
}

// value returns the value of the expression between double braces.
func (f *filler) value(expr string) (value string, known bool) {
	if expr == "prompt" {
		return f.prompt, true
	}
	if expr == systemPrompt {
		return f.instructions, true
	}
	if name, ok := strings.CutPrefix(expr, "env."); ok {
		return f.variable(name), true
	}
	if path, ok := strings.CutPrefix(expr, "context."); ok {
		if value, known = template.Lookup(f.trial.Task.Inputs.Context, strings.Split(path, ".")); known {
			return value, true
		}
	}
	written := "{{" + expr + "}}"
	value = f.trial.Expand(written)
	return value, value != written
}

// variable returns the value of an environment variable, which does not occur in errors.
func (f *filler) variable(name string) string {
	value, ok := f.lookup(name)
	if !ok {
		f.fail(unset(name))
	}
	f.pool.Redactor().Learn([]string{name + "=" + value})
	return value
}

func (f *filler) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// text returns a text with the values of its variables.
func (f *filler) text(s string) string { return f.expanded(s, f.value) }

func (f *filler) expanded(s string, values template.Values) string {
	out, err := template.Expand(s, values, max(0, f.left))
	if err != nil {
		f.fail(errLongRequest)
	}
	f.left -= len(out)
	return out
}

var errLongRequest = fmt.Errorf("the request is longer than %d MiB", maxRequest>>20)

// address returns an address with the values of its variables, which are escaped.
func (f *filler) address(s string) string {
	return f.expanded(s, func(expr string) (string, bool) {
		value, known := f.value(expr)
		if !strings.HasPrefix(expr, "env.") && known {
			value = url.QueryEscape(value)
			value = strings.ReplaceAll(value, "+", "%20") // which is a space in paths, too
		}
		return value, known
	})
}

// body returns the body of a request.
func (f *filler) body(body any) (s string, isJSON bool) {
	if source, isText := body.(string); isText {
		value, err := decoded(source)
		if err != nil {
			return f.textBody(source)
		}
		body = value
	}
	if body == nil {
		return "", false
	}
	data, err := jsonwalk.Encode(f.filled(jsonwalk.Plain(body)))
	if err != nil {
		f.fail(err)
	}
	return string(data), true
}

// textBody returns a text as the body of a request. One that starts like JSON and is JSON with the values in it, such
// as {"n": {{context.n}}}, is JSON. If it is JSON only with escaped values, these are in it.
func (f *filler) textBody(source string) (s string, isJSON bool) {
	left := f.left
	s = f.text(source)
	if start := strings.TrimSpace(source); !strings.HasPrefix(start, "[") && (!strings.HasPrefix(start, "{") || strings.HasPrefix(start, "{{")) {
		return s, false
	}
	if _, err := decoded(s); err == nil {
		return s, true
	}
	f.left = left
	escaped := f.expanded(source, func(expr string) (string, bool) {
		value, known := f.value(expr)
		data, err := json.Marshal(value)
		if err != nil || !known {
			return value, known
		}
		return string(data[1 : len(data)-1]), true
	})
	if _, err := decoded(escaped); err == nil {
		return escaped, true
	}
	return s, false
}

// decoded returns the value of a JSON text, with numbers as they are written.
func decoded(source string) (value any, err error) {
	if jsonwalk.Depth(source) > maxDepth || !json.Valid([]byte(source)) {
		return nil, errNoJSON
	}
	dec := json.NewDecoder(strings.NewReader(source))
	dec.UseNumber()
	err = dec.Decode(&value)
	return value, err
}

var errNoJSON = errors.New("the response is no JSON")

// filled returns a part of a body with the values of its variables.
func (f *filler) filled(body any) any {
	switch v := body.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, one := range v {
			m[key] = f.filled(one)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = f.filled(one)
		}
		return list
	case string:
		s := f.text(v)
		if isVariable().MatchString(v) && s != v && jsonwalk.Depth(s) <= maxDepth && json.Valid([]byte(s)) && strings.ContainsAny(strings.TrimSpace(s)[:1], "[{") {
			return json.RawMessage(s)
		}
		return s
	}
	return body
}

// isVariable matches a text that is nothing but a variable.
var isVariable = text.Pattern(`^\s*\{\{[^{}]*\}\}\s*$`)

// answerIn returns the text at a path of keys and indexes in a JSON text, or any other value there as JSON.
func answerIn(body, path string) (string, error) {
	value, err := decoded(body)
	if err != nil {
		return "", err
	}
	for key := range strings.SplitSeq(path, ".") {
		var found any
		ok := false
		switch v := value.(type) {
		case map[string]any:
			found, ok = v[key]
		case []any:
			if i, isIndex := numbered(key); isIndex && i < len(v) {
				found, ok = v[i], true
			}
		}
		if !ok {
			return "", fmt.Errorf("the response has no %q of the path %s", text.Clip(key, 60), text.Clip(path, 120))
		}
		value = found
	}
	if s, isText := value.(string); isText {
		return s, nil
	}
	data, err := jsonwalk.Encode(value)
	return string(data), err
}
