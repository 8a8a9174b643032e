package report

import (
	"cmp"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"waza/eval/text"
	"waza/runner/record"
)

// CSVColumn is a column of the CSV format.
type CSVColumn struct {
	Name string
	// Doc is one sentence for documents.
	Doc   string
	value func(csvRow) string
}

// csvRow is what the columns of a row are taken from.
type csvRow struct {
	run  *record.Run
	task record.TaskRef
	t    *record.Trial
}

// mostReason bounds the characters of a reason in a cell.
const mostReason = 1000

// CSVColumns returns the columns, in their order. The caller owns the slice.
func CSVColumns() []CSVColumn {
	return []CSVColumn{
		{"run_id", "Id of the run.", func(c csvRow) string { return c.run.RunID }},
		{"suite", "Name of the suite.", func(c csvRow) string { return c.run.Suite.Name }},
		{"task_id", "Id of the task.", func(c csvRow) string { return c.task.ID }},
		{"task_name", "Name of the task.", func(c csvRow) string { return c.task.Name }},
		{"role", "baseline or trigger; empty for a task of the suite.", func(c csvRow) string { return string(c.task.Role) }},
		{"tags", "Tags of the task, separated by semicolons.", func(c csvRow) string { return strings.Join(c.task.Tags, ";") }},
		{"trial", "Number of the trial.", func(c csvRow) string { return strconv.Itoa(c.t.TrialNum) }},
		{"verdict", "passed, failed, error, timeout, cancelled, skipped or needs_review.", func(c csvRow) string { return string(c.t.Verdict) }},
		{"score", "Score, 0 to 1; that of a timeout is 0. Empty when no grader gave one.", func(c csvRow) string {
			if s := ScoreOf(c.t); s != nil {
				return number(*s)
			}
			return ""
		}},
		{"started_at", "When the trial began, in UTC.", func(c csvRow) string {
			if c.t.StartedAt.IsZero() {
				return ""
			}
			return c.t.StartedAt.UTC().Format(time.RFC3339Nano)
		}},
		{"duration_ms", "How long the trial took, all attempts and graders included.", func(c csvRow) string { return integer(c.t.DurationMS) }},
		{"executor_ms", "How long the executor took in the attempt that counts.", func(c csvRow) string { return integer(c.t.ExecutorMS) }},
		{"startup_ms", "How long before that until the agent was ready.", func(c csvRow) string { return integer(c.t.StartupMS) }},
		{"attempts", "How many attempts there were.", func(c csvRow) string { return strconv.Itoa(len(c.t.Attempts) + 1) }},
		{"input_tokens", "Tokens read in all attempts, by agent and judges; empty when nobody counted them.", usage(totalOf, func(u *record.Usage) string { return integer(u.InputTokens) })},
		{"output_tokens", "Tokens written.", usage(totalOf, func(u *record.Usage) string { return integer(u.OutputTokens) })},
		{"total_tokens", "Tokens in all.", usage(totalOf, func(u *record.Usage) string { return integer(u.Total()) })},
		{"cost_usd", "What they cost, in US dollars; empty when that is not known.", usage(totalOf, dollarsOf)},
		{"judge_tokens", "Tokens that judges used, of those in all.", usage(judgesOf, func(u *record.Usage) string { return integer(u.Total()) })},
		{"judge_cost_usd", "What judges cost, of the cost.", usage(judgesOf, dollarsOf)},
		{"executor", "Executor that did the trial.", func(c csvRow) string { return c.run.Config.Executor }},
		{"agent", "Agent that was driven.", func(c csvRow) string { return c.run.Config.Agent }},
		{"model", "Model that was asked for.", func(c csvRow) string { return modelOf(c.run, c.task) }},
		{"cell", "Name of the cell of the matrix, where there is one.", func(c csvRow) string {
			if c.task.Cell == nil {
				return ""
			}
			return c.task.Cell.Name
		}},
		{"failed_graders", "Names of the graders that were not satisfied, separated by semicolons.", failedGraders},
		{"reason", "Why the trial did not pass, 1,000 characters at most.", func(c csvRow) string {
			line, message := Why(c.t, c.run.RunID)
			return text.ClipRunes(cmp.Or(message, line), mostReason-1)
		}},
		{"cached_from", "Id of the run that executed the trial, where that was an earlier one.", func(c csvRow) string {
			if c.t.Cached == nil {
				return ""
			}
			return c.t.Cached.RunID
		}},
		{"hash", "Name of the trial by its content: the same hash, the same question.", func(c csvRow) string { return c.t.Hash }},
		{"tool_selection", "Tool selection score, 0 to 1; empty where no tool calls are expected.", tools(func(s *record.TrialTools) *float64 { return &s.Selection })},
		{"tool_arguments", "Share of the expected arguments that are right; empty where none are listed.", tools(func(s *record.TrialTools) *float64 { return s.Params })},
		{"tool_score", "Mean of both, or the first where the second is empty.", tools(func(s *record.TrialTools) *float64 { return &s.Overall })},
	}
}

// modelOf is the model that a task's trials ask for.
func modelOf(rec *record.Run, t record.TaskRef) string {
	if t.Cell != nil {
		return t.Cell.Model
	}
	return rec.Config.Model
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

// usage is the value of a usage of the trial's ledger; empty where that is not known.
func usage(of func(*record.Ledger) *record.Usage, value func(*record.Usage) string) func(csvRow) string {
	return func(c csvRow) string {
		u := of(c.t.Ledger())
		if u == nil {
			return ""
		}
		return value(u)
	}
}

// tools is the value of a tool score.
func tools(value func(*record.TrialTools) *float64) func(csvRow) string {
	return func(c csvRow) string {
		if c.t.Tools == nil {
			return ""
		}
		if v := value(c.t.Tools); v != nil {
			return number(*v)
		}
		return ""
	}
}

func failedGraders(c csvRow) string {
	var names []string
	for i := range c.t.Graders {
		if g := &c.t.Graders[i]; !g.Passed && !g.NeedsReview && !g.Calibrates() {
			names = append(names, g.Name)
		}
	}
	return strings.Join(names, ";")
}

// WriteCSV writes a header and a row for each trial that has ended, as RFC 4180
// has it, in UTF-8.
func WriteCSV(w io.Writer, h record.Handle) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	columns := CSVColumns()
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.Name
	}
	if err := out.Write(row); err != nil {
		return err
	}
	rec := h.Record()
	err := h.Trials(func(task int, t *record.Trial) error {
		from := csvRow{run: rec, task: rec.Tasks[task], t: t}
		for i, c := range columns {
			row[i] = csvCell(c.value(from))
		}
		return out.Write(row)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// csvCell makes a text safe in a spreadsheet, which would compute what begins like
// a formula: such a text gets an apostrophe, which spreadsheets do not show. Lines
// end with a line feed alone; control characters and what is no UTF-8 become �. What
// a CI system would take for a command is escaped, but for a :: that begins the cell.
func csvCell(s string) string {
	s = strings.ToValidUTF8(s, "�")
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '�'
		}
		return r
	}, s)
	s = inertRest(s)
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
