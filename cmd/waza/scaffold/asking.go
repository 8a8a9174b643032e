package scaffold

import (
	"context"

	"github.com/urfave/cli/v2"

	"waza/eval/skill"
)

// AskFlags returns the flags for [Options.Ask].
func AskFlags() []cli.Flag { return askFlags() }

// Asked reports whether the flags select a model or an agent.
func Asked(c *cli.Context) bool { return asked(c) }

// Ask sends a prompt once to the model or agent that the flags select, in a run of its own. It
// returns the answer, of at most 1 MiB, and the id of the run. An error of the harness, a
// timeout or the end of ctx is an error.
func (o Options) Ask(ctx context.Context, c *cli.Context, prompt string) (answer, runID string, err error) {
	trial, runID, err := o.ask(ctx, c, question{prompt: prompt})
	if err != nil {
		return "", runID, err
	}
	return trial.Output, runID, nil
}

// TriggerTests returns a trigger_tests.yaml with the phrases of a skill's description.
func TriggerTests(sk *skill.Skill, name string) string {
	use, avoid := prompts(sk, name)
	return render("trigger_tests.yaml", struct {
		Skill      string
		Use, Avoid []string
	}{name, use, avoid})
}
