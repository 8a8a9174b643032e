package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/jsonwalk"
)

// Parameters are the fields of a struct. Their tags describe them completely:
//
//	json        the documented name
//	alias       other names, separated by commas
//	jsonschema  required, minimum=N, maximum=N, exclusiveMinimum=N, exclusiveMaximum=N
//	doc         one sentence for reference documents
//
// Every name is also accepted in its other spelling, contextDir for context_dir and run_id for
// runId. A null means that the parameter is absent.

// Lenient parameters decide, from the members that the client sent, whether unknown members are
// ignored instead of refused.
type Lenient interface {
	Lenient(given []Member) bool
}

// A Nester is a type of parameter that is an object of further parameters. The same rules apply to its
// members, and errors name them with the name of the parameter in front, such as decide.risk.
type Nester interface{ NestsParameters() }

// An Expecter is a type of parameter that describes its valid values with a noun.
type Expecter interface {
	Expected() string
}

// parameter is one field.
type parameter struct {
	fields.Field
	spelling []string // all names, the documented one first
}

var parametersCache sync.Map // reflect.Type → []parameter

// parametersOf lists the parameters of a struct type, embedded ones included.
func parametersOf(t reflect.Type) []parameter {
	if cached, ok := parametersCache.Load(t); ok {
		return cached.([]parameter)
	}
	var list []parameter
	for _, f := range fields.Of(t, "json") {
		list = append(list, parameter{f, spellings(f)})
	}
	parametersCache.Store(t, list)
	return list
}

// spellings lists a parameter's names without repeating one.
func spellings(f fields.Field) []string {
	list := append([]string{f.Name}, f.Aliases...)
	for _, n := range slices.Clone(list) {
		list = append(list, camelCase(n), snakeCase(n))
	}
	var unique []string
	for _, n := range list {
		if !slices.Contains(unique, n) {
			unique = append(unique, n)
		}
	}
	return unique
}

func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

func snakeCase(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// decodeParams fills the struct that p points to. Its error names the wrong parameter.
func decodeParams(raw json.RawMessage, p any) error { return decodeMembers(raw, p, "") }

// decodeMembers fills the struct that p points to, whose parameters have the prefix before their names.
func decodeMembers(raw json.RawMessage, p any, prefix string) error {
	given, err := members(raw)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(p).Elem()
	list := parametersOf(v.Type())
	values := map[string]Member{}
	l, ok := p.(Lenient)
	lenient := ok && l.Lenient(given)
	for _, m := range given {
		param := lookup(list, m.Name)
		if param == nil && lenient {
			continue
		}
		if param == nil {
			return unknownParameter(m.Name, list, prefix)
		}
		if before, twice := values[param.Name]; twice {
			return twiceGiven(prefix+before.Name, prefix+m.Name)
		}
		values[param.Name] = m
	}
	for _, param := range list {
		m, ok := values[param.Name]
		if !ok || string(m.Value) == "null" {
			if param.Required {
				return WrongParam(prefix+param.Name, nil, " is missing")
			}
			continue
		}
		if err := param.set(v, m, prefix); err != nil {
			return err
		}
	}
	return nil
}

func lookup(list []parameter, name string) *parameter {
	for i := range list {
		if slices.Contains(list[i].spelling, name) {
			return &list[i]
		}
	}
	return nil
}

func unknownParameter(name string, list []parameter, prefix string) error {
	var bare, names []string
	for _, p := range list {
		bare, names = append(bare, p.Name), append(names, prefix+p.Name)
	}
	full := prefix + Clip(name)
	e := &ParamError{Parameter: full, Message: fmt.Sprintf("unknown parameter %q", full), Data: map[string]any{"known": names}}
	if near := decode.Nearest(name, bare); near != "" {
		near = prefix + near
		e.Message += fmt.Sprintf(" (did you mean %q?)", near)
		e.Data["suggestion"] = near
	}
	return e
}

func twiceGiven(first, second string) error {
	if first == second {
		return WrongParam(first, nil, " is given twice")
	}
	return &ParamError{Parameter: first, Message: fmt.Sprintf("parameters %q and %q mean the same; give one", first, second)}
}

// A Member is one parameter as sent by the client.
type Member struct {
	Name  string
	Value json.RawMessage
}

// members splits the params of a request, keeping order and duplicates.
func members(raw json.RawMessage) ([]Member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var list []Member
	err := jsonwalk.Object(dec, func(name string) error {
		m := Member{Name: name}
		err := dec.Decode(&m.Value)
		list = append(list, m)
		return err
	})
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return list, nil
	case errors.Is(err, io.EOF):
		return nil, nil // absent
	case !errors.As(err, &other):
		return nil, &ParamError{Message: "cannot read the parameters: " + err.Error()}
	case other.Value != "[":
		return nil, &ParamError{Message: "parameters must be an object"}
	case dec.More():
		return nil, &ParamError{Message: "parameters must be given by name, in an object, not by position"}
	}
	return nil, nil
}

// set decodes one value into its field and checks it.
func (p *parameter) set(v reflect.Value, m Member, prefix string) error {
	field := v.FieldByIndex(p.Index)
	raw := m.Value
	name := prefix + m.Name
	if p.Type.Kind() == reflect.Pointer && p.Type.Implements(reflect.TypeFor[Nester]()) && raw[0] == '{' {
		object := reflect.New(p.Type.Elem())
		field.Set(object)
		return decodeMembers(raw, object.Interface(), prefix+p.Name+".")
	}
	if p.Type.Kind() == reflect.Int || p.Type == reflect.TypeFor[*int]() {
		raw = wholeNumber(raw)
	}
	if err := json.Unmarshal(raw, field.Addr().Interface()); err != nil || hasNull(p.Type, raw) {
		return p.wrong(prefix, name, "must be "+expected(p.Type)+", not "+kindOf(m.Value, expected(p.Type)))
	}
	number, ok := fields.Number(field)
	bound := ""
	switch {
	case p.Required && p.Type.Kind() == reflect.String && field.Len() == 0:
		return p.wrong(prefix, name, "must not be empty")
	case !ok:
	case p.Min != nil && number < *p.Min:
		bound = "at least " + plainNumber(*p.Min)
	case p.Above != nil && number <= *p.Above:
		bound = "more than " + plainNumber(*p.Above)
	case p.Max != nil && number > *p.Max:
		bound = "at most " + plainNumber(*p.Max)
	case p.Below != nil && number >= *p.Below:
		bound = "less than " + plainNumber(*p.Below)
	}
	if bound != "" {
		return p.wrong(prefix, name, "must be "+bound+", got "+Clip(string(m.Value)))
	}
	return nil
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (p *parameter) wrong(prefix, as, what string) error {
	return &ParamError{Parameter: prefix + p.Name, Message: fmt.Sprintf("parameter %q %s", as, what)}
}

// wholeNumber converts 3.0 to 3, because some languages write all numbers like that.
func wholeNumber(raw json.RawMessage) json.RawMessage {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return raw
	}
	return strconv.AppendInt(nil, int64(f), 10)
}

// hasNull reports whether a list of strings contains a null, which encoding/json would decode as
// an empty string.
func hasNull(t reflect.Type, raw json.RawMessage) bool {
	if t != reflect.TypeFor[[]string]() {
		return false
	}
	var list []*string
	return json.Unmarshal(raw, &list) != nil || slices.Contains(list, nil)
}

// expected describes the valid values of a parameter type with a noun.
func expected(t reflect.Type) string {
	if e, ok := reflect.New(t).Interface().(Expecter); ok {
		return e.Expected()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return expected(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "a list of strings"
		}
		return "a list, each " + expected(t.Elem())
	}
	return "an object"
}

// kindOf describes a JSON value with a noun, other than the one that was expected.
func kindOf(raw json.RawMessage, expected string) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		if expected == "an object" {
			return "one with a member of a wrong type"
		}
		return "an object"
	case '[':
		return "this list"
	case 't', 'f':
		return string(raw)
	case 'n':
		return "null"
	}
	return "the number " + Clip(string(raw))
}
