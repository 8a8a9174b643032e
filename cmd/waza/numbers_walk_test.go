//go:build unix

package main_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A doorFigure states what a number in the reply of a door is, and which value it must have.
type doorFigure struct {
	// number is a regular expression of the number's path in the reply, such as
	// waza_run_result/results[]/score.
	number string
	// definition is the same for all numbers of a document that have the same name.
	definition string
	// want returns the value. place holds the groups of number, and items the elements of lists
	// that contain the number, the outermost first.
	want func(w *doorWalk, place []string, items []object) float64
}

// notFigures lists the numbers in replies that are no results, with the reasons.
var notFigures = map[string]string{
	`waza_eval_get/(config|metrics)/.*`:         "the suite's settings",
	`waza_task_list/tasks\[\]/line`:             "a line of a file",
	`waza_run_result/results\[\]/trial`:         "names a trial",
	`waza_run_transcript/trial`:                 "names a trial",
	`waza_run_transcript/entries\[\]/(n|at_ms)`: "places in a transcript",
	`waza_skill_check/.*`:                       "describes a skill",
	`waza_plan/.*`:                              "predictions about runs to come, see runner/power",
}

// A doorWalk holds every number in the replies of the doors against documents of the daemon.
type doorWalk struct {
	l       *ledger
	place   string // of the ledger: mcp or rest
	compare *ledger
	history *ledger
	used    map[string]bool // by number of a figure or of notFigures: it was met
	index   int             // of the present number, if it is an element of a list
}

// sum returns a figure that is the sum of numbers of the run's JSON, times a factor. The paths are
// [filled].
func sum(number, definition string, factor float64, paths ...string) doorFigure {
	return doorFigure{number, definition, func(w *doorWalk, place []string, _ []object) float64 {
		total := 0.0
		for _, p := range paths {
			p = filled(p, place)
			if n, ok := w.l.number(p); ok {
				total += n
				w.l.mark(w.place, p)
			}
		}
		return factor * total
	}}
}

// filled replaces $1 and $2 in a path with the groups of a figure's number.
func filled(path string, place []string) string {
	for i, group := range place[1:] {
		path = strings.ReplaceAll(path, fmt.Sprintf("$%d", i+1), camel(group))
	}
	return path
}

// camel turns needs_review into needsReview.
func camel(name string) string {
	before, after, ok := strings.Cut(name, "_")
	if !ok {
		return name
	}
	return before + strings.ToUpper(after[:1]) + after[1:]
}

const (
	countOfVerdict = "a number of tasks or trials with that verdict"
	meanScore      = "a mean score"
	passedOfTasks  = "the share of counted tasks that passed"
	tokensOfRun    = "all tokens of a run, read and written, of agents and judges"
	costOfRun      = "US dollars of a run, of agents and judges"
	timeOfRun      = "the time from the start of a run to its end"
)

// doorFigures lists the numbers in replies. Together with notFigures it names each of them.
var doorFigures = []doorFigure{
	{`(?:GET /api/jobs|sync)/\w*jobs\[\]/progress_pct`, "the share of trials that have ended, in whole percent", func(
		w *doorWalk, _ []string, _ []object,
	) float64 {
		total, _ := w.l.number("summary/trials/total")
		cancelled, _ := w.l.number("summary/trials/cancelled")
		return math.Floor(100 * (total - cancelled) / total)
	}},
	sum(`waza_run_result/duration_ms`, timeOfRun, 1, "summary/durationMs"),
	sum(`waza_run_result/tokens`, tokensOfRun, 1, "summary/usage/inputTokens", "summary/usage/outputTokens"),
	sum(`waza_run_result/cost_usd`, costOfRun, 1, "summary/usage/costUsd"),
	sum(`waza_run_result/pass_rate`, passedOfTasks, 1, "summary/passRate"),
	sum(`waza_run_result/score`, meanScore, 1, "summary/score/mean"),
	sum(`waza_run_result/(tasks)/(\w+)`, countOfVerdict, 1, "summary/$2"),
	sum(`waza_run_result/(trials)/(\w+)`, countOfVerdict, 1, "summary/$1/$2"),
	sum(`waza_run_result/baseline/pairs`, "a number of compared tasks", 1, "summary/baseline/pairs"),
	sum(`waza_run_result/baseline/p`, "a p-value, corrected for all tests", 1, "summary/baseline/p"),
	sum(`waza_run_result/baseline/pass_rate_(with|without)`, "a mean pass rate of tasks", 1, "summary/baseline/passRate/$1"),
	sum(`waza_run_result/baseline/gain`, "a difference of mean pass rates", 1, "summary/baseline/passRate/gain"),
	sum(`waza_run_result/trigger_tests/(prompts)`, "a number of prompts", 1, "summary/triggers/$1"),
	sum(`waza_run_result/trigger_tests/(accuracy|precision|recall|f1)`, "a weighted share of answers", 1, "summary/triggers/$1"),
	ofTask(`waza_run_result/results\[\]/passed`, countOfVerdict, "counts/passed"),
	ofTask(`waza_run_result/results\[\]/score`, meanScore, "score/mean"),
	ofTask(`waza_run_result/results\[\]/trials`, "a number of trials", "totalTrials"),
	{`waza_run_result/results\[\]/self_reported`, "a number of passes that depend on tool calls which only the agent reports", func(w *doorWalk, _ []string, items []object) float64 {
		at, n := w.l.task(items[0]), 0.0
		for i := range w.l.len(at + "/trials") {
			trial := fmt.Sprintf("%s/trials/%d", at, i)
			depends := false
			for j := range w.l.len(trial + "/graders") {
				grade := fmt.Sprintf("%s/graders/%d", trial, j)
				depends = depends || w.l.get(grade+"/selfReported") == true && w.l.get(grade+"/passed") == true
			}
			if depends && w.l.text(trial+"/verdict") == "passed" {
				n++
			}
		}
		return n
	}},
	{`waza_run_result/results\[\]/reasons\[\]/trials`, "a number of trials", func(w *doorWalk, _ []string, items []object) float64 {
		at := w.l.task(items[0])
		for i := range w.l.len(at + "/reasons") {
			reason := fmt.Sprintf("%s/reasons/%d", at, i)
			if message := w.l.text(reason + "/message"); w.l.text(reason+"/grader") == orEmpty(items[1]["grader"]) &&
				(message == items[1]["message"] || message == "") {
				n, _ := w.l.number(reason + "/trials")
				w.l.mark(w.place, reason+"/trials")
				return n
			}
		}
		return math.NaN()
	}},

	sum(`waza_results_runs\[\]/duration`, timeOfRun, 1e-3, "summary/durationMs"),
	sum(`waza_results_runs\[\]/tokens`, tokensOfRun, 1, "summary/usage/inputTokens", "summary/usage/outputTokens"),
	sum(`waza_results_runs\[\]/cost`, costOfRun, 1, "summary/usage/costUsd"),
	sum(`waza_results_runs\[\]/passCount`, countOfVerdict, 1, "summary/passed"),
	sum(`waza_results_runs\[\]/taskCount`, countOfVerdict, 1, "summary/total"),

	{`waza_results_summary/totalRuns`, "a number of runs", func(*doorWalk, []string, []object) float64 { return 1 }},
	sum(`waza_results_summary/totalTasks`, countOfVerdict, 1, "summary/total"),
	{`waza_results_summary/passRate`, passedOfTasks + ", in percent", func(w *doorWalk, _ []string, _ []object) float64 {
		passed, _ := w.l.number("summary/passed")
		counted := passed
		for _, name := range []string{"failed", "timeouts"} {
			n, _ := w.l.number("summary/" + name)
			counted += n
		}
		return 100 * passed / counted
	}},
	sum(`waza_results_summary/avgTokens`, "a mean of "+tokensOfRun, 1, "summary/usage/inputTokens", "summary/usage/outputTokens"),
	sum(`waza_results_summary/avgCost`, "a mean of "+costOfRun, 1, "summary/usage/costUsd"),
	sum(`waza_results_summary/avgDuration`, "a mean of "+timeOfRun, 1e-3, "summary/durationMs"),

	{`waza_run_status/trials_(done|total)`, countOfVerdict, func(w *doorWalk, place []string, _ []object) float64 {
		n := 0.0
		for i := range w.l.len("tasks") {
			if total, ok := w.l.number(fmt.Sprintf("tasks/%d/totalTrials", i)); ok && w.l.text(fmt.Sprintf("tasks/%d/role", i)) == "" {
				n += total
			}
		}
		return n // the run has ended
	}},

	{`waza_run_transcript/score`, "a score from 0 to 1", func(w *doorWalk, _ []string, _ []object) float64 {
		n, _ := w.l.number(w.l.task(object{"task_id": walkedTask}) + "/trials/0/score")
		return n
	}},
	{`waza_run_transcript/graders\[\]/score`, "a score from 0 to 1", func(w *doorWalk, _ []string, items []object) float64 {
		trial := w.l.task(object{"task_id": walkedTask}) + "/trials/0/graders"
		for i := range w.l.len(trial) {
			if at := fmt.Sprintf("%s/%d", trial, i); w.l.text(at+"/name") == items[0]["name"] {
				n, _ := w.l.number(at + "/score")
				w.l.mark(w.place, at+"/score")
				return n
			}
		}
		return math.NaN()
	}},
	{`waza_run_transcript/total_entries`, "a number of entries", func(w *doorWalk, _ []string, _ []object) float64 {
		return float64(w.l.len(w.l.task(object{"task_id": walkedTask}) + "/trials/0/transcript"))
	}},

	compared(`waza_run_compare/(compared|improved|regressed|unchanged|undecided)`, "a number of tasks with that class", "$1"),
	compared(`waza_run_compare/no_difference`, "a number of tasks with that class", "noDifference"),
	compared(`waza_run_compare/(lost|won)`, "a number of tasks by their verdicts in both runs", "verdicts/$1"),
	compared(`waza_run_compare/(p)`, "a p-value, corrected for all tests", "$1"),
	contrasted(`waza_run_compare/(pass_rate|score)/(base|run)`, "a mean over tasks"),
	contrasted(`waza_run_compare/(pass_rate|score)/(difference)`, "a difference of means over tasks"),
	{`waza_run_compare/(pass_rate|score)/interval\[\]`, "a limit of an interval", func(w *doorWalk, place []string, _ []object) float64 {
		n, _ := w.compare.number("comparisons/0/" + camel(place[1]) + "/interval/" + []string{"low", "high"}[w.index])
		return n
	}},
	answered(`waza_run_compare/(these_tasks|tasks_like_these)/(p)`, "a p-value, corrected for all tests"),
	answered(`waza_run_compare/(these_tasks|tasks_like_these)/((?:pass_rate|score)/(?:base|run|difference))`, "a mean over tasks, or a difference of means"),
	{
		`waza_run_compare/(these_tasks|tasks_like_these)/((?:pass_rate|score)/interval)\[\]`, "a limit of the interval of that question",
		func(w *doorWalk, place []string, _ []object) float64 {
			n, _ := w.compare.number("comparisons/0/" + answerPath(place) + "/" + []string{"low", "high"}[w.index])
			return n
		},
	},
	compared(`waza_run_compare/tasks_like_these/at_least`, "a number of tasks or clusters", "tasksLikeThese/atLeast"),
	// A run is compared with itself, so that the ratios are of equal means.
	{
		`waza_run_compare/(duration_ms|tokens|cost_usd)/difference`, "a difference of means over tasks",
		func(*doorWalk, []string, []object) float64 { return 0 },
	},
	{`waza_run_compare/duration_ms/(base|run)`, "a mean over tasks", func(w *doorWalk, _ []string, _ []object) float64 {
		return w.meanOfTasks(func(trial string) (float64, bool) { return w.l.number(trial + "/durationMs") })
	}},
	{`waza_run_compare/tokens/(base|run)`, "a mean over tasks", func(w *doorWalk, _ []string, _ []object) float64 {
		return w.meanOfTasks(func(trial string) (float64, bool) {
			in, _ := w.l.number(trial + "/spent/agent/inputTokens")
			out, _ := w.l.number(trial + "/spent/agent/outputTokens")
			return in + out, in+out > 0
		})
	}},
	{`waza_run_compare/cost_usd/(base|run)`, "a mean over tasks", func(w *doorWalk, _ []string, _ []object) float64 {
		return w.meanOfTasks(func(trial string) (float64, bool) {
			cost, ok := w.l.number(trial + "/spent/agent/costUsd")
			return cost, ok && cost > 0
		})
	}},

	ofHistory(`waza_run_history/tasks\[\]/(counted|passed)`, "a number of trials in all runs", "$1"),
	ofHistory(`waza_run_history/tasks\[\]/flakiness`, "the share of the rarer verdict", "flakiness"),
	ofHistory(`waza_run_history/tasks\[\]/causes/(\w+)`, "a number of changes of the verdict", "causes/$1"),
}

// walkedTask is the task whose first trial waza_run_transcript shows.
const walkedTask = "steady[m-1]"

func orEmpty(v any) string {
	s, _ := v.(string)
	return s
}

// task returns the path of the task that an item names.
func (l *ledger) task(item object) string {
	l.t.Helper()
	for i := range l.len("tasks") {
		if at := fmt.Sprintf("tasks/%d", i); l.text(at+"/id") == item["task_id"] {
			return at
		}
	}
	require.Fail(l.t, "unknown task", "%v", item["task_id"])
	return ""
}

// ofTask returns a figure of the task that the item names.
func ofTask(number, definition, path string) doorFigure {
	return doorFigure{number, definition, func(w *doorWalk, _ []string, items []object) float64 {
		at := w.l.task(items[0]) + "/" + path
		n, ok := w.l.number(at)
		require.True(w.l.t, ok, at)
		w.l.mark(w.place, at)
		return n
	}}
}

// compared returns a figure that the method run.compare returns as well.
func compared(number, definition, path string) doorFigure {
	return doorFigure{number, definition, func(w *doorWalk, place []string, _ []object) float64 {
		p := filled(path, place)
		n, ok := w.compare.number("comparisons/0/" + p)
		require.True(w.l.t, ok, p)
		return n
	}}
}

// answerPath returns the path in the result of run.compare of a number of the answer to a question.
func answerPath(place []string) string {
	question := map[string]string{"these_tasks": "theseTasks", "tasks_like_these": "tasksLikeThese"}[place[1]]
	return question + "/" + strings.NewReplacer("pass_rate", "passRate", "base", "reference").Replace(place[2])
}

// answered returns a figure of the answer to a question.
func answered(number, definition string) doorFigure {
	return doorFigure{number, definition, func(w *doorWalk, place []string, _ []object) float64 {
		at := "comparisons/0/" + answerPath(place)
		n, ok := w.compare.number(at)
		require.True(w.l.t, ok, at)
		return n
	}}
}

// contrasted returns a figure of a measure that run.compare contrasts.
func contrasted(number, definition string) doorFigure {
	return doorFigure{number, definition, func(w *doorWalk, place []string, _ []object) float64 {
		at := "comparisons/0/" + camel(place[1]) + "/" + strings.ReplaceAll(place[2], "base", "reference")
		n, ok := w.compare.number(at)
		require.True(w.l.t, ok, at)
		return n
	}}
}

// ofHistory returns a figure that the method task.history returns as well.
func ofHistory(number, definition, path string) doorFigure {
	return doorFigure{number, definition, func(w *doorWalk, place []string, items []object) float64 {
		for i := range w.history.len("tasks") {
			if at := fmt.Sprintf("tasks/%d", i); w.history.text(at+"/id") == items[0]["task_id"] {
				p := filled(path, place)
				n, ok := w.history.number(at + "/" + p)
				require.True(w.l.t, ok, p)
				return n
			}
		}
		return math.NaN()
	}}
}

// meanOfTasks returns the mean over compared tasks of the mean of their counted trials.
func (w *doorWalk) meanOfTasks(of func(trial string) (float64, bool)) float64 {
	var means []float64
	for i := range w.l.len("tasks") {
		at := fmt.Sprintf("tasks/%d", i)
		if waiting, _ := w.l.number(at + "/counts/needsReview"); w.l.text(at+"/role") != "" || waiting > 0 {
			continue
		}
		var values []float64
		for j := range w.l.len(at + "/trials") {
			trial := fmt.Sprintf("%s/trials/%d", at, j)
			if v := w.l.text(trial + "/verdict"); v == "passed" || v == "failed" || v == "timeout" {
				if x, ok := of(trial); ok {
					values = append(values, x)
				}
			}
		}
		if len(values) > 0 {
			means = append(means, mean(values))
		}
	}
	return mean(means)
}

// reply holds each number of a reply: a figure must have the value that follows from the run, and
// every other number must be one of notFigures.
func (w *doorWalk) reply(name string, doc any) {
	w.l.t.Helper()
	var visit func(path string, v any, items []object)
	visit = func(path string, v any, items []object) {
		switch v := v.(type) {
		case object:
			for key, x := range v {
				visit(path+"/"+key, x, items)
			}
		case []any:
			for i, x := range v {
				w.index = i
				within := items
				if item, ok := x.(object); ok {
					within = append(slices.Clone(items), item)
				}
				visit(path+"[]", x, within)
			}
		case float64:
			w.holds(path, v, items)
		}
	}
	visit(name, doc, nil)
}

func (w *doorWalk) holds(path string, got float64, items []object) {
	w.l.t.Helper()
	for pattern := range notFigures {
		if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(path) {
			w.used[pattern] = true
			return
		}
	}
	for _, f := range doorFigures {
		if place := regexp.MustCompile("^" + f.number + "$").FindStringSubmatch(path); place != nil {
			w.used[f.number] = true
			want := f.want(w, place, items)
			require.InDelta(w.l.t, want, got, 5e-5+1e-9*math.Abs(want), "%s: %s", path, f.definition) // doors round to four digits
			return
		}
	}
	require.Fail(w.l.t, "no figure names a number of a reply", "%s is %v", path, got)
}

// requireUsed holds that each figure and each exception was met in a reply.
func requireUsed(t *testing.T, used map[string]bool) {
	t.Helper()
	var left []string
	for pattern := range notFigures {
		if !used[pattern] {
			left = append(left, pattern)
		}
	}
	for _, f := range doorFigures {
		if !used[f.number] {
			left = append(left, f.number)
		}
	}
	require.Empty(t, left, "in no reply")
}

// In one document, all numbers of one name have the same definition.
func TestOneDefinitionPerName(t *testing.T) {
	t.Parallel()
	known := map[string]string{}
	for _, f := range doorFigures {
		document, _, _ := strings.Cut(strings.TrimPrefix(f.number, "GET /api/"), "/")
		for _, name := range namesOf(f.number) {
			key := document + " " + name
			require.Contains(t, []string{"", f.definition}, known[key], key)
			known[key] = f.definition
		}
	}
}

// namesOf returns the names of the numbers that a figure is about: the last key of its path, or the
// alternatives there.
func namesOf(number string) []string {
	name := strings.TrimSuffix(number[strings.LastIndex(number, "/")+1:], `\[\]`)
	before, rest, ok := strings.Cut(name, "(")
	if !ok {
		return []string{name}
	}
	alternatives, after, _ := strings.Cut(rest, ")")
	var names []string
	for a := range strings.SplitSeq(alternatives, "|") {
		names = append(names, before+a+after)
	}
	return names
}

// requireOneDefinition holds that a measure in the data of a page has another name than those of the
// summary that the page contains, because measures of the run as a whole are other figures.
func requireOneDefinition(t *testing.T, run object) {
	t.Helper()
	inSummary := map[string]bool{}
	var visit func(key string, v any)
	visit = func(key string, v any) {
		switch v := v.(type) {
		case object:
			if isMeasure(v) {
				inSummary[key] = true
				return
			}
			for k, x := range v {
				visit(k, x)
			}
		case []any:
			for _, x := range v {
				visit(key, x)
			}
		case float64:
			inSummary[key] = true
		}
	}
	visit("", run["summary"])
	require.NotEmpty(t, inSummary)
	for key, v := range run {
		if _, isNumber := v.(float64); isNumber || isMeasure(v) {
			require.False(t, inSummary[key], "%s has two definitions in the page's data", key)
		}
	}
}

// isMeasure reports whether a value describes a distribution.
func isMeasure(v any) bool {
	o, _ := v.(object)
	_, ok := o["mean"].(float64)
	return ok
}
