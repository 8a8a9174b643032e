package judge

import (
	"context"
	"encoding/json"

	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/provider"
	"waza/runner/record"
)

// Asker asks a model questions about a run, as judges are asked. It is safe for
// concurrent use, and belongs to the env it was made of.
type Asker struct {
	grader judgeGrader
	model  string
}

// NewAsker returns what asks a model; the judge of the suite when model is empty. The
// error says that no model is named, or that it cannot be asked.
func NewAsker(env *grader.Env, model string) (*Asker, error) {
	o := &PromptOptions{Model: model, Answer: answerTool}
	models := judgeModels(o, env)
	if len(models) == 0 {
		return nil, errNoJudge
	}
	api, endpoint, name := judgeEndpoint(o, env, models[0])
	client, err := env.Clients().Client(context.Background(), api, endpoint, name)
	if err != nil {
		return nil, executor.ProviderFault(err)
	}
	g := judgeGrader{options: o, redact: env.Clients().Redactor()}
	g.judges = []judge{{model: models[0], client: client}}
	return &Asker{grader: g, model: models[0]}, nil
}

// Ask asks for an answer of a form, and gives it to take. When take cannot make sense of
// it, the model is asked once more. usage is what all that cost, nil when nothing is known
// of it.
func (a *Asker) Ask(ctx context.Context, system, prompt string, form provider.Answer, take func(answer json.RawMessage) error) (usage *record.Usage, err error) {
	var spent provider.Usage
	err = a.grader.ask(ctx, a.grader.judges[0], brief{system: system, text: prompt}, form, &spent, take)
	if err != nil {
		err = judgeFault(a.model, err)
	}
	return usageOf([]opinion{{usage: spent}}), err
}
