package promptfoo

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// whole parses an expression, and nothing after it. Both sides of an operator are evaluated, because expressions have no
// effects.
func (p *expressionParser) whole() (any, error) {
	p.rest = strings.TrimSpace(p.rest)
	v, err := p.inlineIf()
	if err == nil && p.rest != "" {
		err = fmt.Errorf("unexpected %q", text.Clip(p.rest, 20))
	}
	return v, err
}

// keyword removes a word at the start.
func (p *expressionParser) keyword(word string) bool {
	if nameToken().FindString(p.rest) != word {
		return false
	}
	return p.skip(word)
}

// inlineIf parses A if CONDITION else B, where B is no such expression without brackets.
func (p *expressionParser) inlineIf() (any, error) {
	if p.depth++; p.depth > decode.MaxDepth {
		return nil, errors.New("its values are nested too deep")
	}
	defer func() { p.depth-- }()
	v, err := p.or()
	if err == nil && p.keyword("if") {
		var condition any
		var other any = absent{}
		condition, err = p.or()
		if err == nil && p.keyword("else") {
			other, err = p.or()
		}
		if !truthy(condition) {
			v = other
		}
	}
	return v, err
}

func (p *expressionParser) or() (any, error) {
	v, err := p.and()
	for err == nil && p.keyword("or") {
		var other any
		if other, err = p.and(); !truthy(v) {
			v = other
		}
	}
	return v, err
}

func (p *expressionParser) and() (any, error) {
	v, err := p.not()
	for err == nil && p.keyword("and") {
		var other any
		if other, err = p.not(); truthy(v) {
			v = other
		}
	}
	return v, err
}

func (p *expressionParser) not() (any, error) {
	count := 0
	for p.keyword("not") {
		count++
	}
	v, err := p.comparison()
	if count > 0 {
		return truthy(v) != (count%2 == 1), err
	}
	return v, err
}

// comparisons are the operators between two values, those with a longer text first.
var comparisons = []string{"===", "!==", "==", "!=", "<=", ">=", "<", ">"}

// comparison parses comparisons, in and is.
func (p *expressionParser) comparison() (any, error) {
	known := len(p.missing)
	v, err := p.sum()
next:
	for err == nil {
		for _, operator := range comparisons {
			if p.skip(operator) {
				var other any
				if other, err = p.sum(); err == nil {
					v = compare(operator, v, other)
				}
				continue next
			}
		}
		switch before := p.rest; {
		case p.keyword("is"):
			inverse := p.keyword("not")
			var holds bool
			p.missing = p.missing[:known]
			holds, err = isKind(v, p.take(nameToken()))
			v = holds != inverse
		case p.keyword("in"), p.keyword("not") && p.keyword("in"):
			inverse := strings.HasPrefix(before, "not")
			var list any
			if list, err = p.sum(); err == nil {
				var holds bool
				holds, err = contained(list, v)
				v = holds != inverse
			}
		default:
			p.rest = before
			return v, nil
		}
	}
	return v, err
}

// sum parses sums, differences and joined texts.
func (p *expressionParser) sum() (any, error) {
	v, err := p.product()
	for err == nil {
		var other any
		switch {
		case p.skip("~"):
			other, err = p.product()
			v = converted(v) + converted(other)
		case p.skip("+"):
			other, err = p.product()
			_, isText := v.(string)
			_, otherIsText := other.(string)
			if isText || otherIsText || !isSimple(v) || !isSimple(other) {
				v = converted(v) + converted(other)
			} else {
				v = asNumber(v) + asNumber(other)
			}
		case p.skip("-"):
			other, err = p.product()
			v = asNumber(v) - asNumber(other)
		default:
			return v, nil
		}
		if s, ok := v.(string); ok && len(s) > maxRendered {
			return nil, errTooLong
		}
	}
	return v, err
}

// product parses products, quotients and remainders.
func (p *expressionParser) product() (any, error) {
	v, err := p.piped()
	for err == nil {
		var other any
		switch {
		case p.skip("**"):
			other, err = p.piped()
			v = math.Pow(asNumber(v), asNumber(other))
		case p.skip("*"):
			other, err = p.piped()
			v = asNumber(v) * asNumber(other)
		case p.skip("//"):
			other, err = p.piped()
			v = math.Floor(asNumber(v) / asNumber(other))
		case p.skip("/"):
			other, err = p.piped()
			v = asNumber(v) / asNumber(other)
		case p.skip("%"):
			other, err = p.piped()
			v = math.Mod(asNumber(v), asNumber(other))
		default:
			return v, nil
		}
	}
	return v, err
}

// asNumber returns a value as a number, as JavaScript does: NaN if it is not one.
func asNumber(v any) float64 {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 1
		}
		return 0
	case int:
		return float64(v)
	case float64:
		return v
	case string:
		s := strings.TrimSpace(v)
		if s == "" {
			return 0
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	case []any:
		return asNumber(converted(v))
	}
	return math.NaN()
}

// compare decides a comparison as JavaScript does.
func compare(operator string, a, b any) bool {
	switch operator {
	case "===":
		return identical(a, b)
	case "!==":
		return !identical(a, b)
	case "==":
		return equal(a, b)
	case "!=":
		return !equal(a, b)
	}
	a, b = simple(a), simple(b)
	s, isText := a.(string)
	t, otherIsText := b.(string)
	if isText && otherIsText {
		switch operator {
		case "<":
			return s < t
		case "<=":
			return s <= t
		case ">":
			return s > t
		}
		return s >= t
	}
	m, n := asNumber(a), asNumber(b)
	switch operator {
	case "<":
		return m < n
	case "<=":
		return m <= n
	case ">":
		return m > n
	}
	return m >= n
}

// isEmpty reports whether a value is null or unknown.
func isEmpty(v any) bool {
	_, unknown := v.(absent)
	return v == nil || unknown
}

// simple returns a value, and the text of a list or a map.
func simple(v any) any {
	if isSimple(v) {
		return v
	}
	return converted(v)
}

// identical reports whether two values have the same type and are equal. Two lists or maps are if they are the same one.
func identical(a, b any) bool {
	if i, ok := a.(int); ok {
		a = float64(i)
	}
	if i, ok := b.(int); ok {
		b = float64(i)
	}
	if !isSimple(a) && !isSimple(b) {
		x, y := reflect.ValueOf(a), reflect.ValueOf(b)
		return x.Type() == y.Type() && x.Pointer() == y.Pointer() && x.Len() == y.Len()
	}
	return isSimple(a) && isSimple(b) && reflect.TypeOf(a) == reflect.TypeOf(b) && a == b
}

func equal(a, b any) bool {
	if isEmpty(a) || isEmpty(b) {
		return isEmpty(a) && isEmpty(b)
	}
	if isSimple(a) != isSimple(b) {
		a, b = simple(a), simple(b)
	}
	return identical(a, b) || isSimple(a) && isSimple(b) && reflect.TypeOf(a) != reflect.TypeOf(b) && asNumber(a) == asNumber(b)
}

// isSimple reports whether a value is neither a list nor a map.
func isSimple(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

// contained decides the operator in.
func contained(list, v any) (bool, error) {
	switch list := list.(type) {
	case []any:
		for _, item := range list {
			if identical(item, v) {
				return true, nil
			}
		}
		return false, nil
	case string:
		return strings.Contains(list, converted(v)), nil
	case map[string]any:
		_, ok := list[converted(v)]
		return ok, nil
	}
	return false, errors.New("in needs a list, a text or a map")
}

// isKind decides the operator is.
func isKind(v any, kind string) (bool, error) {
	_, unknown := v.(absent)
	_, isText := v.(string)
	_, isMap := v.(map[string]any)
	switch kind {
	case "defined":
		return !unknown, nil
	case "undefined":
		return unknown, nil
	case "none", "null":
		return v == nil, nil
	case "string":
		return isText, nil
	case "number":
		switch v.(type) {
		case int, float64:
			return true, nil
		}
		return false, nil
	case "mapping":
		return isMap, nil
	case "odd":
		return math.Mod(asNumber(v), 2) == 1, nil
	case "even":
		return math.Mod(asNumber(v), 2) == 0, nil
	case "truthy":
		return truthy(v), nil
	case "falsy":
		return !truthy(v), nil
	}
	return false, fmt.Errorf("the test %q is not one that waza has: defined, undefined, none, null, string, number, mapping, odd, even, truthy, falsy", text.Clip(kind, 40))
}
