// Package template replaces variables in the texts of suites. Call [Expand]; [Unknown] lists the
// variables without a value.
//
// A variable is a name in double braces. There are no expressions, and braces in a value are not
// expanded again. Braces around anything else stay unchanged, because a prompt can be about
// another template language.
package template

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"waza/eval/files"
	"waza/eval/text"
)

var form = text.Pattern(`^\.?[\pL_][\pL\pN_-]*(\.[\pL\pN_-]+)*$`)

// longest limits the text between two pairs of braces.
const longest = 200

// Fixture is the prefix of variables for the text of a file: {{fixture:FILE}}.
const Fixture = "fixture:"

// Values returns the value of the expression between double braces, without the space around it,
// and whether it has one.
type Values func(expr string) (value string, known bool)

// A TooLongError means that template variables make a text too long.
type TooLongError struct {
	Text  string // before expansion
	Limit int    // in bytes
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("text %q is longer than %s after its template variables are replaced; shorten the variables or use them less often",
		text.Clip(e.Text, 60), files.Size(int64(e.Limit)))
}

// Expand replaces the variables in a text with their values. It returns a text without variables
// unchanged. If the result would be longer than limit bytes, Expand returns a [*TooLongError]
// without building more than the limit.
func Expand(text string, values Values, limit int) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var b strings.Builder
	for piece := range pieces(text, values) {
		if b.Len()+len(piece) > limit {
			return "", &TooLongError{Text: text, Limit: limit}
		}
		b.WriteString(piece)
	}
	return b.String(), nil
}

// Fits reports whether the expanded text has at most limit bytes, without building it.
func Fits(text string, values Values, limit int) bool {
	n := 0
	for piece := range pieces(text, values) {
		if n += len(piece); n > limit {
			return false
		}
	}
	return true
}

// pieces returns the parts of an expanded text, one by one.
func pieces(text string, values Values) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			before, expr, after, ok := next(text)
			if !ok {
				yield(text)
				return
			}
			value, known := values(expr)
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

// next splits text at its first pair of double braces that contains no other pair. It returns
// the text before, the trimmed text inside and the text after.
func next(text string) (before, expr, after string, ok bool) {
	from := 0
	for {
		open := strings.Index(text[from:], "{{")
		if open < 0 {
			return "", "", "", false
		}
		open += from
		for strings.HasPrefix(text[open+1:], "{{") {
			open++ // of three braces, use the inner two
		}
		inside := text[open+2 : min(len(text), open+2+longest)]
		end := strings.Index(inside, "}}")
		if end >= 0 && !strings.Contains(inside[:end], "{{") {
			return text[:open], strings.TrimSpace(inside[:end]), text[open+2+end+2:], true
		}
		from = open + 2
	}
}

// Variables returns the expressions between double braces, including repetitions.
func Variables(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			_, expr, after, ok := next(text)
			if !ok || !yield(expr) {
				return
			}
			text = after
		}
	}
}

// Unknown returns the apparent variables without a value, each once: as written, with braces,
// and the expressions between the braces.
func Unknown(text string, values Values) (written, exprs []string) {
	seen := map[string]bool{}
	for {
		before, expr, after, ok := next(text)
		if !ok {
			return written, exprs
		}
		if _, known := values(expr); !known && form().MatchString(expr) && !seen[expr] {
			seen[expr] = true
			written = append(written, text[len(before):len(text)-len(after)])
			exprs = append(exprs, expr)
		}
		text = after
	}
}

// Lookup returns the value at a path of keys as text: maps and lists as JSON, null as an empty
// text.
func Lookup(value any, keys []string) (string, bool) {
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

// ExpandTexts returns a copy of a JSON value with expand applied to each text, except keys. It
// does not change the value.
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
