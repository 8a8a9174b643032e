package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"waza/runner/record"
)

// A Statement is a sentence about the work of an agent that judges marked.
type Statement struct {
	Text     string
	Passed   bool
	Evidence string
}

// Evidence returns the reason for the result of a grader. It is never empty.
func Evidence(g *record.Grade) string {
	switch {
	case g.Error != "":
		return g.Error
	case g.NeedsReview:
		return "waits for a person's score"
	case g.Feedback != "":
		return g.Feedback
	}
	return fmt.Sprintf("score %.2f", g.Score)
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

// Statements returns the statements that judges marked for a grader; nil for other graders, and for
// those whose result is reversed or affects no verdict. Of several judges, more than half must pass
// a statement.
func Statements(g *record.Grade) []Statement {
	if g.Type != record.TypePrompt || g.Negated || !g.Counts() {
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
	list := make([]Statement, len(opinions[0].Statements))
	for i, s := range opinions[0].Statements {
		list[i] = combined(i, s, opinions)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// combined combines the marks of the statement with an index.
func combined(i int, s marked, opinions []opinion) Statement {
	passes := 0
	for _, o := range opinions {
		if i < len(o.Statements) && o.Statements[i].Passed {
			passes++
		}
	}
	e := Statement{Text: s.Text, Passed: 2*passes > len(opinions)}
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
