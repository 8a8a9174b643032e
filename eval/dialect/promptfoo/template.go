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
	"unicode/utf16"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// A renderer inserts values into texts, in the part of the Nunjucks syntax that configurations use: expressions in
// {{ }}, the tags if, for, set and raw, and comments. Unlike an engine for Jinja, it converts values as JavaScript does,
// except that the keys of dumped maps are sorted. It reads no files, and spends the budget for each pass of a loop.
type renderer struct {
	vars    map[string]any
	env     map[string]string // those of the file, before those of the process
	*budget                   // that each rendered text needs
	// unknown receives the names of variables without a value. They are empty, as in promptfoo.
	unknown func(name string)
	warned  map[string]bool // names that unknown received

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

var endRaw = text.Pattern(`\{%\s*end(?:raw|verbatim)\s*%\}`)

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
	p.warnOfUnknown(v)
	return printed(v), nil
}

// warnOfUnknown reports the unknown variables of an expression with a value.
func (p *expressionParser) warnOfUnknown(v any) {
	if _, none := v.(absent); none && p.first != "" {
		p.missing = append(p.missing, p.first)
	}
	for _, name := range p.missing {
		if !p.warned[name] {
			if p.warned == nil {
				p.warned = map[string]bool{}
			}
			p.warned[name] = true
			p.unknown(name)
		}
	}
}

type expressionParser struct {
	*renderer
	rest  string
	first string // the variable
	depth int    // of nested expressions
	// missing are the unknown variables, without those that a default replaces or that a test asks for.
	missing []string
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
	nameToken   = text.Pattern(`^[\pL_$][\pL\pN_$]*`)
	numberToken = text.Pattern(`^-?\d+(?:\.\d+)?`)
	stringToken = text.Pattern(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`)
)

// piped parses a value and its filters.
func (p *expressionParser) piped() (any, error) {
	known := len(p.missing)
	v, err := p.value()
	for err == nil && p.skip("|") {
		name := p.take(nameToken())
		if name == "default" || name == "d" {
			p.missing = p.missing[:known]
		}
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
	if list = []any{}; p.skip(closing) {
		return list, nil
	}
	for {
		v, err := p.inlineIf()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch {
		case p.skip(closing):
			return list, nil
		case !p.skip(","):
			return nil, fmt.Errorf("a list without %q", closing)
		}
	}
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
	v := p.variable(name)
	if _, unknown := v.(absent); unknown {
		p.missing = append(p.missing, name)
	}
	return p.members(v)
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
			if v = member(v, converted(key)); !p.skip("]") {
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

// member returns an element of a map, a list or a text. Those of texts are units of UTF-16; half of a pair is U+FFFD, as in
// the request that promptfoo sends.
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
		units := utf16.Encode([]rune(v))
		if key == "length" {
			return float64(len(units))
		}
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(units) {
			return string(rune(units[i]))
		}
	}
	return absent{}
}

func (p *expressionParser) variableOfEnvironment() (any, error) {
	if !p.skip(".") {
		return nil, errors.New("env needs the name of a variable: env.NAME")
	}
	name := p.take(nameToken())
	value, known := p.lookup(name)
	if dialect.IsSecretVariable(name, value) { // waza shows and records prompts
		return nil, fmt.Errorf("waza inserts no secret such as %s into texts", text.Clip(name, 40))
	}
	if known {
		return value, nil
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

// filters are the filters that change a text. Those of nothing return an empty text.
var filters = map[string]func(string) string{
	"lower":      func(s string) string { return cases.Lower(language.Und).String(s) },
	"upper":      upper,
	"trim":       strings.TrimSpace,
	"capitalize": capitalize,
	"title": func(s string) string {
		words := strings.Split(s, " ")
		for i, w := range words {
			words[i] = capitalize(w)
		}
		return strings.Join(words, " ")
	},
}

// upper returns a text in upper case, in which a letter can become several.
func upper(s string) string { return cases.Upper(language.Und).String(s) }

func capitalize(s string) string {
	s = cases.Lower(language.Und).String(s)
	for i, r := range s {
		return s[:i] + upper(string(r)) + s[i+len(string(r)):]
	}
	return s
}

// integer and decimal match the numbers at the start of texts.
var (
	integer = text.Pattern(`^\s*([+-]?\d+)`)
	decimal = text.Pattern(`^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)`)
)

// filter applies a filter to a value.
func filter(name string, v any, args []any) (any, error) {
	argument := func(i int) any {
		if i < len(args) {
			return args[i]
		}
		return absent{}
	}
	if f := filters[name]; f != nil && len(args) == 0 {
		s, isText := v.(string)
		if !isText && (v != false && !isEmpty(v) || name == "trim") {
			return nil, fmt.Errorf("%s needs a text", name)
		}
		return f(s), nil
	}
	switch _, none := v.(absent); name {
	case "default", "d":
		if truthy(argument(1)) && !truthy(v) || none {
			return argument(0), nil
		}
		return v, nil
	case "safe":
		return printed(v), nil
	case "string":
		if isEmpty(v) {
			return nil, errors.New("string needs a value")
		}
		return printed(v), nil
	case "dump", "tojson":
		if none {
			return v, nil
		}
		data, err := jsonwalk.Encode(plain(v))
		if err != nil {
			return nil, err
		}
		return indented(string(data), argument(0)), nil
	case "join":
		list, ok := v.([]any)
		if !ok {
			return nil, errors.New("join needs a list")
		}
		texts := make([]string, len(list))
		for i, item := range list {
			if len(args) > 1 {
				item = member(item, converted(args[1]))
			}
			texts[i] = printed(item)
		}
		return strings.Join(texts, printed(argument(0))), nil
	case "length":
		if m, ok := v.(map[string]any); ok {
			return float64(len(m)), nil
		}
		if v == false || isEmpty(v) {
			return 0.0, nil
		}
		return member(v, "length"), nil
	case "first", "last":
		if isEmpty(v) {
			return nil, fmt.Errorf("%s needs a list or a text", name)
		}
		if n, ok := member(v, "length").(float64); ok && name == "last" {
			return member(v, converted(n-1)), nil
		}
		return member(v, "0"), nil
	case "reverse":
		list, ok := v.([]any)
		if !ok {
			return nil, errors.New("reverse needs a list")
		}
		list = slices.Clone(list)
		slices.Reverse(list)
		return list, nil
	case "int", "float":
		pattern := map[string]*regexp.Regexp{"int": integer(), "float": decimal()}[name]
		m := pattern.FindStringSubmatch(converted(v))
		if m == nil {
			return argument(0), nil
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if math.IsInf(n, 0) {
			return n, nil
		}
		return n, err
	case "abs":
		return math.Abs(asNumber(v)), nil
	case "load":
		return loaded(textOf(v))
	case "replace":
		if len(args) < 2 || isEmpty(v) || !isSimple(v) {
			return nil, errors.New("replace needs a text and two arguments")
		}
		from, to, s := converted(args[0]), converted(args[1]), converted(v)
		most := -1
		if len(args) > 2 {
			most = int(min(max(-1, asNumber(args[2])), maxRendered))
		}
		if n := strings.Count(s, from); n*len(to) > maxRendered {
			return nil, errTooLong
		}
		return strings.Replace(s, from, to, most), nil
	}
	return nil, fmt.Errorf("the filter %q is not one that waza has: default, dump, load, join, length, first, last, reverse, replace, int, float, abs, safe, string, %s",
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

// indented returns a JSON text with line breaks and an indent: a text, or a number of spaces. Without one it is unchanged.
func indented(s string, indent any) string {
	unit, isText := indent.(string)
	if n := asNumber(indent); !isText && n >= 1 {
		unit = strings.Repeat(" ", int(min(n, 10)))
	}
	var b bytes.Buffer
	if unit = text.Head(unit, 10); unit == "" || json.Indent(&b, []byte(s), "", unit) != nil {
		return s
	}
	return b.String()
}

// plain returns a value as JSON can have it: null in place of unknown values and of numbers without digits.
func plain(v any) any {
	switch v := v.(type) {
	case absent:
		return nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plain(item)
		}
		return list
	}
	return v
}
