//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// wordsReport is what waza prints of the routing of testdata/suites/routing without a model.
const wordsReport = `Routing, over 20 tasks: accuracy 85 % (62–97 %), 2 trials rerouted
Client    Expected  Took  Right  Precision  Recall  F1
calendar  4         4     4      1.00       1.00    1.00
home      3         3     2      0.67       0.67    0.67
music     5         4     4      1.00       0.80    0.89
notebook  6         5     5      1.00       0.83    0.91
all       18        16    15     0.94       0.83    0.88

Expected \ took  calendar  home  music  notebook  nobody
calendar         4         ·     ·      ·         ·
home             ·         2     ·      ·         ·
music            ·         ·     3      ·         1
notebook         ·         1     ·      5         ·
home + music     ·         ·     1      ·         ·
nobody           ·         ·     ·      ·         3

3 misroutes
jot, trial 1: expected notebook, taken by home: Its description shares words with the message: door
louder, trial 1: expected music, taken by nobody: no word of the message is in the description of a client
evening, trial 1: expected home + music, taken by music: Its description shares words with the message: album, play
`

// modelReport is the same with a model, which is wrong about podcasts and the weather and
// needs a rejection to find who takes the meetings of next year.
const modelReport = `Routing, over 20 tasks: accuracy 90 % (68–99 %), 2 trials rerouted
Client    Expected  Took  Right  Precision  Recall  F1
calendar  4         5     4      0.80       1.00    0.89
home      3         4     3      0.75       1.00    0.86
music     5         4     4      1.00       0.80    0.89
notebook  6         6     6      1.00       1.00    1.00
all       18        19    17     0.89       0.94    0.92

Expected \ took  calendar  home  music  notebook  home + music  nobody
calendar         4         ·     ·      ·         ·             ·
home             ·         2     ·      ·         ·             ·
music            ·         1     3      ·         ·             ·
notebook         ·         ·     ·      6         ·             ·
home + music     ·         ·     ·      ·         1             ·
nobody           1         ·     ·      ·         ·             2

2 misroutes
podcast, trial 1: expected music, taken by home: I would choose home
weather, trial 1: expected nobody, taken by calendar: I would choose calendar
`

// routingModel chooses among the clients of testdata/suites/routing.
func routingModel(t *testing.T) *runnertest.Model {
	choices := []struct{ word, client string }{
		{"idea", "notebook"}, {"milk", "notebook"}, {"paint", "notebook"}, {"code", "notebook"},
		{"dentist", "calendar"}, {"birthday", "calendar"}, {"cancel", "calendar"}, {"call", "calendar"}, {"oslo", "calendar"},
		{"song", "music"}, {"volume", "music"}, {"louder", "music"}, {"album", "music home"},
		{"lights", "home"}, {"heating", "home"}, {"podcast", "home"},
	}
	return runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		var q struct {
			Message  string
			Rejected []struct{ Client string } `json:"rejected_by"`
		}
		if json.Unmarshal([]byte(a.Prompt), &q) != nil {
			return runnertest.Answer{Status: 400}
		}
		message, clients := strings.ToLower(q.Message), []string{}
		for _, c := range choices {
			if strings.Contains(message, c.word) {
				clients = strings.Fields(c.client)
			}
		}
		switch {
		case strings.Contains(message, "next year") && len(q.Rejected) == 0:
			clients = []string{"calendar"}
		case strings.Contains(message, "next year"):
			clients = []string{"notebook"}
		case strings.Contains(message, "garage") && len(q.Rejected) == 0:
			clients = []string{"home"}
		}
		return runnertest.Answer{Tool: "route_message", Arguments: map[string]any{
			"clients": clients, "reason": "I would choose " + strings.Join(clients, " and "),
		}, InputTokens: 300, OutputTokens: 20}
	})
}

// Twenty messages find their clients by words and by a model: waza reports precision, recall
// and each misroute, and all places that show them agree.
func TestRoutingSuite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		args       func(t *testing.T) (env, args []string)
	}{
		{"words", wordsReport, func(*testing.T) (env, args []string) { return nil, nil }},
		{"model", modelReport, func(t *testing.T) (env, args []string) {
			return []string{"OPENAI_BASE_URL=" + routingModel(t).URL, "OPENAI_API_KEY=key"}, []string{"--model", "router-model"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			env, args := c.args(t)
			waza := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("waza", args...)
				cmd.Env = append(append(os.Environ(), env...), "WAZA_STATE="+state)
				out, err := cmd.Output()
				if args[0] == "run" {
					require.Equal(t, 1, cmd.ProcessState.ExitCode(), "misroutes are failures: %s", out)
				} else {
					require.NoError(t, err, "%v: %s", args, out)
				}
				return string(out)
			}
			table := waza(append([]string{"run", filepath.Join(filepath.FromSlash(repositoryRoot), "testdata", "suites", "routing")}, args...)...)
			_, part, _ := strings.Cut(table, "\nRouting, ")
			part, _, _ = strings.Cut("Routing, "+part, "\n\n1")
			require.Equal(t, c.want, part+"\n", "%s", table)
			id := regexp.MustCompile(`Run (\S+),`).FindStringSubmatch(table)[1]
			routingAgrees(t, id, waza, part)
		})
	}
}

// routingAgrees holds what each place shows against the JSON of the run, and that against
// its trials.
func routingAgrees(t *testing.T, id string, waza func(...string) string, printed string) {
	t.Helper()
	require.Contains(t, waza("runs", "show", id), printed)
	var res struct {
		Summary record.Summary
		Tasks   []struct {
			ID     string
			Trials []record.Trial
		}
	}
	require.NoError(t, json.Unmarshal([]byte(waza("runs", "show", id, "--json")), &res))
	r := res.Summary.Routing

	want, right := map[string]*[3]int{}, 0
	for _, task := range res.Tasks {
		routing := task.Trials[0].Routing
		require.NotNil(t, routing.Expected, task.ID)
		took := []string{}
		for _, e := range task.Trials[0].Transcript {
			if e.Type == record.EntrySkill {
				took = append(took, e.Text)
			}
		}
		slices.Sort(took)
		require.Equal(t, took, routing.Took, "those that took it are the skills")
		same := slices.Equal(routing.Expected, took)
		require.Equal(t, same, task.Trials[0].Verdict == record.Passed)
		missed := slices.ContainsFunc(r.Misroutes, func(m record.Misroute) bool {
			return m.TaskID == task.ID && m.TrialNum == 1 && slices.Equal(m.Took, took) &&
				slices.Equal(m.Expected, routing.Expected) && m.Reason == routing.Reason
		})
		require.Equal(t, !same, missed, "each misroute is listed: %s", task.ID)
		if same {
			right++
		}
		for _, name := range slices.Concat(routing.Expected, took) {
			if want[name] == nil {
				want[name] = &[3]int{}
			}
		}
		for name, n := range want {
			switch e, g := slices.Contains(routing.Expected, name), slices.Contains(took, name); {
			case e && g:
				n[0]++
			case g:
				n[1]++
			case e:
				n[2]++
			}
		}
	}
	require.Len(t, res.Tasks, 20)
	require.InDelta(t, float64(right)/20, *r.Accuracy, 1e-12)
	var all [3]int
	clients := []string{}
	for _, c := range r.Clients {
		clients = append(clients, c.Client)
		matchesAre(t, *want[c.Client], &c.ClientMatches)
		for i, n := range want[c.Client] {
			all[i] += n
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), clients)
	matchesAre(t, all, &r.ClientMatches)

	var results struct {
		Metadata struct{ Routing record.RoutingResult }
	}
	require.NoError(t, json.Unmarshal([]byte(waza("runs", "export", id, "--format", "results")), &results))
	require.Equal(t, *r, results.Metadata.Routing)
	page := waza("runs", "export", id, "--format", "html")
	_, data, _ := strings.Cut(page, `<script type="application/json" id="run">`)
	data, _, _ = strings.Cut(data, "</script>")
	var shown struct {
		Run struct{ Summary record.Summary }
	}
	require.NoError(t, json.Unmarshal([]byte(data), &shown))
	require.Equal(t, r, shown.Run.Summary.Routing)
	markdown := waza("runs", "export", id, "--format", "markdown")
	for text, line := range map[string]string{
		printed:  "%s %d %d %d %s %s %s",
		markdown: "| `%s` | %d | %d | %d | %s | %s | %s |",
	} {
		squeezed := regexp.MustCompile(` +`).ReplaceAllString(text, " ")
		for _, c := range r.Clients {
			n := want[c.Client]
			require.Contains(t, squeezed,
				fmt.Sprintf(line, c.Client, n[0]+n[2], n[0]+n[1], n[0], figure.Score(*c.Precision), figure.Score(*c.Recall), figure.Score(*c.F1)))
		}
		require.Contains(t, text, fmt.Sprintf("accuracy %s (%s), %d trials rerouted", figure.Percent(*r.Accuracy),
			figure.PercentInterval(r.AccuracyInterval.Low, r.AccuracyInterval.High), r.Rerouted))
		for _, m := range r.Misroutes {
			require.Contains(t, strings.ReplaceAll(text, "`", ""), m.TaskID+", trial 1: expected ")
		}
	}
	for _, c := range r.Confusion {
		cell := func(names []string) string {
			if len(names) == 0 {
				return "nobody"
			}
			return strings.Join(names, " + ")
		}
		require.Equal(t, strconv.Itoa(c.Trials), confusionCell(t, printed, cell(c.Expected), cell(c.Took)))
		require.InDelta(t, c.Trials, c.Weight, 1e-12)
	}
}

// matchesAre holds numbers against true positives, false positives and false negatives.
func matchesAre(t *testing.T, n [3]int, m *record.ClientMatches) {
	t.Helper()
	require.Equal(t, n, [3]int{int(math.Round(m.TruePositives)), int(math.Round(m.FalsePositives)), int(math.Round(m.FalseNegatives))})
	tp, fp, fn := float64(n[0]), float64(n[1]), float64(n[2])
	require.InDelta(t, tp/(tp+fp), *m.Precision, 1e-12)
	require.InDelta(t, tp/(tp+fn), *m.Recall, 1e-12)
	require.InDelta(t, 2**m.Precision**m.Recall/(*m.Precision+*m.Recall), *m.F1, 1e-12)
}

// confusionCell is a cell of the printed matrix.
func confusionCell(t *testing.T, table, expected, took string) string {
	t.Helper()
	_, table, _ = strings.Cut(table, "Expected \\ took  ")
	var heads []string
	for i, line := range strings.Split(table, "\n") {
		cells := columnGap.Split(strings.TrimSpace(line), -1)
		if i == 0 {
			heads = cells
			continue
		}
		if cells[0] == expected {
			return cells[1+slices.Index(heads, took)]
		}
	}
	require.Fail(t, "no such row", expected)
	return ""
}
