//go:build unix

package main_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// jsonAlone lists the numbers that only the JSON contains, with the reasons. The JSON is the
// same from run.result, run.export and waza runs show --json. Its summary is the same from
// run.status and in the HTML page.
var jsonAlone = map[string]string{
	`config/.*`: "the request, not a result",
	`tasks\[\]/score/(n|min|max|median|stdDev)`:                             "tables show the mean; recounted",
	`(tasks|summary/groups)\[\]/durationMs/(n|min|max|mean|stdDev|p90|p95)`: "tables show the median; recounted",
	`summary/(groups\[\]/)?score/(n|min|max|median|stdDev)`:                 "tables show the mean; recounted",
	`summary/groups\[\]/score/meanInterval/(low|high)`:                      "the table of cells has no room",
	`summary/groups\[\]/(total|cancelled|skipped)`:                          "tables show values other than 0; recounted",
	`summary/groups\[\]/tasks/.*`:                                           "tables show those that passed; recounted",
	`summary/groups\[\]/(baseline|triggers)/.*`:                             "tables show those of all cells",
	`summary/(groups\[\]/)?baseline/(theseTasks|tasksLikeThese)/.*`:         "tables show the answers in sentences, and the means of the verdict",
	`summary/baseline/trials/.*`:                                            "the sum of the counts of its tasks; recounted",
	`summary/baseline/tasks\[\]/(p|withTrials|withoutTrials)`:               "tables show the class; the counts are those of the tasks",
	`summary/baseline/tasks\[\]/score/(with|without|interval/(low|high))`:   "tables show the gain",
	`summary/triggers/(confusion/.*|prompts|errors|timeouts)`:               "tables show the quotients",
	`summary/triggers/trials/(total|cancelled|skipped)`:                     "recounted",
	`summary/passK\[\]/.*`:                                                  "the page shows those of tasks",
	`tasks\[\]/trials\[\]/(attempts\[\]/)?usage/.*`:                         "of one attempt; outputs show the sum of all; recounted",
	`tasks\[\]/trials\[\]/graders\[\]/details/.*`: "of each grader; the total includes the " +
		"usage of judges; recounted",
	`tasks\[\]/trials\[\]/(attempts\[\]/)?transcript\[\]/atMs`:              "a place in a transcript",
	`tasks\[\]/trials\[\]/(attempts\[\]/)?transcript\[\]/tool/arguments/.*`: "what the agent gave a tool",
	`tasks\[\]/expectedCalls\[\]/arguments/.*`:                              "what the task asks for",
	`tasks\[\]/trials\[\]/(attempts\[\]/)?conditions/.*`:                    "the viewer of the page shows those that say something",
	`tasks\[\]/trials\[\]/attempts\[\]/durationMs`:                          "part of the trial's duration",
	`tasks\[\]/trials\[\]/tools/call`:                                       "names a call of the transcript",
	`tasks\[\]/usageByRole/(agent|judges)/costUsd`:                          "their sum is shown; recounted",
}

// leastPlaces are places that must show a number.
var leastPlaces = map[string][]string{
	"summary/usage/costUsd":                 {"table", "markdown", "junit", "results", "history", "html", "recount"},
	"summary/usage/inputTokens":             {"table", "markdown", "junit", "results", "history", "html", "recount"},
	"summary/usageByRole/judges/costUsd":    {"table", "markdown", "results", "metrics", "html", "recount"},
	"summary/usageByRole/agent/costUsd":     {"table", "markdown", "results", "metrics", "html", "recount"},
	"summary/durationMs":                    {"table", "markdown", "results", "junit", "html", "list", "mcp"},
	"summary/passed":                        {"table", "markdown", "results", "html", "list", "mcp", "recount"},
	"summary/trials/total":                  {"html", "rest", "stream", "list", "mcp", "recount"},
	"summary/trials/passed":                 {"table", "markdown", "html", "list", "mcp", "recount"},
	"tasks[]/durationMs/median":             {"table", "markdown", "html", "recount"},
	"summary/groups[]/durationMs/median":    {"table", "recount"},
	"summary/passRate":                      {"results", "html", "recount"},
	"summary/passRateBounds/high":           {"results", "html", "recount"},
	"summary/score/mean":                    {"results", "html", "recount"},
	"summary/metrics[]/value":               {"table", "markdown", "results", "html", "recount"},
	"summary/groups[]/passRate":             {"table", "markdown", "html", "recount"},
	"summary/groups[]/usage/costUsd":        {"table", "recount"},
	"tasks[]/counts/passed":                 {"table", "markdown", "results", "html", "history", "metrics", "recount"},
	"tasks[]/counts/errors":                 {"table", "markdown", "results", "junit", "html", "history", "metrics", "recount"},
	"tasks[]/counts/timeouts":               {"table", "markdown", "results", "junit", "html", "history", "metrics", "recount"},
	"tasks[]/counts/needsReview":            {"table", "markdown", "junit", "html", "history", "metrics", "recount"},
	"tasks[]/counts/passRate":               {"table", "markdown", "results", "junit", "html", "recount"},
	"tasks[]/counts/passRateBounds/low":     {"table", "markdown", "junit", "html", "recount"},
	"tasks[]/counts/passRateInterval/low":   {"table", "markdown", "html", "recount"},
	"tasks[]/score/mean":                    {"table", "markdown", "results", "junit", "html", "recount"},
	"tasks[]/usage/costUsd":                 {"junit", "html", "recount"},
	"tasks[]/trials[]/score":                {"csv", "html"},
	"tasks[]/trials[]/durationMs":           {"csv", "results", "junit", "html", "metrics"},
	"tasks[]/trials[]/spent/agent/costUsd":  {"csv", "html"},
	"tasks[]/trials[]/spent/judges/costUsd": {"csv", "html"},
}

// requireWalked holds that each number was found somewhere beside the JSON, in one state
// of the run at least.
func requireWalked(t *testing.T, ledgers ...*ledger) {
	t.Helper()
	walked := map[string]map[string]bool{}
	for _, l := range ledgers {
		for _, p := range l.numbers() {
			if walked[p] == nil {
				walked[p] = map[string]bool{}
			}
			maps.Copy(walked[p], l.walked[p])
		}
	}
	used := map[string]bool{}
	reasoned := func(p string) bool {
		for rule := range jsonAlone {
			if regexp.MustCompile("^" + rule + "$").MatchString(p) {
				used[rule] = true
				return true
			}
		}
		return false
	}
	var left []string
	for p, places := range walked {
		if !reasoned(p) && len(places) == 0 || len(places) == 1 && places["recount"] && !reasoned(p) {
			left = append(left, p)
		}
	}
	slices.Sort(left)
	require.Empty(t, left, "in no place beside the JSON, and without a reason")
	require.Len(t, used, len(jsonAlone), "some reason is about no number")
	for p, places := range leastPlaces {
		for _, place := range places {
			require.True(t, walked[p][place], "%s was not found in %s", p, place)
		}
	}
}
