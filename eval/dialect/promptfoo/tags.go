package promptfoo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"waza/eval/decode"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// A templatePart is a part of a template: a text, an expression or a tag with other parts in it.
type templatePart struct {
	text   string       // as it is
	source string       // of an expression
	tag    string       // value for an expression, if, for or set; empty for a text
	arms   []templateIf // of if, and that of for
	names  []string     // of for and set
	others []templatePart
}

// templateIf is a part of a tag with its condition or, in a loop, its list.
type templateIf struct {
	source string
	parts  []templatePart
}

type templateParser struct{ rest string }

// parse returns the parts up to a tag that ends or continues an outer one, and that tag.
func (p *templateParser) parse(depth int) (parts []templatePart, end string, err error) {
	if depth > decode.MaxDepth {
		return nil, "", fmt.Errorf("a template with tags nested more than %d deep", decode.MaxDepth)
	}
	for p.rest != "" {
		at := startOfTag(p.rest)
		if at < 0 {
			parts = append(parts, templatePart{text: p.rest})
			p.rest = ""
			break
		}
		before, inner, rest, err := cutTag(p.rest, at)
		if err != nil {
			return nil, "", err
		}
		kind := p.rest[at+1]
		p.rest = rest
		parts = append(parts, templatePart{text: before})
		switch kind {
		case '{':
			parts = append(parts, templatePart{tag: "value", source: inner})
		case '%':
			inner = strings.TrimSpace(inner)
			word, source := cutWord(inner)
			if slices.Contains([]string{"elif", "elseif", "else", "endif", "endfor", "endset"}, word) {
				return parts, inner, nil
			}
			part, err := p.parseTag(word, source, depth)
			if err != nil {
				return nil, "", err
			}
			parts = append(parts, part)
		}
	}
	return parts, "", nil
}

// cutWord splits the text of a tag into its name and the rest.
func cutWord(tag string) (word, rest string) {
	word = nameToken().FindString(tag)
	return word, strings.TrimSpace(tag[len(word):])
}

// startOfTag returns the offset of the first braces that start an expression, a tag or a comment, or -1.
func startOfTag(template string) int {
	for at := 0; at+1 < len(template); at++ {
		if template[at] == '{' && strings.IndexByte("{%#", template[at+1]) >= 0 {
			return at
		}
	}
	return -1
}

// setTag and forTag match the texts of these tags after their names.
var (
	setTag = text.Pattern(`^([\pL_$][\pL\pN_$]*(?:\s*,\s*[\pL_$][\pL\pN_$]*)*)\s*(?:=\s*([\s\S]+))?$`)
	forTag = text.Pattern(`^([\pL_$][\pL\pN_$]*(?:\s*,\s*[\pL_$][\pL\pN_$]*)*)\s+in\s+([\s\S]+)$`)
)

func (p *templateParser) parseTag(word, source string, depth int) (part templatePart, err error) {
	switch word {
	case "raw", "verbatim":
		end := endRaw().FindStringIndex(p.rest)
		if end == nil {
			return part, errors.New("a template with raw and no endraw")
		}
		part.text, p.rest = p.rest[:end[0]], p.rest[end[1]:]
		return part, nil
	case "if":
		return p.parseIf(source, depth)
	case "for":
		m := forTag().FindStringSubmatch(source)
		if m == nil {
			return part, fmt.Errorf("the template tag {%% for %s %%}: expected NAME in LIST", text.Clip(source, 40))
		}
		part = templatePart{tag: word, names: namesOf(m[1])}
		parts, end, err := p.parse(depth + 1)
		part.arms = []templateIf{{m[2], parts}}
		if end == "else" && err == nil {
			part.others, end, err = p.parse(depth + 1)
		}
		return part, endedBy(end, "endfor", err)
	case "set":
		m := setTag().FindStringSubmatch(source)
		if m == nil {
			return part, fmt.Errorf("the template tag {%% set %s %%}: expected NAME = VALUE", text.Clip(source, 40))
		}
		part = templatePart{tag: word, names: namesOf(m[1]), source: m[2]}
		if m[2] != "" {
			return part, nil
		}
		parts, end, err := p.parse(depth + 1)
		part.others = parts
		return part, endedBy(end, "endset", err)
	}
	return part, fmt.Errorf("the template tag {%% %s %%}: waza has the tags if, for, set and raw", text.Clip(strings.TrimSpace(word+" "+source), 40))
}

func (p *templateParser) parseIf(source string, depth int) (part templatePart, err error) {
	part = templatePart{tag: "if"}
	for {
		parts, end, err := p.parse(depth + 1)
		part.arms = append(part.arms, templateIf{source, parts})
		word, rest := cutWord(end)
		switch {
		case err == nil && (word == "elif" || word == "elseif"):
			source = rest
			continue
		case err == nil && end == "else":
			part.others, end, err = p.parse(depth + 1)
		}
		return part, endedBy(end, "endif", err)
	}
}

func endedBy(end, wanted string, err error) error {
	if err == nil && end != wanted {
		err = fmt.Errorf("a template without {%% %s %%}", wanted)
	}
	return err
}

func namesOf(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// write renders the parts of a template.
func (r *renderer) write(b *strings.Builder, parts []templatePart) error {
	for i := range parts {
		part := &parts[i]
		b.WriteString(part.text)
		var err error
		switch part.tag {
		case "if":
			err = r.writeIf(b, part)
		case "for":
			err = r.writeLoop(b, part)
		case "set":
			err = r.set(part)
		case "value":
			var value string
			if value, err = r.expression(part.source); err == nil {
				b.WriteString(value)
			}
		}
		if err != nil {
			return err
		}
		if b.Len() > maxRendered {
			return errTooLong
		}
	}
	return nil
}

func (r *renderer) writeIf(b *strings.Builder, part *templatePart) error {
	for _, arm := range part.arms {
		v, err := r.evaluate("if", arm.source)
		if err != nil {
			return err
		}
		if truthy(v) {
			return r.write(b, arm.parts)
		}
	}
	return r.write(b, part.others)
}

// writeLoop renders a loop over a list. The order of the keys of a map is unknown, so that it cannot be one.
func (r *renderer) writeLoop(b *strings.Builder, part *templatePart) error {
	arm := part.arms[0]
	v, err := r.evaluate("for", arm.source)
	if err != nil {
		return err
	}
	list, isList := v.([]any)
	if m, isMap := v.(map[string]any); isMap && len(m) > 0 {
		if len(part.names) != 2 || len(m) > 1 {
			return errors.New("a loop over a map: waza does not know the order of its keys; use a list")
		}
		for key, value := range m {
			list, isList = []any{[]any{key, value}}, true
		}
	}
	if s, isText := v.(string); isText && len(part.names) > 1 && s != "" {
		return errors.New("a loop over a text with several names")
	} else if isText {
		for _, unit := range utf16.Encode([]rune(s)) {
			list, isList = append(list, string(rune(unit))), true
		}
	}
	if !isList || len(list) == 0 {
		return r.write(b, part.others)
	}
	scope := map[string]any{} // of all passes: each sees what those before it set
	r.scopes = append(r.scopes, scope)
	defer func() { r.scopes = r.scopes[:len(r.scopes)-1] }()
	for i, item := range list {
		if !r.spend(valueSize) {
			return errExpanded
		}
		n := float64(len(list))
		at := float64(i)
		scope["loop"] = map[string]any{
			"index": at + 1, "index0": at, "revindex": n - at, "revindex0": n - at - 1, "first": i == 0, "last": i == len(list)-1, "length": n,
		}
		for k, name := range part.names {
			scope[name] = item
			if len(part.names) > 1 {
				scope[name] = member(item, fmt.Sprint(k))
			}
		}
		if err := r.write(b, arm.parts); err != nil {
			return err
		}
	}
	return nil
}

// set changes a variable that an outer tag set, else sets one of the innermost scope.
func (r *renderer) set(part *templatePart) error {
	var value any
	var err error
	if part.source != "" {
		value, err = r.evaluate("set", part.source)
	} else {
		var b strings.Builder
		err = r.write(&b, part.others)
		value = b.String()
	}
	if err != nil {
		return err
	}
	if !r.spend(sizeOf(value)) {
		return errExpanded
	}
	for _, name := range part.names {
		scope := r.scopes[len(r.scopes)-1]
		for _, outer := range slices.Backward(r.scopes) {
			if _, ok := outer[name]; ok {
				scope = outer
				break
			}
		}
		scope[name] = value
	}
	return nil
}

// evaluate returns the value of the expression of a tag.
func (r *renderer) evaluate(tag, source string) (any, error) {
	if !r.spend(len(source)) {
		return nil, errExpanded
	}
	p := &expressionParser{renderer: r, rest: source}
	v, err := p.whole()
	if err != nil {
		return nil, fmt.Errorf("{%% %s %s %%}: %w", tag, text.Clip(source, 60), err)
	}
	p.warnOfUnknown(v)
	return v, nil
}

// loaded returns the value of a JSON text.
func loaded(s string) (any, error) {
	if jsonwalk.Depth(s) > decode.MaxDepth {
		return nil, errTooManyValues
	}
	var faults decode.Findings
	src := decode.ParseJSON("value.json", "value", []byte(`{"value":`+s+`}`), &faults)
	if src.Root == nil {
		return nil, errors.New("load needs JSON")
	}
	return valueOf(decode.Lookup(decode.Follow(src.Root), "value"))
}
