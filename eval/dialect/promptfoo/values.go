package promptfoo

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// maxValues limits the values that one variable contains, because aliases expand. A text counts as one for
// each valueSize bytes.
const maxValues = 200_000

var errTooManyValues = errors.New("it has too many values, or aliases that contain themselves")

// valueOf returns the value of a node: nil, a boolean, a number, a text, []any or map[string]any.
func valueOf(n *yaml.Node) (any, error) {
	left := maxValues
	return valueWithin(n, decode.MaxDepth, &left)
}

func valueWithin(n *yaml.Node, depth int, left *int) (any, error) {
	n = decode.Follow(n)
	if n != nil {
		*left -= len(n.Value) / valueSize
	}
	if *left--; *left < 0 || depth == 0 {
		return nil, errTooManyValues
	}
	switch {
	case n == nil:
		return nil, nil
	case n.Kind == yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			v, err := valueWithin(item, depth-1, left)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case n.Kind == yaml.MappingNode:
		m := map[string]any{}
		for _, p := range dialect.Pairs(n) {
			v, err := valueWithin(p.Value, depth-1, left)
			if err != nil {
				return nil, err
			}
			m[p.Key.Value] = v
			*left -= len(p.Key.Value) / valueSize
		}
		return m, nil
	case n.Kind == yaml.ScalarNode:
		return decode.ScalarOf(n), nil
	}
	return nil, errTooManyValues
}

// printed returns a value as templates write it: as JavaScript converts it, but nothing for no value.
func printed(v any) string {
	if isEmpty(v) {
		return ""
	}
	return converted(v)
}

// converted returns a value as JavaScript converts it to a text.
func converted(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case absent:
		return "undefined"
	case float64:
		return numberText(v)
	case map[string]any:
		return "[object Object]"
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			texts[i] = printed(item)
		}
		return strings.Join(texts, ",")
	}
	return textOf(v)
}

// numberText returns a number as JavaScript writes it.
func numberText(n float64) string {
	switch {
	case math.IsNaN(n):
		return "NaN"
	case math.IsInf(n, 0):
		return strings.TrimPrefix(strings.ReplaceAll(fmt.Sprint(n), "Inf", "Infinity"), "+")
	case n == 0:
		return "0"
	case math.Abs(n) >= 1e21 || math.Abs(n) < 1e-6:
		digits, exponent, _ := strings.Cut(strconv.FormatFloat(n, 'e', -1, 64), "e")
		return digits + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// textOf returns a value as a text: lists and maps as JSON.
func textOf(v any) string {
	switch v := v.(type) {
	case nil, absent:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case map[string]any, []any:
		data, err := jsonwalk.Encode(v)
		if err != nil {
			return ""
		}
		return string(data)
	}
	return fmt.Sprint(v)
}

// nodeOf returns a value as a node.
func nodeOf(at *yaml.Node, v any) *yaml.Node {
	switch v := v.(type) {
	case []any:
		list := dialect.List(at)
		for _, item := range v {
			list.Content = append(list.Content, nodeOf(at, item))
		}
		return list
	case map[string]any:
		m := dialect.NewMap(at)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m.Set(key, nodeOf(at, v[key]))
		}
		return m.Node
	case bool, int, float64:
		return dialect.Scalar(at, v)
	case nil:
		n := dialect.Scalar(at, "null")
		n.Tag = "!!null"
		return n
	}
	return dialect.Scalar(at, textOf(v))
}

// mention matches a variable alone in braces.
var mention = text.Pattern(`\{\{\s*(\w+)\s*\}\}`)

// maxRounds limits the rounds in which variables are inserted into others.
const maxRounds = 5

// resolve inserts variables into the texts of others, one mention per variable and round, and removes
// the line end of each text. It stops when the budget is exceeded.
func resolve(vars map[string]any, b *budget) {
	names := slices.Sorted(maps.Keys(vars))
	for _, name := range names {
		if s, ok := vars[name].(string); ok {
			vars[name] = strings.TrimSuffix(s, "\n")
		}
	}
	for range maxRounds {
		changed := false
		for _, name := range names {
			s, ok := vars[name].(string)
			if !ok {
				continue
			}
			at := mention().FindStringSubmatchIndex(s)
			if at == nil {
				continue
			}
			value, known := vars[s[at[2]:at[3]]]
			if inserted := converted(value); known && len(s)+len(inserted) <= maxRendered {
				if !b.spend(len(s) + len(inserted)) {
					return
				}
				vars[name], changed = s[:at[0]]+inserted+s[at[1]:], true
			}
		}
		if !changed {
			return
		}
	}
}
