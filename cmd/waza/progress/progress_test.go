package progress

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/cmd/waza/interrupt"
	"waza/runner/record"
	"waza/runner/report"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// exampleProgress is a run of 3 tasks with 4 trials each after ten seconds.
func exampleProgress() *progress {
	rec := &record.Run{Suite: record.SuiteRef{Name: "demo"}, CreatedAt: noon}
	for _, id := range []string{"read", "write", "arithmetic"} {
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: id, Trials: 4})
	}
	p := newProgress(rec, nil)
	p.run.Apply(&record.Event{Type: record.RunStart, Time: noon})
	for n := range 4 {
		p.run.Apply(&record.Event{Type: record.TrialStart, Time: at(0), TaskNum: 1, TaskID: "read", TrialNum: n + 1, TotalTrials: 4})
	}
	for n := range 4 {
		p.run.Apply(&record.Event{Type: record.TrialComplete, Time: at(1), TaskNum: 1, TaskID: "read", TrialNum: n + 1, Verdict: record.Passed})
	}
	p.run.Apply(&record.Event{Type: record.TaskComplete, Time: at(1), TaskNum: 1, TaskID: "read", Verdict: record.Passed})
	p.run.Apply(&record.Event{Type: record.TrialStart, Time: at(4), TaskNum: 3, TaskID: "arithmetic", TrialNum: 2, TotalTrials: 4})
	p.run.Apply(&record.Event{Type: record.TrialStart, Time: at(6), TaskNum: 2, TaskID: "write", TrialNum: 1, TotalTrials: 4})
	p.run.Apply(&record.Event{Type: record.TrialStart, Time: at(9), TaskNum: 2, TaskID: "write", TrialNum: 3, TotalTrials: 4})
	return p
}

func drawn(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text(false) + "\n")
	}
	return b.String()
}

func TestProgressLines(t *testing.T) {
	t.Parallel()
	p := exampleProgress()
	require.Equal(t, `demo  █████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░  4/12 trials  10.0 s, about 20.0 s left
1 of 3 tasks passed
  write  trials 1, 3 of 4  4.0 s
  arithmetic  trial 2 of 4  6.0 s
`, drawn(p.lines(at(10), 120, 24)))

	p.run.Apply(&record.Event{Type: record.TaskComplete, TaskNum: 2, TaskID: "write", Verdict: record.Failed})
	p.run.Apply(&record.Event{Type: record.TaskComplete, TaskNum: 3, TaskID: "arithmetic", Verdict: record.Errored})
	p.interrupted(interrupt.Cancel, at(10))
	require.Equal(t, `demo  4/12 trials  10.0 s, about 20.0 …
1 of 3 tasks passed, 1 failed, 1 in er…
  write  trials 1, 3 of 4  4.0 s
  arithmetic  trial 2 of 4  6.0 s
interrupted: cancelling running trials…
`, drawn(p.lines(at(10), 40, 24)))
	require.Equal(t, `demo  4/12 trials  10.0 s, about 20.0 …
1 of 3 tasks passed, 1 failed, 1 in er…
  and 2 more
interrupted: cancelling running trials…
`, drawn(p.lines(at(10), 40, 5)))
}

// A run that decides a question needs only some of its trials, so its bar shows the used share of the budget.
func TestProgressOfAQuestion(t *testing.T) {
	t.Parallel()
	rec := &record.Run{
		Suite: record.SuiteRef{Name: "demo"}, CreatedAt: noon, Question: &record.DecideQuestion{A: "small", B: "large"},
		Tasks: []record.TaskRef{{ID: "x[small]", Trials: 100, Paired: true}, {ID: "x[large]", Trials: 100, Paired: true}},
	}
	p := newProgress(rec, nil)
	p.run.Apply(&record.Event{Type: record.RunStart, Time: noon})
	require.Equal(t, `demo  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 trials  10.0 s
0 of 2 tasks passed
`, drawn(p.lines(at(10), 120, 24)))
	for n := range 2 {
		for i, id := range []string{"x[small]", "x[large]"} {
			p.run.Apply(&record.Event{Type: record.TrialComplete, Time: at(1), TaskNum: i + 1, TaskID: id, TrialNum: n + 1, Verdict: record.Passed})
		}
	}
	budget := 20.0
	p.run.Apply(&record.Event{Type: record.DecideProgress, Deciding: &record.DecisionProgress{
		Pairs: 2, MostPairs: 100, Executed: 4, SpentUSD: 5, MaxCost: &budget, Text: "2 of at most 100 pairs: 0.0 points [-100.0, +100.0]; $5.00 of $20.00",
	}})
	require.Equal(t, `demo  ██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  4 trials  10.0 s
0 of 2 tasks passed
2 of at most 100 pairs: 0.0 points [-100.0, +100.0]; $5.00 of $20.00
`, drawn(p.lines(at(10), 120, 24)))
	for n := 2; n < 100; n++ {
		p.run.Apply(&record.Event{Type: record.TrialComplete, Time: at(9), TaskNum: 1, TaskID: "x[small]", TrialNum: n + 1, Verdict: record.Skipped})
	}
	require.Contains(t, drawn(p.lines(at(10), 120, 24)), "  4 trials  ")
}

func TestProgressWithoutAnyTrialYet(t *testing.T) {
	t.Parallel()
	p := newProgress(&record.Run{Suite: record.SuiteRef{Name: "a\x1b[2Jb"}, CreatedAt: noon, Tasks: []record.TaskRef{{ID: "x", Trials: 1}}},
		nil)
	require.Equal(t, `a\x1b[2Jb  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0/1 trials  0 ms
0 of 1 task passed
`, drawn(p.lines(noon, 100, 24)))
}

func TestProgressManyTrialsOfOneTask(t *testing.T) {
	t.Parallel()
	p := newProgress(&record.Run{CreatedAt: noon, Tasks: []record.TaskRef{{ID: "x", Trials: 100}}}, nil)
	for n := range 64 {
		p.run.Apply(&record.Event{Type: record.TrialStart, Time: noon, TaskNum: 1, TaskID: "x", TrialNum: n + 1, TotalTrials: 100})
	}
	require.Contains(t, drawn(p.lines(at(1), 80, 24)), "  x  64 trials of 100  1.0 s\n")
}

// The lines fit for any events and on the smallest screen.
func TestProgressFitsAnyScreen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rec := &record.Run{Suite: record.SuiteRef{Name: rapid.String().Draw(t, "suite")}, CreatedAt: noon}
		n := rapid.IntRange(0, 12).Draw(t, "tasks")
		for range n {
			rec.Tasks = append(rec.Tasks, record.TaskRef{Trials: 3, TimeoutMS: rapid.Int64Range(0, 100_000).Draw(t, "timeout")})
		}
		p := newProgress(rec, nil)
		types := []record.EventType{record.TrialStart, record.TrialComplete, record.TaskComplete}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			p.run.Apply(&record.Event{
				Type: rapid.SampledFrom(types).Draw(t, "type"), Time: noon,
				TaskNum: rapid.IntRange(0, n+1).Draw(t, "task"), TaskID: rapid.StringN(0, 60, -1).Draw(t, "id"),
				TrialNum: rapid.IntRange(1, 3).Draw(t, "trial"), TotalTrials: 3,
				Verdict: rapid.SampledFrom([]record.Verdict{record.Passed, record.Failed, record.Errored, record.TimedOut}).Draw(t, "verdict"),
			})
		}
		if step := rapid.IntRange(0, interrupt.Leave).Draw(t, "step"); step > 0 {
			p.interrupted(step, at(5))
		}
		columns, rows := rapid.IntRange(1, 200).Draw(t, "columns"), rapid.IntRange(1, 40).Draw(t, "rows")
		lines := p.lines(at(10), columns, rows)
		require.LessOrEqual(t, len(lines), max(1, rows-1))
		for _, l := range lines {
			require.LessOrEqual(t, l.columns(), max(1, columns-1), "%q", l.text(false))
			require.NotContains(t, l.text(true), "\n")
		}
	})
}

// screen emulates the parts of a terminal that the block needs. It holds lines as they were
// printed and breaks them by its width, as terminals do that reflow when they are resized. The
// cursor is below the last.
type screen struct {
	t       require.TestingT
	lines   []string
	columns int
	hidden  bool
}

func (s *screen) rows(line string) int {
	return max(1, (report.Columns(line)+s.columns-1)/s.columns)
}

func (s *screen) Write(b []byte) (int, error) {
	text := string(b)
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\x1b[?"):
			end := strings.IndexAny(text, "hl")
			if text[:end] == "\x1b[?25" {
				s.hidden = text[end] == 'l'
			}
			text = text[end+1:]
		case strings.HasPrefix(text, "\r\x1b["):
			up, rest, _ := strings.Cut(text[len("\r\x1b["):], "A\x1b[J")
			n, err := strconv.Atoi(up)
			require.NoError(s.t, err)
			s.erase(n)
			text = rest
		default:
			line, rest, ok := strings.Cut(text, "\n")
			require.True(s.t, ok, "a line that does not end: %q", text)
			s.lines = append(s.lines, line)
			text = rest
		}
	}
	return len(b), nil
}

// erase moves the cursor up by that many rows and clears from there. The cursor must not land in
// the middle of a line.
func (s *screen) erase(rows int) {
	for rows > 0 {
		require.NotEmpty(s.t, s.lines, "erased more than there is")
		last := s.lines[len(s.lines)-1]
		rows -= s.rows(last)
		require.GreaterOrEqual(s.t, rows, 0, "erased a part of %q", last)
		s.lines = s.lines[:len(s.lines)-1]
	}
}

// However the terminal is resized between, each drawing replaces the one before
// and does not change the lines above.
func TestBlockIsDrawnInPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &screen{t: t, columns: 80}
		b := &block{
			lines: &lines{verbose: true}, progress: exampleProgress(), screen: s,
			size: func() (int, int) { return s.columns, 24 },
		}
		var above []string
		drawn := 0
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				s.columns = rapid.IntRange(2, 200).Draw(t, "columns")
			case 1:
				b.event(&record.Event{Type: record.Log, Level: "warning", Message: fmt.Sprint("number ", i)})
				above = append(above, fmt.Sprint("warning: number ", i))
				drawn = 0
			case 2:
				b.interrupted(interrupt.Stop, at(10))
				drawn = 5
			default:
				b.draw(at(10))
				drawn = 4
				if b.progress.step > 0 {
					drawn = 5
				}
			}
			require.Len(t, s.lines, len(above)+drawn)
			require.Equal(t, above, append([]string(nil), s.lines[:len(above)]...))
			require.Equal(t, b.shown, s.hidden)
		}
		b.close()
		require.Equal(t, above, append([]string(nil), s.lines...), "the block is gone")
		require.False(t, s.hidden, "the cursor is back")
	})
}

// The bar is full when all is done; the tasks are those of the suite.
func TestProgressWithRoles(t *testing.T) {
	t.Parallel()
	rec := &record.Run{Suite: record.SuiteRef{Name: "demo"}, CreatedAt: noon}
	for _, role := range []record.Role{record.RoleBaseline, record.RoleTask, record.RoleTrigger} {
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: "a", Role: role, Trials: 1})
	}
	p := newProgress(rec, nil)
	for i, task := range rec.Tasks {
		p.run.Apply(&record.Event{Type: record.TrialComplete, TaskNum: i + 1, Role: task.Role, Verdict: record.Passed})
		p.run.Apply(&record.Event{Type: record.TaskComplete, TaskNum: i + 1, TaskID: "a", Role: task.Role, Verdict: record.Passed})
	}
	lines := drawn(p.lines(at(10), 120, 24))
	require.Contains(t, lines, "3/3 trials")
	require.Contains(t, lines, "1 of 1 task passed")
}
