package eval

import (
	"waza/eval/decode"
	"waza/eval/text"
)

// reportTurns reports graders of turns that tasks do not have, and graders that look at no turn.
func reportTurns(l *loader, tasks []*Task) {
	reported := map[*Grader]bool{}
	report := func(g *Grader, severity decode.Severity, code decode.Code, format string, args ...any) {
		if !reported[g] {
			reported[g] = true
			l.Reportf(g.src, decode.Place(g.node, "turn"), severity, code, format, args...)
		}
	}
	check := func(t *Task, g *Grader, most int, has string) {
		switch {
		case g.Turn > most && t.Blocked == "":
			report(g, decode.Error, decode.CodeInvalidValue, "grader %q: turn %d does not exist: task %q %s %s",
				text.Clip(g.Name, 60), g.Turn, text.Clip(t.ID, 80), has, text.Count(most, "prompt", "prompts"))
		case g.Turn > 0 && (g.Type == "file" || g.Type == "diff" || g.Type == "reward"):
			report(g, decode.Warning, decode.CodeNoEffect,
				"graders of type %s look at the workspace at the end, whatever the turn; put the grader into a checkpoint after the turn", g.Type)
		}
	}
	for _, t := range tasks {
		for _, g := range t.Effective {
			check(t, g, t.Turns(), "has")
		}
		for _, c := range t.Inputs.Checkpoints {
			for _, g := range c.Graders {
				check(t, g, min(c.AfterTurn, t.Turns()), "then had")
			}
		}
	}
}
