package lsp

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.lsp.dev/protocol"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/figure"
	"waza/runner/record"
)

// The commands of workspace/executeCommand. Each takes one object.
const (
	CommandRun     = "waza.run"
	CommandDebug   = "waza.debug"
	CommandCancel  = "waza.cancel"
	CommandCompare = "waza.compare"
	CommandShowRun = "waza.showRun"
)

// Commands lists all commands.
func Commands() []string {
	return []string{CommandRun, CommandDebug, CommandCancel, CommandCompare, CommandShowRun}
}

// RunArgument is the argument of waza.run and waza.debug. It selects tasks of a suite by ids or
// globs; an empty list selects all.
type RunArgument struct {
	Path  string   `json:"path"`
	Tasks []string `json:"tasks,omitempty"`
}

// ShowArgument is the argument of waza.showRun.
type ShowArgument struct {
	RunID  string `json:"runId"`
	Path   string `json:"path,omitempty"` // path of the suite
	TaskID string `json:"taskId,omitempty"`
}

// Lenses returns the lenses above the suite and the tasks in a document: run, debug and, if
// there is one, the last result. standing may be nil.
func (doc *Document) Lenses(suite *eval.Suite, standing *catalog.SuiteStanding) []protocol.CodeLens {
	if standing == nil {
		standing = &catalog.SuiteStanding{}
	}
	lenses := []protocol.CodeLens{}
	if suite.File == doc.Path {
		l := lensLine{doc: doc, line: doc.Text.nameLine(), suite: suite.File}
		lenses = append(lenses, l.lenses("suite "+suite.Name, nil, &standing.Suite, suiteResult)...)
	}
	for _, t := range suite.Tasks {
		if t.File != doc.Path || t.Line < 1 || t.Line > doc.Text.Lines() {
			continue
		}
		l := lensLine{doc: doc, line: t.Line - 1, suite: suite.File}
		lenses = append(lenses, l.lenses("task "+t.ID, []string{t.ID}, standing.Tasks[t.ID], taskResult)...)
	}
	return lenses
}

var nameKey = text.Pattern(`^["']?name["']?\s*:`)

// nameLine returns the line of a suite's name or, without a name, the first line with content.
func (t *Text) nameLine() int {
	first := -1
	for n := range t.Lines() {
		line := strings.TrimPrefix(t.Line(n), "\ufeff")
		if nameKey().MatchString(line) {
			return n
		}
		says := strings.TrimSpace(line)
		if first < 0 && says != "" && !strings.HasPrefix(says, "#") && !strings.HasPrefix(says, "---") {
			first = n
		}
	}
	return max(0, first)
}

// lensLine is a line with lenses above it.
type lensLine struct {
	doc   *Document
	line  int
	suite string
}

func (l lensLine) lenses(what string, tasks []string, s *catalog.Standing, result func(*catalog.Standing) string) []protocol.CodeLens {
	run := RunArgument{Path: l.suite, Tasks: tasks}
	list := []protocol.CodeLens{
		l.lens("▶ Run", "Run "+what, CommandRun, run),
		l.lens("Debug", "Run one trial of "+what+", with verbose logs", CommandDebug, run),
	}
	if s != nil && s.Now != nil {
		show := ShowArgument{RunID: s.Now.RunID, Path: l.suite}
		if len(tasks) > 0 {
			show.TaskID = tasks[0]
		}
		title := result(s)
		if s.Now.Damaged {
			title += ", damaged record"
		}
		list = append(list, l.lens(title, "Show this run", CommandShowRun, show))
	}
	return list
}

func (l lensLine) lens(title, tooltip, command string, argument any) protocol.CodeLens {
	raw, _ := json.Marshal(argument) // cannot fail: texts and lists of texts
	place := l.doc.Text.Line(l.line)
	begin := l.doc.Text.Place(l.line+1, 1)
	return protocol.CodeLens{
		Range:   l.doc.Range(begin+indentation(place), begin+len(strings.TrimRight(place, " \t"))),
		Command: protocol.Command{Title: title, Tooltip: &tooltip, Command: command, Arguments: []protocol.LSPAny{raw}},
	}
}

// taskResult describes a task's trials: "7/10 [0.34–0.94] ▼ from 10/10".
func taskResult(s *catalog.Standing) string {
	if s.Now.Counts.Counted() == 0 {
		return verdictWord(s.Now.Verdict)
	}
	return passRate(s, "")
}

// suiteResult describes a suite's tasks: "3/4 tasks passed [0.19–1.00] ▲ from 2/4".
func suiteResult(s *catalog.Standing) string {
	counted := s.Now.Counts.Counted()
	if counted == 0 {
		return "no result for " + text.Count(s.Now.Counts.Total, "task", "tasks")
	}
	return passRate(s, " "+text.Plural(counted, "task", "tasks")+" passed")
}

func passRate(s *catalog.Standing, of string) string {
	line := share(s.Now.Counts) + of + rate(s.Now)
	if n := s.Now.Counts.NeedsReview; n > 0 {
		line += fmt.Sprintf(", %d to review", n)
	}
	if n := s.Now.Counts.Errors; n > 0 {
		line += ", " + text.Count(n, "error", "errors")
	}
	return line + trend(s)
}

func share(c record.Counts) string { return fmt.Sprintf("%d/%d", c.Passed, c.Counted()) }

// rate returns the interval of a pass rate or, while trials wait for a person's score, the
// possible rates.
func rate(r *catalog.LastResult) string {
	i := r.PassRateInterval
	if r.PassRateBounds != nil {
		i = r.PassRateBounds
	}
	if i == nil {
		return ""
	}
	return " [" + figure.ScoreInterval(i.Low, i.High) + "]"
}

// trend describes the change of the pass rate; it returns "" if the rate is unchanged.
func trend(s *catalog.Standing) string {
	switch s.Trend() {
	case 1:
		return " ▲ from " + share(s.Before.Counts)
	case -1:
		return " ▼ from " + share(s.Before.Counts)
	}
	return ""
}

func verdictWord(v record.Verdict) string {
	if v == record.NeedsReview {
		return "needs review"
	}
	return string(v)
}

// Patterns returns the globs for the tasks of an argument. An id of a task in the suite matches
// only that task, whatever characters it contains.
func (a RunArgument) Patterns(suite *eval.Suite) []string {
	var list []string
	for _, task := range a.Tasks {
		if suite.Task(task) != nil {
			task = globs().ReplaceAllString(task, `\$0`)
		}
		list = append(list, task)
	}
	return list
}

var globs = text.Pattern(`[\\*?\[\]{}]`)
