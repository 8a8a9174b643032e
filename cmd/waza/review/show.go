package review

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/report"
)

// Limits of the part of a trial that is shown first.
const (
	mostShownLines  = 40
	mostShownListed = 20
	mostShownWidth  = 160
)

// shown prints a trial for a person to judge. Others wrote all of the text, so it is made safe
// to print.
type shown struct {
	w       io.Writer
	options report.Options
}

func where(q *regrade.Question) string {
	return fmt.Sprintf("%s, trial %d, %s", report.Clean(q.TaskID), q.Trial, report.Clean(q.Grader))
}

// resultOf returns the trial's result of the grader that asks; nil when it is gone.
func resultOf(trial *record.Trial, q *regrade.Question) *record.Grade {
	var found *record.Grade
	for i := range trial.Graders {
		g := &trial.Graders[i]
		if g.Name == q.Grader && g.AsksPerson() && (found == nil || g.NeedsReview && !found.NeedsReview) {
			found = g
		}
	}
	return found
}

func (s *shown) question(q *regrade.Question, trial *record.Trial, count string) {
	s.title(fmt.Sprintf("\n%s  %s", count, where(q)))
	if q.TaskName != q.TaskID {
		fmt.Fprintf(s.w, "%s\n", report.Clean(q.TaskName))
	}
	s.part("Prompt", trial.Prompt)
	s.part("Output", trial.Output)
	s.calls(trial)
	s.files(trial)
	s.others(trial)
	asked := q.Instructions
	for _, c := range q.Criteria {
		asked += "\n- " + c
	}
	if q.Calibrates != "" {
		asked += "\n(for comparison with grader " + q.Calibrates + ": the verdict does not change)"
	}
	s.part("Asked", strings.TrimSpace(asked))
	if q.Comment != "" {
		s.part("Comment so far", q.Comment)
	}
}

// title prints a heading. In color it is bold.
func (s *shown) title(text string) {
	if s.options.Color {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	fmt.Fprintln(s.w, text)
}

// part prints the start of a text under a heading, or nothing for an empty text.
func (s *shown) part(title, text string) { s.text(title, text, mostShownLines) }

// all prints a whole text.
func (s *shown) all(title, text string) {
	if strings.TrimSpace(text) == "" {
		text = "(nothing)"
	}
	s.text(title, text, 0)
}

func (s *shown) text(title, text string, most int) {
	text = strings.Trim(text, "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	s.title(title)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if most > 0 && i == most && len(lines) > most+1 {
			fmt.Fprintf(s.w, "  … and %d more lines (o shows all of the output)\n", len(lines)-i)
			return
		}
		line = report.Clean(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
		if most > 0 {
			line = report.Clip(line, 4*mostShownWidth)
		}
		fmt.Fprintf(s.w, "  %s\n", line)
	}
}

// calls prints a line for each tool call.
func (s *shown) calls(trial *record.Trial) {
	var lines []string
	for i := range trial.Transcript {
		if c := trial.Transcript[i].Tool; c != nil {
			lines = append(lines, callLine(c))
		}
	}
	s.list(text.Count(len(lines), "tool call", "tool calls"), lines, " (t shows the transcript)")
}

// list prints lines under a heading and counts the lines beyond a limit. It prints nothing for
// an empty list.
func (s *shown) list(title string, lines []string, more string) {
	if len(lines) == 0 {
		return
	}
	s.title(title)
	for i, line := range lines {
		if i == mostShownListed && len(lines) > mostShownListed+1 {
			fmt.Fprintf(s.w, "  … and %d more%s\n", len(lines)-i, more)
			return
		}
		fmt.Fprintf(s.w, "  %s\n", report.Clip(report.Clean(line), mostShownWidth))
	}
}

// files lists the files that the trial left in its workspace.
func (s *shown) files(trial *record.Trial) {
	if trial.Workspace == nil {
		return
	}
	var lines []string
	for _, e := range trial.Workspace.Entries {
		switch {
		case e.Omitted != "":
			lines = append(lines, fmt.Sprintf("%s (not kept: %s)", e.Path, e.Omitted))
		case e.Blob != nil:
			lines = append(lines, fmt.Sprintf("%s, %s", e.Path, text.Count(int(e.Size), "byte", "bytes")))
		case e.Link != "":
			lines = append(lines, e.Path+" → "+e.Link)
		}
	}
	if trial.Workspace.Incomplete != "" {
		lines = append(lines, "("+trial.Workspace.Incomplete+")")
	}
	s.list("Files (f PATH shows one)", lines, "")
}

func callLine(c *record.ToolCall) string {
	line := c.Name + " " + string(c.Arguments)
	if c.Status != "" {
		line += " " + c.Status
	}
	if len(c.Result) > 0 {
		line += " → " + string(c.Result)
	}
	return line
}

// others prints the results of the other graders. It omits graders that the person is compared
// with, because seeing their scores would influence the answer. For a trial that was drawn, it
// omits all judges.
func (s *shown) others(trial *record.Trial) {
	var compared, lines []string
	blind := false
	for i := range trial.Graders {
		if g := &trial.Graders[i]; g.Calibrates() && g.NeedsReview {
			compared = append(compared, g.Review().Calibrates)
			blind = blind || g.Drawn()
		}
	}
	for i := range trial.Graders {
		g := &trial.Graders[i]
		switch {
		case g.NeedsReview || slices.Contains(compared, g.Name) || blind && g.Type == record.TypePrompt:
			continue
		case g.Error != "":
			lines = append(lines, fmt.Sprintf("%s: error: %s", g.Name, g.Error))
		case g.Passed:
			lines = append(lines, fmt.Sprintf("%s: passed, %s", g.Name, shortScore(g.Score)))
		default:
			lines = append(lines, fmt.Sprintf("%s: failed, %s: %s", g.Name, shortScore(g.Score), g.Feedback))
		}
	}
	s.list("Graders", lines, "")
}

func (s *shown) transcript(trial *record.Trial) {
	var b strings.Builder
	for i := range trial.Transcript {
		e := &trial.Transcript[i]
		switch {
		case e.Tool != nil:
			fmt.Fprintf(&b, "tool: %s\n", callLine(e.Tool))
		case e.Type == record.EntryMessage:
			fmt.Fprintf(&b, "%s: %s\n", e.Role, e.Text)
		case e.Text != "":
			fmt.Fprintf(&b, "%s: %s\n", e.Type, e.Text)
		}
	}
	s.all("Transcript", b.String())
}
