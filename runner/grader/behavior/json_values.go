package behavior

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waza/runner/grader/internal/match"
)

// exactJSON decodes a JSON text and keeps numbers as written.
func exactJSON(data string) (any, bool) {
	dec := json.NewDecoder(strings.NewReader(data))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	_, err := dec.Token()
	return v, err == io.EOF
}

// exactValue converts a value of a suite to the types that exactJSON returns.
func exactValue(v any) any {
	data, err := match.EncodeJSON(match.PlainJSON(v))
	if err != nil {
		return v
	}
	if exact, ok := exactJSON(string(bytes.TrimSpace(data))); ok {
		return exact
	}
	return v
}

// sameValue reports whether two values of exactJSON are equal. It compares numbers by value and
// ignores the order of an object's members.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a.String(), b.String())
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return a == nil && b == nil
}

// sameNumber compares whole numbers of 64 bits exactly and others as floating-point numbers.
func sameNumber(a, b string) bool {
	x, xerr := strconv.ParseInt(a, 10, 64)
	y, yerr := strconv.ParseInt(b, 10, 64)
	if xerr == nil && yerr == nil {
		return x == y
	}
	f, ferr := strconv.ParseFloat(a, 64)
	g, gerr := strconv.ParseFloat(b, 64)
	return a == b || ferr == nil && gerr == nil && f == g
}
