//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ledger is the JSON of run.result, with which the numbers of all other outputs must agree. It
// notes the outputs in which each number was found. It has a method for each document that shows
// numbers, which reads better here than several types.
type ledger struct {
	t      *testing.T
	doc    map[string]any
	walked map[string]map[string]bool // by pattern of a path: the places
}

func newLedger(t *testing.T, raw []byte) *ledger {
	t.Helper()
	l := &ledger{t: t, walked: map[string]map[string]bool{}}
	require.NoError(t, json.Unmarshal(raw, &l.doc))
	return l
}

// get returns the value at a path such as tasks.3.counts.passed; nil if no value exists.
func (l *ledger) get(path string) any {
	var at any = l.doc
	for key := range strings.SplitSeq(path, "/") {
		switch d := at.(type) {
		case map[string]any:
			at = d[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(d) {
				return nil
			}
			at = d[i]
		default:
			return nil
		}
	}
	return at
}

func (l *ledger) number(path string) (float64, bool) {
	n, ok := l.get(path).(float64)
	return n, ok
}

func (l *ledger) text(path string) string {
	s, _ := l.get(path).(string)
	return s
}

func (l *ledger) len(path string) int {
	list, _ := l.get(path).([]any)
	return len(list)
}

var indexes = regexp.MustCompile(`/[0-9]+(/|$)`)

// pattern is a path without its indexes: tasks[]/counts/passed.
func pattern(path string) string { return indexes.ReplaceAllString(path, "[]$1") }

func (l *ledger) mark(place, path string) {
	p := pattern(path)
	if l.walked[p] == nil {
		l.walked[p] = map[string]bool{}
	}
	l.walked[p][place] = true
}

// is holds that a place has the sum of the numbers at the paths. Numbers that are not
// there are 0.
func (l *ledger) is(place string, got float64, paths ...string) {
	l.t.Helper()
	l.near(place, got, 1e-9, paths...)
}

func (l *ledger) near(place string, got, within float64, paths ...string) {
	l.t.Helper()
	want := 0.0
	for _, p := range paths {
		if n, ok := l.number(p); ok {
			want += n
			l.mark(place, p)
		}
	}
	require.InDelta(l.t, want, got, within*max(1, want), "%s: %v", place, paths)
}

// maybe is like is, for one number that may be absent in both; got is null then, or an empty
// text.
func (l *ledger) maybe(place string, got any, path string) {
	l.t.Helper()
	if s, ok := got.(string); ok && s != "" {
		n, err := strconv.ParseFloat(s, 64)
		require.NoError(l.t, err, "%s: %s", place, path)
		got = n
	}
	if n, ok := got.(float64); ok {
		_, known := l.number(path)
		require.True(l.t, known, "%s has %v, and %s is not known", place, got, path)
		l.is(place, n, path)
		return
	}
	_, known := l.number(path)
	require.False(l.t, known, "%s has nothing, and %s is known", place, path)
}

// shows holds that a place shows the number at a path in a form, and a dash without one.
func (l *ledger) shows(place, got, path string, form func(float64) string) {
	l.t.Helper()
	want := "–"
	if n, ok := l.number(path); ok {
		want = form(n)
		l.mark(place, path)
	}
	require.Equal(l.t, want, got, "%s: %s", place, path)
}

// interval is shows for an interval.
func (l *ledger) interval(place, got, path string, form func(low, high float64) string) {
	l.t.Helper()
	require.Equal(l.t, l.intervalText(place, path, form), got, "%s: %s", place, path)
}

// intervalText is an interval in a form, a dash without one.
func (l *ledger) intervalText(place, path string, form func(low, high float64) string) string {
	low, ok := l.number(path + "/low")
	high, _ := l.number(path + "/high")
	if !ok {
		return "–"
	}
	l.mark(place, path+"/low")
	l.mark(place, path+"/high")
	return form(low, high)
}

// holds requires that a text contains a part that was made of the numbers at the paths.
func (l *ledger) holds(place, text, part string, paths ...string) {
	l.t.Helper()
	require.Contains(l.t, text, part, "%s: %v", place, paths)
	for _, p := range paths {
		if _, ok := l.number(p); ok {
			l.mark(place, p)
		}
	}
}

// numbers returns the patterns of all numbers.
func (l *ledger) numbers() []string {
	seen := map[string]bool{}
	var list []string
	var visit func(path string, v any)
	visit = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, x := range v {
				visit(path+"/"+key, x)
			}
		case []any:
			for i, x := range v {
				visit(fmt.Sprintf("%s/%d", path, i), x)
			}
		case float64:
			if p := pattern(strings.TrimPrefix(path, "/")); !seen[p] {
				seen[p] = true
				list = append(list, p)
			}
		}
	}
	visit("", l.doc)
	return list
}
