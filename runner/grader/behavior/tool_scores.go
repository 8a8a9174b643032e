package behavior

import (
	"fmt"
	"maps"
	"slices"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/internal/given"
	"waza/runner/record"
)

// Scores returns the tool scores of a trial from the calls that were expected.
//
// Each call of the agent meets at most one expected call. An entry with count n is n expected
// calls. The matching makes the number of expected calls that are met as large as possible and,
// among such matchings, the number of right arguments. listed and right have an entry for each
// expected call. listed reports whether the expected call lists arguments. right is the share of
// listed arguments whose value is right; it is nil if the call was not made.
//
//	Selection = expected calls that were made / expected calls
//	Params    = mean of right over the expected calls that list arguments, 0 for one that was not made
//	Overall   = (Selection + Params) / 2, or Selection where no expected call lists arguments
//
// For example, a task expects get_weather with city Paris, unit C, days 3, hourly true and lang
// fr. The agent calls get_weather with city Paris, unit C, days 3, hourly true and lang en. 1 of
// 1 expected calls was made, so Selection is 1. 4 of 5 arguments are right, so Params is 0.8.
// Overall is (1 + 0.8) / 2 = 0.9. If the task also expects a call of send_mail, without
// arguments, and the agent does not make it, Selection is 0.5, Params is still 0.8, and Overall
// is 0.65.
func Scores(listed []bool, right []*float64) record.ToolScores {
	made, sum, lists := 0, 0.0, 0
	for i, share := range right {
		if share != nil {
			made++
		}
		if listed[i] {
			if lists++; share != nil {
				sum += *share
			}
		}
	}
	var s record.ToolScores
	if len(right) > 0 {
		s.Selection = float64(made) / float64(len(right))
	}
	s.Overall = s.Selection
	if lists > 0 {
		params := sum / float64(lists)
		s.Params, s.Overall = &params, (s.Selection+params)/2
	}
	return s
}

// WithoutCalls returns the scores of a trial that made no call.
func (g *toolCallsGrader) WithoutCalls() *record.TrialTools {
	if len(g.required) == 0 {
		return nil
	}
	listed := make([]bool, len(g.required))
	for i := range g.required {
		listed[i] = len(g.required[i].arguments) > 0
	}
	return &record.TrialTools{ToolScores: Scores(listed, make([]*float64, len(listed)))}
}

// A matchedCall is a call that meets an expected one.
type matchedCall struct {
	call  *toolCall
	index int     // in the list of calls
	right float64 // the share of the listed arguments that are right; 1 if none are listed
}

// matched returns for each test the calls that meet it, at most as many as the test expects.
func matched(tests []callTest, calls []toolCall) [][]matchedCall {
	var rows []int // the entry of each expected call
	for i := range tests {
		for range min(tests[i].count, eval.MaxExpectedCalls) {
			rows = append(rows, i)
		}
	}
	weights := make([][]float64, len(tests))
	var columns []int // calls that meet a test
	for c := range calls {
		meets := false
		for i := range tests {
			if tests[i].matches(&calls[c]) {
				meets = true
				break
			}
		}
		if meets {
			columns = append(columns, c)
		}
	}
	for i := range tests {
		weights[i] = make([]float64, len(columns))
		for n, c := range columns {
			if tests[i].matches(&calls[c]) {
				weights[i][n] = float64(len(rows)+1) + tests[i].worth(&calls[c])
			}
		}
	}
	found := make([][]matchedCall, len(tests))
	for row, n := range assign(rows, weights, len(columns)) {
		if i := rows[row]; n < len(columns) && weights[i][n] > 0 {
			c := columns[n]
			found[i] = append(found[i], matchedCall{&calls[c], c, tests[i].right(&calls[c])})
		}
	}
	for i := range found { // sort the best calls first
		slices.SortStableFunc(found[i], func(a, b matchedCall) int {
			switch {
			case a.right > b.right:
				return -1
			case a.right < b.right:
				return 1
			}
			return a.index - b.index
		})
	}
	return found
}

// worth returns the value of a call's arguments. It is always less than that of one more call.
func (t *callTest) worth(c *toolCall) float64 {
	switch {
	case len(t.arguments) > 0:
		return preferred + t.right(c)
	case t.exclusive():
		return preferred
	}
	return 0
}

// preferred makes a call meet an entry that cannot share its calls rather than one that can.
const preferred = 1e-6

// assign gives each row a different column so that the sum of weights[rows[row]][column] is as
// large as possible. Columns from n on weigh nothing. It uses the Hungarian algorithm: it adds
// the rows one by one, each with the cheapest chain of rows that move to another column, and u
// and v as potentials. Its time grows with rows² × columns.
func assign(rows []int, weights [][]float64, n int) []int {
	columns := max(n, len(rows))
	cost := func(row, column int) float64 {
		if column > n {
			return 0
		}
		return -weights[rows[row-1]][column-1]
	}
	u, v := make([]float64, len(rows)+1), make([]float64, columns+1)
	rowOf, before := make([]int, columns+1), make([]int, columns+1) // rows and columns count from 1; 0 means none
	least, used := make([]float64, columns+1), make([]bool, columns+1)
	for row := 1; row <= len(rows); row++ {
		rowOf[0] = row
		at := 0
		for j := range least {
			least[j], used[j] = 1e300, false
		}
		for rowOf[at] != 0 {
			used[at] = true
			from, next, step := rowOf[at], 0, 1e300
			for j := 1; j <= columns; j++ {
				if used[j] {
					continue
				}
				if c := cost(from, j) - u[from] - v[j]; c < least[j] {
					least[j], before[j] = c, at
				}
				// Prefer a free column among equals, because it ends the chain.
				if least[j] < step || least[j] == step && rowOf[j] == 0 && rowOf[next] != 0 {
					step, next = least[j], j
				}
			}
			for j := range used {
				if used[j] {
					u[rowOf[j]] += step
					v[j] -= step
				} else {
					least[j] -= step
				}
			}
			at = next
		}
		for at != 0 {
			rowOf[at] = rowOf[before[at]]
			at = before[at]
		}
	}
	columnOf := make([]int, len(rows))
	for j := 1; j <= columns; j++ {
		if rowOf[j] != 0 {
			columnOf[rowOf[j]-1] = j - 1
		}
	}
	return columnOf
}

// scores returns the scores of a trial with matched calls. Calls from reported on are skills.
func scores(tests []callTest, found [][]matchedCall, reported int) *record.TrialTools {
	var listed []bool
	var right []*float64
	var best *matchedCall
	most := 0.0
	for i := range tests {
		for n := range min(tests[i].count, eval.MaxExpectedCalls) {
			listed = append(listed, len(tests[i].arguments) > 0)
			if n >= len(found[i]) {
				right = append(right, nil)
				continue
			}
			m := &found[i][n]
			right = append(right, &m.right)
			if worth := tests[i].worth(m.call); m.index < reported && (best == nil || worth > most) {
				best, most = m, worth
			}
		}
	}
	t := &record.TrialTools{ToolScores: Scores(listed, right)}
	if best != nil {
		t.Call = &best.index
	}
	return t
}

// right returns the share of the listed arguments whose value is right; 1 if none are listed.
func (t *callTest) right(c *toolCall) float64 {
	if len(t.arguments) == 0 {
		return 1
	}
	n := 0
	for name, want := range t.arguments {
		if v, ok := c.exactArgument(name); ok && given.SameJSON(want, v) {
			n++
		}
	}
	return float64(n) / float64(len(t.arguments))
}

// complaint describes what the calls in found lack to meet the entry. It is empty if there are
// enough calls with all arguments right.
func (t *callTest) complaint(found []matchedCall, s *grader.Subject) string {
	right := 0
	for _, m := range found {
		if m.right == 1 {
			right++
		}
	}
	switch {
	case right >= t.count:
		return ""
	case len(found) == 0:
		return fmt.Sprintf("no call of %s; called: %s", t.label, s.CalledTools())
	case len(found) < t.count:
		return fmt.Sprintf("%s of %s, fewer than %d; called: %s", text.Count(len(found), "call", "calls"), t.label, t.count, s.CalledTools())
	}
	for _, m := range found {
		for _, name := range slices.Sorted(maps.Keys(t.arguments)) {
			want := t.arguments[name]
			v, ok := m.call.exactArgument(name)
			switch {
			case !ok:
				return fmt.Sprintf("the call of %s has no argument %s", m.call.name, name)
			case !given.SameJSON(want, v):
				return fmt.Sprintf("the call of %s: argument %s is %s, not %s", m.call.name, name,
					text.Clip(jsonText(v), grader.ExcerptBytes), text.Clip(jsonText(want), grader.ExcerptBytes))
			}
		}
	}
	return ""
}
