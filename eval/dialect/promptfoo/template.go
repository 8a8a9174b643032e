package promptfoo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// A renderer inserts values into texts, in the part of the Nunjucks syntax that configurations use: expressions in
// {{ }}, the tags if, for, set and raw, and comments. Unlike an engine for Jinja, it writes values as JavaScript does,
// reads no files, and spends the budget for each pass of a loop.
type renderer struct {
	vars    map[string]any
	env     map[string]string // those of the file, before those of the process
	*budget                   // that each rendered text needs
	// unknown receives the names of variables without a value. They are empty, as in promptfoo.
	unknown func(name string)

	scopes []map[string]any // variables that tags set, the innermost last
}

// maxRendered limits a rendered text.
const maxRendered = 8 << 20

var errTooLong = fmt.Errorf("the text is longer than %d MiB", maxRendered>>20)

// render returns a text with its values.
func (r *renderer) render(template string) (string, error) {
	rendered, err := r.rendered(template)
	if err == nil && !r.spend(len(rendered)) {
		return "", errExpanded
	}
	return rendered, err
}

func (r *renderer) rendered(template string) (string, error) {
	p := &templateParser{rest: template}
	parts, end, err := p.parse(0)
	if err == nil && end != "" {
		err = fmt.Errorf("the template tag {%% %s %%} without the tag that opens it", text.Clip(end, 40))
	}
	if err != nil {
		return "", err
	}
	r.scopes = []map[string]any{{}}
	var b strings.Builder
	if err := r.write(&b, parts); err != nil {
		return "", err
	}
	return b.String(), nil
}

var endRaw = text.Pattern(`\{%-?\s*end(?:raw|verbatim)\s*-?%\}`)

// cutTag splits a template around the tag at an offset. A minus beside the braces removes the white
// space beside the tag.
func cutTag(template string, at int) (before, inner, rest string, err error) {
	open := template[at : at+2]
	closing := map[string]string{"{{": "}}", "{%": "%}", "{#": "#}"}[open]
	end := endOfTag(template[at+2:], closing)
	if end < 0 {
		return "", "", "", fmt.Errorf("a template with %s and no %s", open, closing)
	}
	before, inner, rest = template[:at], template[at+2:at+2+end], template[at+4+end:]
	if s, ok := strings.CutPrefix(inner, "-"); ok {
		inner, before = s, strings.TrimRightFunc(before, unicode.IsSpace)
	}
	if s, ok := strings.CutSuffix(inner, "-"); ok {
		inner, rest = s, strings.TrimLeftFunc(rest, unicode.IsSpace)
	}
	return before, inner, rest, nil
}

// endOfTag returns the offset of the closing braces outside of quotes, or -1.
func endOfTag(s, closing string) int {
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case closing == "#}":
			return strings.Index(s, closing)
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.HasPrefix(s[i:], closing):
			return i
		}
	}
	return -1
}

// An absent value is that of an unknown variable.
type absent struct{}

// expression returns the text of the expression between two braces.
func (r *renderer) expression(source string) (string, error) {
	p := &expressionParser{renderer: r, rest: strings.TrimSpace(source)}
	v, err := p.whole()
	if err != nil {
		return "", fmt.Errorf("{{%s}}: %w", text.Clip(source, 60), err)
	}
	if _, none := v.(absent); none {
		r.unknown(p.first)
	}
	return textOf(v), nil
}

type expressionParser struct {
	*renderer
	rest  string
	first string // the variable
	depth int    // of nested expressions
}

func (p *expressionParser) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	}
	return ok
}

// take removes what a pattern matches at the start.
func (p *expressionParser) take(pattern *regexp.Regexp) string {
	found := pattern.FindString(p.rest)
	p.skip(found)
	return found
}

var (
	nameToken   = text.Pattern(`^[\pL_$][\pL\pN_$-]*`)
	numberToken = text.Pattern(`^-?\d+(?:\.\d+)?`)
	stringToken = text.Pattern(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`)
)

// piped parses a value and its filters.
func (p *expressionParser) piped() (any, error) {
	v, err := p.value()
	for err == nil && p.skip("|") {
		name := p.take(nameToken())
		var args []any
		if p.skip("(") {
			if args, err = p.arguments(")"); err != nil {
				break
			}
		}
		v, err = filter(name, v, args)
	}
	return v, err
}

// arguments parses values up to a closing bracket.
func (p *expressionParser) arguments(closing string) (list []any, err error) {
	list = []any{}
	for !p.skip(closing) {
		v, err := p.inlineIf()
		if err != nil {
			return nil, err
		}
		if list = append(list, v); !p.skip(",") && !strings.HasPrefix(p.rest, closing) {
			return nil, fmt.Errorf("a list without %q", closing)
		}
	}
	return list, nil
}

// value parses a literal or a variable with its members.
func (p *expressionParser) value() (any, error) {
	if s := p.take(stringToken()); s != "" {
		return unquoted(s), nil
	}
	if s := p.take(numberToken()); s != "" {
		return strconv.ParseFloat(s, 64)
	}
	switch {
	case p.skip("-"):
		v, err := p.value()
		return -asNumber(v), err
	case p.skip("("):
		v, err := p.inlineIf()
		if err == nil && !p.skip(")") {
			err = errors.New("a value without ')'")
		}
		if err != nil {
			return nil, err
		}
		return p.members(v)
	case p.skip("["):
		list, err := p.arguments("]")
		return list, err
	}
	name := p.take(nameToken())
	switch name {
	case "":
		return nil, fmt.Errorf("expected a variable, got %q", text.Clip(p.rest, 20))
	case "true", "false":
		return name == "true", nil
	case "none", "null":
		return nil, nil
	case "env":
		if _, own := p.vars[name]; !own {
			return p.variableOfEnvironment()
		}
	}
	if p.first == "" {
		p.first = name
	}
	return p.members(p.variable(name))
}

// variable returns the value of a variable: the innermost that a tag set, else that of the case.
func (r *renderer) variable(name string) any {
	for _, scope := range slices.Backward(r.scopes) {
		if v, ok := scope[name]; ok {
			return v
		}
	}
	if v, ok := r.vars[name]; ok {
		return v
	}
	return absent{}
}

// members parses the members of a value.
func (p *expressionParser) members(v any) (any, error) {
	for {
		switch {
		case p.skip("."):
			v = member(v, p.take(nameToken()))
		case p.skip("["):
			key, err := p.inlineIf()
			if err != nil {
				return nil, err
			}
			if v = member(v, textOf(key)); !p.skip("]") {
				return nil, errors.New("an index without ']'")
			}
		default:
			return v, nil
		}
	}
}

func unquoted(s string) string {
	s = s[1 : len(s)-1]
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\"`, `"`, `\'`, "'").Replace(s)
}

// member returns an element of a map or a list.
func member(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		if m, ok := v[key]; ok {
			return m
		}
	case []any:
		if key == "length" {
			return float64(len(v))
		}
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	case string:
		if key == "length" {
			return float64(len([]rune(v)))
		}
	}
	return absent{}
}

func (p *expressionParser) variableOfEnvironment() (any, error) {
	if !p.skip(".") {
		return nil, errors.New("env needs the name of a variable: env.NAME")
	}
	name := p.take(nameToken())
	if dialect.IsSecret(name) { // waza shows and records prompts
		return nil, fmt.Errorf("waza inserts no secret such as %s into texts", text.Clip(name, 40))
	}
	if v, ok := p.lookup(name); ok {
		return v, nil
	}
	p.first = "env." + name
	return absent{}, nil
}

// lookup returns a variable of the environment.
func (r *renderer) lookup(name string) (value string, known bool) {
	if value, known = r.env[name]; known {
		return value, true
	}
	return os.LookupEnv(name)
}

// filters are the filters that change a text.
var filters = map[string]func(string) string{
	"lower":      strings.ToLower,
	"upper":      strings.ToUpper,
	"trim":       strings.TrimSpace,
	"safe":       func(s string) string { return s },
	"string":     func(s string) string { return s },
	"capitalize": capitalize,
	"title": func(s string) string {
		words := strings.Split(s, " ")
		for i, w := range words {
			words[i] = capitalize(w)
		}
		return strings.Join(words, " ")
	},
}

func capitalize(s string) string {
	s = strings.ToLower(s)
	for i, r := range s {
		return s[:i] + string(unicode.ToUpper(r)) + s[i+len(string(r)):]
	}
	return s
}

// filter applies a filter to a value.
func filter(name string, v any, args []any) (any, error) {
	if f := filters[name]; f != nil && len(args) == 0 {
		if _, none := v.(absent); none {
			return v, nil
		}
		return f(textOf(v)), nil
	}
	argument := func(i int, missing string) string {
		if i < len(args) {
			return textOf(args[i])
		}
		return missing
	}
	switch _, none := v.(absent); name {
	case "default", "d":
		if len(args) == 2 && textOf(args[1]) == "true" && !truthy(v) || none {
			return argument(0, ""), nil
		}
		return v, nil
	case "dump", "tojson":
		data, err := jsonwalk.Encode(v)
		if len(args) > 0 && err == nil {
			return indented(string(data)), nil
		}
		return string(data), err
	case "join":
		list, ok := v.([]any)
		if !ok {
			return v, nil
		}
		texts := make([]string, len(list))
		for i, item := range list {
			texts[i] = textOf(item)
		}
		return strings.Join(texts, argument(0, "")), nil
	case "length":
		if m, ok := v.(map[string]any); ok {
			return float64(len(m)), nil
		}
		return member(v, "length"), nil
	case "first":
		return member(v, "0"), nil
	case "last":
		if list, ok := v.([]any); ok && len(list) > 0 {
			return list[len(list)-1], nil
		}
		return absent{}, nil
	case "reverse":
		list, ok := v.([]any)
		if !ok {
			return nil, errors.New("reverse needs a list")
		}
		list = slices.Clone(list)
		slices.Reverse(list)
		return list, nil
	case "int", "float", "abs":
		n := asNumber(v)
		switch {
		case math.IsNaN(n):
			return nil, fmt.Errorf("%s needs a number", name)
		case name == "int":
			return math.Trunc(n), nil
		case name == "abs":
			return math.Abs(n), nil
		}
		return n, nil
	case "load":
		return loaded(textOf(v))
	case "replace":
		from, to, s := argument(0, ""), argument(1, ""), textOf(v)
		if n := strings.Count(s, from); n*len(to) > maxRendered {
			return nil, errTooLong
		}
		return strings.ReplaceAll(s, from, to), nil
	}
	return nil, fmt.Errorf("the filter %q is not one that waza has: default, dump, load, join, length, first, last, reverse, replace, int, float, abs, %s",
		text.Clip(name, 40), strings.Join(slices.Sorted(maps.Keys(filters)), ", "))
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil, absent:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0 && !math.IsNaN(v)
	}
	return textOf(v) != "0"
}

// indented returns a JSON text with line breaks; any other text unchanged.
func indented(s string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(s), "", "  ") != nil {
		return s
	}
	return b.String()
}
