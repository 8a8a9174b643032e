// Package spreadsheet writes a run as CSV, with a row per trial. Call [Write] for the file and
// [Columns] for its columns.
package spreadsheet

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/report"
)

// A Column is a column of the CSV format.
type Column struct {
	Name string
	// Doc describes the column in one sentence.
	Doc   string
	value func(*row) string
}

// A row holds the data for the columns of a row.
type row struct {
	run  *record.Run
	task *record.TaskRef
	t    *record.Trial // nil for a task whose trials are lost
	// damage describes the damage of the run's record; empty without damage.
	damage string
}

// mostReason is the most characters of a reason in a cell.
const mostReason = 1000

// Columns returns the columns, in order. The caller owns the slice.
func Columns() []Column {
	return []Column{
		{"run_id", "Id of the run.", func(c *row) string { return c.run.RunID }},
		{"suite", "Name of the suite.", func(c *row) string { return c.run.Suite.Name }},
		{"task_id", "Id of the task.", func(c *row) string { return c.task.ID }},
		{"task_name", "Name of the task.", func(c *row) string { return c.task.Name }},
		{"role", "baseline or trigger; empty for a task of the suite.", func(c *row) string { return string(c.task.Role) }},
		{"tags", "Tags of the task, separated by semicolons.", func(c *row) string { return strings.Join(c.task.Tags, ";") }},
		{"trial", "Number of the trial.", ofTrial(func(c *row) string { return strconv.Itoa(c.t.TrialNum) })},
		{
			"verdict", "passed, failed, error, timeout, cancelled, skipped or needs_review.",
			ofTrial(func(c *row) string { return string(c.t.Verdict) }),
		},
		{"score", "Score, 0 to 1; 0 for a timeout. Empty if no grader gave one.", ofTrial(func(c *row) string {
			if s := report.ScoreOf(c.t); s != nil {
				return number(*s)
			}
			return ""
		})},
		{"started_at", "Start of the trial, in UTC.", ofTrial(func(c *row) string {
			if c.t.StartedAt.IsZero() {
				return ""
			}
			return c.t.StartedAt.UTC().Format(time.RFC3339Nano)
		})},
		{
			"duration_ms", "Duration of the trial, including all attempts and graders. Empty if unknown, as are the next two.",
			ofTrial(func(c *row) string { return timeOf(c.t, c.t.DurationMS) }),
		},
		{"executor_ms", "Duration of the executor in the attempt that counts.", ofTrial(func(c *row) string { return timeOf(c.t, c.t.ExecutorMS) })},
		{"startup_ms", "Time before that until the agent was ready.", ofTrial(func(c *row) string { return timeOf(c.t, c.t.StartupMS) })},
		{
			"ended_early", "true if waza ended the agent because its answer was decided; times and tokens are those until then.",
			ofTrial(func(c *row) string {
				if c.t.EndedEarly {
					return "true"
				}
				return ""
			}),
		},
		{"attempts", "Number of attempts.", ofTrial(func(c *row) string { return strconv.Itoa(len(c.t.Attempts) + 1) })},
		{
			"input_tokens", "Tokens read in all attempts, by agent and judges; empty if nobody counted them.",
			usage(totalOf, func(u *record.Usage) string { return integer(u.InputTokens) }),
		},
		{"output_tokens", "Tokens written.", usage(totalOf, func(u *record.Usage) string { return integer(u.OutputTokens) })},
		{"total_tokens", "Tokens in total.", usage(totalOf, func(u *record.Usage) string { return integer(u.Total()) })},
		{"cost_usd", "Their cost in US dollars; empty if unknown.", usage(totalOf, dollarsOf)},
		{"judge_tokens", "The judges' part of all tokens.", usage(judgesOf, func(u *record.Usage) string { return integer(u.Total()) })},
		{"judge_cost_usd", "The judges' part of the cost.", usage(judgesOf, dollarsOf)},
		{"executor", "Executor of the trial.", func(c *row) string { return c.run.Config.Executor }},
		{"agent", "Agent that the executor drove.", func(c *row) string { return c.run.Config.Agent }},
		{"model", "Requested model.", func(c *row) string { return c.run.ModelOf(c.task) }},
		{"cell", "Name of the cell of the matrix, if there is a matrix.", func(c *row) string {
			if c.task.Cell == nil {
				return ""
			}
			return c.task.Cell.Name
		}},
		{"failed_graders", "Names of the graders that did not pass, separated by semicolons.", ofTrial(failedGraders)},
		{"reason", "Reason why the trial did not pass, 1,000 characters at most.", ofTrial(func(c *row) string {
			line, message := report.Explain(c.t, c.run.RunID)
			return text.ClipRunes(cmp.Or(message, line), mostReason-1)
		})},
		{"cached_from", "Id of the earlier run that executed the trial, if it was reused.", ofTrial(func(c *row) string {
			if c.t.Cached == nil {
				return ""
			}
			return c.t.Cached.RunID
		})},
		{"hash", "Hash of the trial's inputs: the same hash means the same question.", ofTrial(func(c *row) string { return c.t.Hash })},
		{
			"tool_selection", "Tool selection score, 0 to 1; empty if no tool calls are expected.",
			tools(func(s *record.TrialTools) *float64 { return &s.Selection }),
		},
		{
			"tool_arguments", "Share of the expected arguments that are right; empty if none are listed.",
			tools(func(s *record.TrialTools) *float64 { return s.Params }),
		},
		{"tool_score", "Mean of both, or the first if the second is empty.", tools(func(s *record.TrialTools) *float64 { return &s.Overall })},
		{"record_damage", "Damage of the run's record, the same in each row; empty without damage.", func(c *row) string { return c.damage }},
		{"suspicious", "Suspicious moves in a trial that passed, separated by semicolons; empty for others.", ofTrial(func(c *row) string {
			return text.ClipRunes(strings.Join(report.SuspicionTexts(c.t), "; "), mostReason-1)
		})},
		{"sandbox", "Sandboxes of the run's trials; empty in records of versions without them.", func(c *row) string {
			if c.run.Sandbox == nil {
				return ""
			}
			return c.run.Sandbox.String()
		}},
		{"tier", "Tier of the trial's sandbox; empty where the sandbox is unknown.", ofTrial(func(c *row) string {
			if c.run.Sandbox == nil {
				return ""
			}
			return string(cmp.Or(c.t.Tier, c.run.Sandbox.Tier))
		})},
		{"self_reported", "Graders that passed on tool calls that only the agent says it made, separated by semicolons.", ofTrial(func(c *row) string {
			var names []string
			for i := range c.t.Graders {
				if g := &c.t.Graders[i]; g.SelfReported && g.Passed {
					names = append(names, g.Name)
				}
			}
			return strings.Join(names, ";")
		})},
	}
}

// ofTrial returns a column function for a value of the trial; the cell is empty without a trial.
func ofTrial(value func(*row) string) func(*row) string {
	return func(c *row) string {
		if c.t == nil {
			return ""
		}
		return value(c)
	}
}

// timeOf formats a time of a trial; empty if its times are unknown.
func timeOf(t *record.Trial, milliseconds int64) string {
	if t.Untimed {
		return ""
	}
	return integer(milliseconds)
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }

func totalOf(l *record.Ledger) *record.Usage { return l.Total() }

func judgesOf(l *record.Ledger) *record.Usage {
	if l == nil {
		return nil
	}
	return l.Judges
}

func dollarsOf(u *record.Usage) string {
	if u.CostUSD == 0 {
		return ""
	}
	return number(u.CostUSD)
}

// usage returns a column function for a value of the trial's usage; the cell is empty if the
// usage is unknown.
func usage(of func(*record.Ledger) *record.Usage, value func(*record.Usage) string) func(*row) string {
	return ofTrial(func(c *row) string {
		u := of(c.t.Ledger())
		if u == nil {
			return ""
		}
		return value(u)
	})
}

// tools returns a column function for a tool score.
func tools(value func(*record.TrialTools) *float64) func(*row) string {
	return ofTrial(func(c *row) string {
		if c.t.Tools == nil {
			return ""
		}
		if v := value(c.t.Tools); v != nil {
			return number(*v)
		}
		return ""
	})
}

func failedGraders(c *row) string {
	var names []string
	for i := range c.t.Graders {
		if g := &c.t.Graders[i]; !g.Passed && !g.NeedsReview && !g.Calibrates() {
			names = append(names, g.Name)
		}
	}
	return strings.Join(names, ";")
}

// Write writes a header and a row for each ended trial, in the format of RFC 4180 and in UTF-8. If
// the record of the run is damaged, each task without trials has a row without their values; a
// record without tasks has one row.
func Write(w io.Writer, h record.Handle) error {
	out := csv.NewWriter(bufio.NewWriterSize(w, 64<<10))
	out.UseCRLF = true
	columns := Columns()
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.Name
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	rec := h.Record()
	if _, err := h.Results(); err != nil { // so that damage and trials need no further reading
		return err
	}
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	from := row{run: rec, task: &record.TaskRef{}}
	if damage != nil {
		from.damage = damage.String()
	}
	write := func() error {
		for i := range columns {
			cells[i] = cell(columns[i].value(&from))
		}
		return out.Write(cells)
	}
	written := make([]bool, len(rec.Tasks))
	err = h.Outcomes(func(task int, t *record.Trial, _ int64) error {
		written[task], from.task, from.t = true, &rec.Tasks[task], t
		return write()
	})
	from.t = nil
	if damage != nil && len(rec.Tasks) == 0 && err == nil {
		err = write()
	}
	for i := range rec.Tasks {
		if damage != nil && !written[i] && err == nil {
			from.task = &rec.Tasks[i]
			err = write()
		}
	}
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// lineFeeds returns the replacer of the ends of lines. Creating it takes longer than the rest of a
// cell.
var lineFeeds = sync.OnceValue(func() *strings.Replacer { return strings.NewReplacer("\r\n", "\n", "\r", "\n") })

// cell makes a text safe in a spreadsheet. A text that starts like a formula gets an apostrophe,
// because spreadsheets would compute it; they do not show the apostrophe. Lines end with a line
// feed alone; control characters and invalid UTF-8 become �. Commands of CI systems are
// escaped, except for a :: at the start of the cell.
func cell(s string) string {
	if isPlain(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "�")
	if strings.Contains(s, "\r") {
		s = lineFeeds().Replace(s)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '�'
		}
		return r
	}, s)
	s = report.InertRest(s)
	if s == "" {
		return s
	}
	for _, start := range []string{"=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(strings.TrimLeft(s, " "), start) {
			return "'" + s
		}
	}
	return s
}

// isPlain reports whether a text needs no check, as most cells: it is ASCII without control
// characters and #, and starts with a letter or a digit.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '#' {
			return false
		}
	}
	return s == "" || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z' || '0' <= s[0] && s[0] <= '9'
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
