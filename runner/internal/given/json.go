package given

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// SameJSON reports whether two JSON values with numbers of type [json.Number] are equal. It
// compares numbers by value, so that 1, 1.0 and 1e0 are equal, and ignores the order of an object's
// members.
func SameJSON(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a.String(), b.String())
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, SameJSON)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, SameJSON)
	case string, bool, nil:
		return a == b
	}
	return false
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
