package skillcreator

import (
	"encoding/json"
	"fmt"
	"strings"

	"waza/runner/record"
)

// expectationsOf returns the statements of a trial that counts: those that judges marked, and one for
// each other grader. There is always one, because a rate needs one.
func expectationsOf(t *record.Trial) []expectation {
	var list []expectation
	if t.Verdict == record.TimedOut {
		list = append(list, expectation{"The agent finishes in time", false, t.Error})
	}
	for i := range t.Graders {
		g := &t.Graders[i]
		if marked := statementsOf(g); marked != nil {
			list = append(list, marked...)
		} else {
			list = append(list, ofGrader(g))
		}
	}
	for _, g := range t.Ungraded {
		list = append(list, expectation{titleOf(g.Name, g.Type), false, "not graded, because the agent did not finish"})
	}
	if list == nil {
		list = append(list, expectation{"The agent completes the task", t.Verdict == record.Passed, completed(t)})
	}
	return list
}

func completed(t *record.Trial) string {
	if t.Error != "" {
		return t.Error
	}
	return "no grader; the verdict is " + string(t.Verdict)
}

// ofGrader returns the statement that a grader passes.
func ofGrader(g *record.Grade) expectation {
	evidence := g.Feedback
	if evidence == "" {
		evidence = fmt.Sprintf("score %.2f", g.Score)
	}
	return expectation{titleOf(g.Name, g.Type), g.Passed, evidence}
}

func titleOf(name, kind string) string {
	if name == "" || name == kind {
		return "Grader " + kind + " passes"
	}
	return fmt.Sprintf("%s (grader %s) passes", name, kind)
}

// A marked is a statement in the details of a grader that asks judges.
type marked struct {
	Text     string `json:"text"`
	Absent   bool   `json:"absent"`
	Passed   bool   `json:"passed"`
	Evidence string `json:"evidence"`
}

// An opinion is the opinion of a judge in these details.
type opinion struct {
	Judge      string   `json:"judge"`
	Statements []marked `json:"statements"`
}

// statementsOf returns the marks of a grader's statements; nil if it has no statements. Of several
// judges, more than half must pass a statement.
func statementsOf(g *record.Grade) []expectation {
	if g.Type != record.TypePrompt {
		return nil
	}
	raw, err := json.Marshal(g.Details)
	if err != nil {
		return nil
	}
	var details struct {
		Opinions []opinion `json:"opinions"`
	}
	if json.Unmarshal(raw, &details) != nil || len(details.Opinions) == 0 {
		return nil
	}
	opinions := details.Opinions
	list := make([]expectation, len(opinions[0].Statements))
	for i, s := range opinions[0].Statements {
		list[i] = combined(i, s, opinions)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// combined combines the marks of the statement with an index.
func combined(i int, s marked, opinions []opinion) expectation {
	passes := 0
	for _, o := range opinions {
		if i < len(o.Statements) && o.Statements[i].Passed {
			passes++
		}
	}
	e := expectation{Text: s.Text, Passed: 2*passes > len(opinions)}
	if s.Absent {
		e.Text = "Absent: " + s.Text
	}
	var evidence []string
	for _, o := range opinions {
		switch {
		case i >= len(o.Statements) || o.Statements[i].Passed != e.Passed:
		case len(opinions) == 1:
			evidence = append(evidence, o.Statements[i].Evidence)
		default:
			evidence = append(evidence, o.Judge+": "+o.Statements[i].Evidence)
		}
	}
	e.Evidence = strings.Join(evidence, "; ")
	return e
}

// gradingOf returns the document of the expectations.
func gradingOf(list []expectation, m metrics, tm timing) grading {
	g := grading{Expectations: list, Metrics: m, Summary: summary{Total: len(list)}}
	for _, e := range list {
		if e.Passed {
			g.Summary.Passed++
		}
	}
	g.Summary.Failed = g.Summary.Total - g.Summary.Passed
	g.Summary.PassRate = float64(g.Summary.Passed) / float64(g.Summary.Total)
	if tm.ExecutorSeconds != nil || tm.GraderSeconds != nil {
		g.Timing = &gradingTiming{ExecutorSeconds: tm.ExecutorSeconds, GraderSeconds: tm.GraderSeconds}
	}
	return g
}
