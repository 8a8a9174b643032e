package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const document = "../../docs/statistics.md"

// written returns the rows of the document's table, as cells.
func written(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), tableStart)
	require.True(t, ok)
	table, _, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok)
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
	}
	return rows
}

// The table in the document has a row with the present promise for each present experiment, and
// no row breaks its promise. Counted rows equal a new count.
func TestTableIsOfTheseExperiments(t *testing.T) {
	t.Parallel()
	list := experiments()
	rows := written(t)
	require.Len(t, rows, len(list), "make simulate writes the table")
	for i, e := range list {
		measured, err := strconv.ParseFloat(strings.TrimSuffix(rows[i][3], " %"), 64)
		require.NoError(t, err)
		r := row{e, measured / 100, e.times}
		if e.times == 0 {
			r = measure([]experiment{e}, 1, all)[0]
		}
		require.Equal(t, r.cells(), rows[i])
		require.True(t, r.holds() || e.times == 0, "%v", rows[i])
	}
}

// Runs a few of the experiments with few draws.
func TestPromisesInShort(t *testing.T) {
	t.Parallel()
	some := map[string]float64{
		"early verdict differs/N 10, threshold 0.8, 0 % of trials in error":                                                                                       0.05,
		"early verdict differs/N 20, threshold 0.9, 5 % of trials in error":                                                                                       0.05,
		"pass rate of a task that could stop early/N 20, threshold 0.8, any rate":                                                                                 0.02,
		"mean pass rate over tasks that could stop early/20 tasks of any rate, N 50, threshold 0.8":                                                               0.02,
		"mean score of a task/scores of 0 or 1, 90 % ones; 5 trials":                                                                                              0.02,
		"mean score of a suite/10 tasks of different scores, 3 trials":                                                                                            0.05,
		"difference of pass rates/12 tasks that did not change, 5 trials":                                                                                         0.05,
		"difference of scores/12 tasks that changed by up to ±0.5, 5 trials":                                                                                      0.05,
		"pass rate and score of a suite/40 tasks, 1 trial; all rates 0.5":                                                                                         1,
		"pass rate and score of a suite/300 tasks, 1 trial; all rates 0.99":                                                                                       1,
		"score of a suite with unequal numbers of trials/10 tasks, 1 to 20 trials; rates from 0 to 1":                                                             0.05,
		"win rate/50 tasks, 1 trial; 40 % wins, 20 % ties":                                                                                                        0.05,
		"difference of the suite/40 tasks, 1 trial; all rates 0.5":                                                                                                0.1,
		"difference of the suite/40 tasks, 1 trial; rates from 0 to 1, unchanged; paired":                                                                         0.1,
		"the same within 10 points, at a difference of 10/300 tasks, 1 trial; all rates from 0.5 to 0.6":                                                          0.05,
		"ratio of time, tokens or cost/logarithms spread by 0.5; 10 tasks, 5 trials":                                                                              0.1,
		"kappa/κ 0.80, 50 % pass; 30 trials":                                                                                                                      0.1,
		"false alarm of some task/1 tasks, stopping, N 50, threshold 0.8":                                                                                         0.1,
		"false verdict about the suite/20 tasks, 3 trials with scores":                                                                                            0.04,
		"found: these tasks, which fell from 90 % to 75 %/20 tasks, 50 trials":                                                                                    0.01,
		"found: each of 3 tasks that fell from 95 % to 40 %/20 tasks, 10 trials with stopping, threshold 0.8":                                                     0.01,
		"some cell called worse that is not/12 equal cells, any rates; tasks × trials 10 × 3":                                                                     0.1,
		"some cell called worse that is not/50 equal cells, rate 0.5; tasks × trials 10 × 1":                                                                      0.03,
		"score of the best cell, its interval/12 equal cells, any rates; tasks × trials 10 × 3":                                                                   0.1,
		"score of the best cell, too high by/12 equal cells, any rates; tasks × trials 10 × 3":                                                                    0.1,
		"a cell whose hardest task is in error is the best/3 equal cells, hardest task in error in 1; tasks × trials 10 × 3":                                      0.1,
		"some cell called worse, hardest task in error/3 equal cells, hardest task in error in 1; tasks × trials 10 × 3":                                          0.1,
		"false verdict of a command/12 equal cells, 3 tasks, 5 trials":                                                                                            0.05,
		"exit code 1 without a change/12 equal cells, 3 tasks, 5 trials":                                                                                          0.05,
		"--baseline fails a skill without effect/10 tasks, 5 trials, 50 % pass with and without skills":                                                           0.2,
		"--baseline --undecided fail passes a skill without effect/10 tasks, 5 trials, 50 % pass with and without skills":                                         0.2,
		"--baseline shows that a skill helps/10 tasks, 5 trials, 60 % pass without skills and 90 % with them":                                                     0.05,
		"--baseline fails a command whose skills have no effect/3 suites, 10 tasks, 5 trials, 50 % pass with and without skills":                                  0.1,
		"rate corrected by people/50 of 200 labeled; 67 % pass; judge right about 95 % and 95 %":                                                                  0.1,
		"rate corrected by people/30 of 200 labeled; 90 % pass; judge right about 90 % and 80 %; 10 tasks":                                                        0.1,
		"strength of a model/2 models, 20 tasks × 1; strengths spread by 2":                                                                                       0.1,
		"gate rule fails for a task that did not change/1 trial, 50 % pass":                                                                                       0.1,
		"a subset keeps 95 % of the order of new agents, or is refused/equal tasks; agents × tasks × trials 10 × 20 × 3":                                          0.05,
		"some task wrongly called contradicting/equal tasks; agents × tasks × trials 10 × 20 × 3":                                                                 0.05,
		"error of shrunken rates where they are shown, relative to the rates/logit-normal rates, sd 1.5; tasks × trials 20 × 5":                                   0.02,
		"error of shrunken differences where they are shown, relative to the differences/rates 0.75, one of 20 tasks changes by 50 points; tasks × trials 20 × 5": 0.02,
	}
	for _, e := range experiments() {
		name := e.what + "/" + e.design
		part, ok := some[name]
		if !ok {
			continue
		}
		delete(some, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, broken(measure([]experiment{e}, part, all)))
		})
	}
	require.Empty(t, some)
}

func TestReplaceTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.md")
	require.NoError(t, os.WriteFile(path, []byte("# A\n\n"+tableStart+"\nold\n"+tableEnd+"\nafter\n"), 0o600))
	rows := []row{{experiment{what: "x", design: "d", least: 0.9}, 0.95, 100}, {experiment{what: "y", design: "d"}, 0.5, 0}}
	list := []experiment{rows[0].experiment, rows[1].experiment}
	require.ErrorContains(t, replaceTable(path, list, rows[:1]), "has no row for y, d; measure it, too")
	require.NoError(t, replaceTable(path, list, rows))
	require.NoError(t, replaceTable(path, list, rows[1:]), "the row of x stays")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# A\n\n"+tableStart+"\n\n| what | design | promised | measured | drawn "+
		"|\n|---|---|---|---|---|\n| x | d | ≥ 90.0 % | 95.0 % | 100 |\n| y | d | – | 50.0 % | counted |\n\n"+tableEnd+"\nafter\n",
		string(text))
	require.NoError(t, broken(rows))
	rows[0].share = 0.7
	require.ErrorContains(t, broken(rows), "promise broken: x, d")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorContains(t, replaceTable(path, list, rows), fmt.Sprintf("no table between %q", tableStart))
}
