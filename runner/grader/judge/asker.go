package judge

import (
	"context"
	"encoding/json"

	"waza/runner/grader"
	"waza/runner/provider"
	"waza/runner/record"
)

// An Asker asks a model questions about a run, in the same way as judges. It is safe for
// concurrent use, and belongs to its Env.
type Asker struct {
	grader judgeGrader
	model  string
}

// NewAsker returns an Asker for a model; if model is empty, for the judge of the suite. It
// returns an error if no model is named or the model cannot be asked.
func NewAsker(env *grader.Env, model string) (*Asker, error) {
	o := &PromptOptions{Model: model, Answer: answerTool}
	judges, err := o.newJudges(env)
	if err != nil {
		return nil, err
	}
	if judges[0].fault != nil {
		return nil, judges[0].fault
	}
	g := judgeGrader{options: o, redact: env.Clients().Redactor(), env: env, judges: judges[:1]}
	return &Asker{grader: g, model: judges[0].model}, nil
}

// Ask asks for an answer of a form, and passes it to take. If take returns an error, Ask asks
// once more. usage is the total cost, or nil if it is unknown.
func (a *Asker) Ask(
	ctx context.Context, system, prompt string, form provider.Answer, take func(answer json.RawMessage) error,
) (usage *record.Usage, err error) {
	var spent record.Usage
	err = a.grader.ask(ctx, a.grader.judges[0], brief{system: system, text: prompt}, form, &spent, take)
	if err != nil {
		err = judgeFault(a.model, err)
	}
	return usageOf([]opinion{{usage: spent}}), err
}
