//go:build unix

package main_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

var countNames = []string{"total", "passed", "failed", "errors", "timeouts", "cancelled", "skipped", "needsReview"}

// object is a JSON object.
type object = map[string]any

func (l *ledger) decode(text string) object {
	l.t.Helper()
	var o object
	require.NoError(l.t, json.Unmarshal([]byte(text), &o))
	return o
}

// spent returns the paths of a usage of both roles.
func spent(of, name string) []string { return []string{of + "/agent/" + name, of + "/judges/" + name} }

// known reports whether anything is known of a usage.
func (l *ledger) known(of string) bool { return l.get(of) != nil }

func (l *ledger) csv(text string) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(l.t, err)
	head, rows := rows[0], rows[1:]
	for i := range l.len("tasks") {
		for j := range l.len(fmt.Sprintf("tasks/%d/trials", i)) {
			at := fmt.Sprintf("tasks/%d/trials/%d", i, j)
			cell := func(name string) string { return rows[0][slices.Index(head, name)] }
			number := func(name string) float64 {
				n, err := strconv.ParseFloat(cell(name), 64)
				require.NoError(l.t, err, name)
				return n
			}
			require.Equal(l.t, l.text(fmt.Sprintf("tasks/%d/id", i)), cell("task_id"))
			require.Equal(l.t, l.text(at+"/verdict"), cell("verdict"))
			l.is("csv", number("trial"), at+"/trialNum")
			l.maybe("csv", cell("score"), at+"/score")
			l.is("csv", number("duration_ms"), at+"/durationMs")
			l.is("csv", number("executor_ms"), at+"/executorMs")
			l.is("csv", number("startup_ms"), at+"/startupMs")
			require.Equal(l.t, strconv.Itoa(1+l.len(at+"/attempts")), cell("attempts"))
			of := at + "/spent"
			if l.known(of) {
				l.is("csv", number("input_tokens"), spent(of, "inputTokens")...)
				l.is("csv", number("output_tokens"), spent(of, "outputTokens")...)
				l.is("csv", number("total_tokens"), slices.Concat(spent(of, "inputTokens"), spent(of, "outputTokens"))...)
				l.is("csv", number("cost_usd"), spent(of, "costUsd")...)
			} else {
				require.Empty(l.t, cell("input_tokens")+cell("output_tokens")+cell("total_tokens")+cell("cost_usd"))
			}
			l.maybe("csv", cell("judge_cost_usd"), of+"/judges/costUsd")
			for name, column := range map[string]string{"selection": "tool_selection", "params": "tool_arguments", "overall": "tool_score"} {
				l.maybe("csv", cell(column), at+"/tools/"+name)
			}
			if cell("judge_tokens") != "" {
				l.is("csv", number("judge_tokens"), of+"/judges/inputTokens", of+"/judges/outputTokens")
			}
			rows = rows[1:]
		}
	}
	require.Empty(l.t, rows)
}

// results holds results.json against the ledger, whose format has fewer places: a
// timeout is a failure there.
func (l *ledger) results(text string) {
	doc := l.decode(text)
	l.resultsOf(doc, "")
	l.resultsOf(doc["baseline_outcome"].(object), "baseline")
	sum := doc["summary"].(object)
	l.is("results", sum["total_tests"].(float64), "summary/total")
	l.is("results", sum["succeeded"].(float64), "summary/passed")
	l.is("results", sum["failed"].(float64), "summary/failed", "summary/timeouts")
	l.is("results", sum["errors"].(float64), "summary/errors")
	l.is("results", sum["skipped"].(float64), "summary/skipped", "summary/cancelled", "summary/needsReview")
	l.is("results", sum["duration_ms"].(float64), "summary/durationMs")
	meta := doc["metadata"].(object)
	if _, ok := l.number("summary/passRate"); ok {
		l.is("results", sum["success_rate"].(float64), "summary/passRate")
		l.is("results", sum["weighted_score"].(float64), "summary/score/mean")
		in := meta["score_interval"].(object)
		l.is("results", in["low"].(float64), "summary/score/meanInterval/low")
		l.is("results", in["high"].(float64), "summary/score/meanInterval/high")
	} else {
		l.is("results", meta["pass_rate_bounds"].(object)["low"].(float64), "summary/passRateBounds/low")
		l.is("results", meta["pass_rate_bounds"].(object)["high"].(float64), "summary/passRateBounds/high")
	}
	for _, name := range []string{"inputTokens", "outputTokens", "costUsd"} {
		l.is("results", meta["usage"].(object)[name].(float64), "summary/usage/"+name)
		for _, role := range []string{"agent", "judges"} {
			l.is("results", meta["usage_by_role"].(object)[role].(object)[name].(float64), "summary/usageByRole/"+role+"/"+name)
		}
	}
	for i := range l.len("summary/metrics") {
		at := fmt.Sprintf("summary/metrics/%d", i)
		m, ok := doc["metrics"].(object)[l.text(at+"/name")].(object)
		if ok {
			l.is("results", m["threshold"].(float64), at+"/threshold")
			l.is("results", m["weight"].(float64), at+"/weight")
		}
		l.maybe("results", m["value"], at+"/value")
	}
	t := doc["trigger_metrics"].(object)
	for _, name := range []string{"precision", "recall", "f1", "accuracy"} {
		l.near("results", t[name].(float64), 0.5e-4, "summary/triggers/"+name) // four digits
	}
	for _, name := range []string{"passed", "failed", "errors", "timeouts"} {
		l.is("results", meta["trigger_trials"].(object)[name].(float64), "summary/triggers/trials/"+name)
	}
	l.is("results", orZero(t["errors"]), "summary/triggers/trials/errors", "summary/triggers/trials/timeouts")
}

func orZero(x any) float64 {
	n, _ := x.(float64)
	return n
}

func (l *ledger) resultsOf(doc object, role string) {
	tasks := doc["tasks"].([]any)
	usage := object{"input_tokens": 0., "output_tokens": 0.}
	for i := range l.len("tasks") {
		at := fmt.Sprintf("tasks/%d", i)
		if l.text(at+"/role") != role {
			continue
		}
		task := tasks[0].(object)
		tasks = tasks[1:]
		require.Equal(l.t, l.text(at+"/id"), task["test_id"])
		for j, run := range task["runs"].([]any) {
			l.resultsRun(run.(object), fmt.Sprintf("%s/trials/%d", at, j))
		}
		for name, ours := range map[string]string{"input_tokens": "inputTokens", "output_tokens": "outputTokens"} {
			for _, p := range spent(at+"/usageByRole", ours) {
				n, _ := l.number(p)
				usage[name] = usage[name].(float64) + n
				l.mark("results", p)
			}
		}
		st, ok := task["stats"].(object)
		if _, known := l.number(at + "/counts/passRate"); !known {
			require.False(l.t, ok, "%s has no pass rate", at)
			continue
		}
		number := func(name string) float64 { return st[name].(float64) }
		l.is("results", number("pass_rate"), at+"/counts/passRate")
		l.is("results", number("passed_runs"), at+"/counts/passed")
		l.is("results", number("failed_runs"), at+"/counts/failed", at+"/counts/timeouts")
		l.is("results", number("error_runs"), at+"/counts/errors")
		l.is("results", number("total_runs"), at+"/counts/total")
		l.is("results", number("avg_weighted_score"), at+"/score/mean")
		l.is("results", number("ci95_lo"), at+"/score/meanInterval/low")
		l.is("results", number("ci95_hi"), at+"/score/meanInterval/high")
		l.near("results", number("avg_duration_ms"), 1, at+"/durationMs/mean")
	}
	require.Empty(l.t, tasks)
	got := doc["summary"].(object)["usage"].(object)
	for name, want := range usage {
		require.InDelta(l.t, want, got[name], 1e-9, "%s of role %q", name, role)
	}
}

func (l *ledger) resultsRun(run object, at string) {
	l.is("results", run["run_number"].(float64), at+"/trialNum")
	l.is("results", run["duration_ms"].(float64), at+"/durationMs")
	require.InDelta(l.t, 1+l.len(at+"/attempts"), run["attempts"], 0)
	for i := range l.len(at + "/graders") {
		g := fmt.Sprintf("%s/graders/%d", at, i)
		v := run["validations"].(object)[l.text(g+"/name")].(object)
		l.is("results", v["score"].(float64), g+"/score")
		l.is("results", v["weight"].(float64), g+"/weight")
		l.is("results", v["duration_ms"].(float64), g+"/durationMs")
	}
	if l.known(at + "/spent") {
		u := run["session_digest"].(object)["usage"].(object)
		l.is("results", u["input_tokens"].(float64), spent(at+"/spent", "inputTokens")...)
		l.is("results", u["output_tokens"].(float64), spent(at+"/spent", "outputTokens")...)
	}
}

// junitSuite is a testsuite of JUnit XML.
type junitSuite struct {
	Name     string  `xml:"name,attr"`
	Tests    float64 `xml:"tests,attr"`
	Failures float64 `xml:"failures,attr"`
	Errors   float64 `xml:"errors,attr"`
	Skipped  float64 `xml:"skipped,attr"`
	Property []struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	} `xml:"properties>property"`
	Case []struct {
		Name string  `xml:"name,attr"`
		Time float64 `xml:"time,attr"`
	} `xml:"testcase"`
}

func (s junitSuite) property(name string) string {
	for _, p := range s.Property {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

func (l *ledger) junit(text string) {
	var doc struct {
		Time  float64      `xml:"time,attr"`
		Suite []junitSuite `xml:"testsuite"`
	}
	require.NoError(l.t, xml.Unmarshal([]byte(text), &doc))
	l.near("junit", doc.Time*1000, 1e-6, "summary/durationMs")
	for i := range l.len("tasks") {
		at, s := fmt.Sprintf("tasks/%d", i), doc.Suite[i]
		require.Equal(l.t, "numbers."+l.text(at+"/id"), s.Name)
		l.is("junit", s.Tests, at+"/counts/total")
		l.is("junit", s.Errors, at+"/counts/errors")
		switch l.text(at + "/role") {
		case "":
			l.is("junit", s.Failures, at+"/counts/failed", at+"/counts/timeouts")
			l.is("junit", s.Skipped, at+"/counts/skipped", at+"/counts/cancelled", at+"/counts/needsReview")
		case "baseline": // what an agent cannot do without skills is no failure
			l.is("junit", s.Skipped, at+"/counts/failed", at+"/counts/timeouts", at+"/counts/skipped",
				at+"/counts/cancelled", at+"/counts/needsReview")
		}
		l.maybe("junit", s.property("score"), at+"/score/mean")
		l.maybe("junit", s.property("pass_rate"), at+"/counts/passRate")
		l.maybe("junit", s.property("pass_rate_low"), at+"/counts/passRateBounds/low")
		l.maybe("junit", s.property("pass_rate_high"), at+"/counts/passRateBounds/high")
		l.maybe("junit", s.property("cost_usd"), at+"/usage/costUsd")
		l.maybe("junit", s.property("self_reported_passes"), at+"/selfReported")
		if s.property("tokens") != "" {
			tokens, err := strconv.ParseFloat(s.property("tokens"), 64)
			require.NoError(l.t, err)
			l.is("junit", tokens, at+"/usage/inputTokens", at+"/usage/outputTokens")
		}
		for j, c := range s.Case {
			l.near("junit", c.Time*1000, 1e-6, fmt.Sprintf("%s/trials/%d/durationMs", at, j))
		}
	}
	run := doc.Suite[l.len("tasks")]
	l.maybe("junit", run.property("cost_usd"), "summary/usage/costUsd")
	l.is("junit", l.parsed(run.property("tokens")), "summary/usage/inputTokens", "summary/usage/outputTokens")
	for i := range l.len("summary/metrics") {
		if n, _ := l.number(fmt.Sprintf("summary/metrics/%d/threshold", i)); n > 0 {
			run.Tests--
		}
	}
	require.Zero(l.t, run.Tests, "a testcase for each metric with a threshold")
}

func (l *ledger) parsed(s string) float64 {
	l.t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	require.NoError(l.t, err)
	return n
}

// html holds the data of the page, which rounds scores and costs to a millionth.
func (l *ledger) html(text string) {
	_, text, _ = strings.Cut(text, `<script type="application/json" id="run">`)
	text, _, _ = strings.Cut(text, "</script>")
	doc := l.decode(text)
	run, trials := doc["run"].(object), doc["trials"].(object)
	require.Equal(l.t, l.get("summary"), run["summary"])
	for p := range l.shownByPage() {
		l.mark("html", p)
	}
	l.tiles(run)
	for _, name := range countNames {
		l.is("html", orZero(run["counted"].(object)[name]), "summary/"+name)
		l.is("html", orZero(run["countedTrials"].(object)[name]), "summary/trials/"+name)
	}
	n := 0
	column := func(name string, at string) {
		got := trials[name].([]any)[n].(float64)
		if _, known := l.number(at); !known {
			require.InDelta(l.t, -1, got, 0, "%s: %s", name, at)
			return
		}
		l.near("html", got, 1e-6, at)
	}
	for i, raw := range doc["tasks"].([]any) {
		at, task := fmt.Sprintf("tasks/%d", i), raw.(object)
		require.Equal(l.t, l.text(at+"/id"), task["id"])
		for _, name := range countNames {
			l.is("html", orZero(task["counts"].(object)[name]), at+"/counts/"+name)
		}
		for name, path := range map[string]string{
			"rate": "counts/passRate", "score": "score/mean", "cost": "usage/costUsd",
			"totalTrials": "totalTrials", "firstTrial": "firstTrial", "timeoutMs": "timeoutMs", "passThreshold": "passThreshold",
		} {
			l.maybe("html", task[name], at+"/"+path)
		}
		medians, _ := task["medians"].(object)
		l.maybe("html", medians["ms"], at+"/durationMs/median")
		if _, ok := l.number(at + "/score/median"); ok { // while trials wait, the task has none
			l.maybe("html", medians["score"], at+"/score/median")
		}
		if tokens, ok := task["tokens"].(float64); ok {
			l.is("html", tokens, at+"/usage/inputTokens", at+"/usage/outputTokens")
		}
		for name, path := range map[string]string{
			"interval": "counts/passRateInterval", "bounds": "counts/passRateBounds",
			"scoreInterval": "score/meanInterval",
		} {
			in, _ := task[name].(object)
			l.maybe("html", in["low"], at+"/"+path+"/low")
			l.maybe("html", in["high"], at+"/"+path+"/high")
		}
		tools, _ := task["tools"].(object)
		for _, name := range []string{"selection", "params", "overall"} {
			l.maybe("html", tools[name], at+"/tools/"+name)
		}
		curve, _ := task["passK"].([]any)
		for k, p := range curve {
			for _, name := range []string{"k", "passAtK", "passHatK"} {
				l.is("html", p.(object)[name].(float64), fmt.Sprintf("%s/passK/%d/%s", at, k, name))
			}
		}
		reasons, _ := task["reasons"].([]any)
		for k, why := range reasons {
			l.is("html", why.(object)["trials"].(float64), fmt.Sprintf("%s/reasons/%d/trials", at, k))
		}
		for j := range l.len(at + "/trials") {
			trial := fmt.Sprintf("%s/trials/%d", at, j)
			column("num", trial+"/trialNum")
			column("score", trial+"/score")
			column("ms", trial+"/durationMs")
			require.InDelta(l.t, 1+l.len(trial+"/attempts"), trials["tries"].([]any)[n], 0)
			tokens, usd := -1., -1.
			if l.known(trial + "/spent") {
				tokens, usd = 0, 0
				for _, name := range []string{"inputTokens", "outputTokens", "costUsd"} {
					for _, p := range spent(trial+"/spent", name) {
						x, ok := l.number(p)
						if ok {
							l.mark("html", p)
						}
						if name == "costUsd" {
							usd += x
						} else {
							tokens += x
						}
					}
				}
			}
			require.InDelta(l.t, tokens, trials["tokens"].([]any)[n], 1e-9)
			require.InDelta(l.t, usd, trials["cost"].([]any)[n], 1e-6)
			n++
		}
	}
}

// pageShows are the numbers of the summary that the scripts of the page read.
var pageShows = regexp.MustCompile(`^summary/((trials/|groups\[\]/)?(passRate|passRateInterval/.*|passRateBounds/.*)|score/mean|score/meanInterval/.*|usage/.*|usageByRole/.*|` +
	`flaky|tools/.*|groups\[\]/tools/.*|metrics\[\]/(value|threshold)|groups\[\]/total|baseline/(passRate|score)/.*|triggers/(accuracy|precision|recall|f1).*|calibrations\[\]/.*)$`)

// shownByPage returns the paths of the summary's numbers that the page shows.
func (l *ledger) shownByPage() map[string]bool {
	paths := map[string]bool{}
	for _, p := range l.numbers() {
		if pageShows.MatchString(p) {
			paths[p] = true
		}
	}
	return paths
}

func (l *ledger) history(doc object) {
	run := doc["runs"].([]any)[0].(object)
	for _, name := range []string{"inputTokens", "outputTokens", "costUsd"} {
		l.is("history", run["usage"].(object)[name].(float64), "summary/usage/"+name)
	}
	tasks := map[string]object{}
	for _, raw := range doc["tasks"].([]any) {
		tasks[raw.(object)["id"].(string)] = raw.(object)
	}
	for i := range l.len("tasks") {
		at := fmt.Sprintf("tasks/%d", i)
		task := tasks[l.text(at+"/id")]
		if l.text(at+"/role") != "" {
			require.Nil(l.t, task)
			continue
		}
		for _, name := range countNames {
			l.is("history", orZero(task["runs"].([]any)[0].(object)["trials"].(object)[name]), at+"/counts/"+name)
		}
		l.is("history", task["passed"].(float64), at+"/counts/passed")
		l.is("history", task["counted"].(float64), at+"/counts/passed", at+"/counts/failed", at+"/counts/timeouts")
	}
}

// metrics checks the metrics, which describe the run as it ended: reviews are not trials.
func (l *ledger) metrics(samples map[string]float64) {
	for role, by := range map[string]string{"agent": "agent", "judges": "judge"} {
		of := "summary/usageByRole/" + role
		l.is("metrics", samples[fmt.Sprintf("waza_tokens_total{by=%q,direction=%q}", by, "input")], of+"/inputTokens")
		l.is("metrics", samples[fmt.Sprintf("waza_tokens_total{by=%q,direction=%q}", by, "output")], of+"/outputTokens")
		l.is("metrics", samples[fmt.Sprintf("waza_cost_usd_total{by=%q}", by)], of+"/costUsd")
	}
	for name, verdict := range map[string]string{
		"passed": "passed", "failed": "failed", "errors": "error", "timeouts": "timeout", "cancelled": "cancelled",
		"skipped": "skipped", "needsReview": "needs_review",
	} {
		var paths []string
		for i := range l.len("tasks") {
			paths = append(paths, fmt.Sprintf("tasks/%d/counts/%s", i, name))
		}
		l.is("metrics", samples[fmt.Sprintf("waza_trials_total{verdict=%q}", verdict)], paths...)
	}
	var totals, durations []string
	for i := range l.len("tasks") {
		totals = append(totals, fmt.Sprintf("tasks/%d/counts/total", i))
		for j := range l.len(fmt.Sprintf("tasks/%d/trials", i)) {
			durations = append(durations, fmt.Sprintf("tasks/%d/trials/%d/durationMs", i, j))
		}
	}
	l.is("metrics", samples["waza_trial_duration_seconds_count"], totals...)
	l.near("metrics", math.Round(samples["waza_trial_duration_seconds_sum"]*1000), 1e-9, durations...)
}
