// Package model is the executors that ask a model without an agent around it:
// openai, for OpenAI's API and all that are compatible with it, and anthropic.
// The suite may declare tools with canned results, which the model can call. See
// [OpenAI] and [Anthropic]. The conversation itself is [Conversation.Ask], which
// knows neither suites nor trials and calls tools of any kind.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
)

// The model executors as the registry knows them.
var (
	OpenAI    = kind(provider.OpenAI, "Asks a model through an OpenAI-compatible API: OpenAI, Azure, Ollama, vLLM, LM Studio, OpenRouter.")
	Anthropic = kind(provider.Anthropic, "Asks a model through Anthropic's API.")
)

func kind(api provider.API, summary string) executor.Kind {
	return executor.Kind{
		Kind: eval.Kind{
			Name: string(api), Summary: summary,
			Options: func() any { return newOptions() },
			Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
			Params:  eval.ParamsInOption,

			MeasuresSpeed: true,
		},
		Capabilities: func(executor.Settings) executor.Capabilities { return executor.Capabilities{Metered: true} },
		Open:         func(ctx context.Context, s executor.Settings) (executor.Executor, error) { return open(ctx, api, s) },
		Preflight: func(ctx context.Context, s executor.Settings) []executor.Finding {
			if s.Model != "" {
				return nil
			}
			return []executor.Finding{{
				Severity: decode.Error, Code: decode.CodeMissingField, Message: "no model is named: set config.model",
			}}
		},
	}
}

type model struct {
	options *Options
	suite   *eval.Suite
	client  provider.Client
	pool    *provider.Pool
	ownPool bool
	first   time.Duration
}

// open reads the key, so that a run without one stops before its first trial.
func open(ctx context.Context, api provider.API, s executor.Settings) (*model, error) {
	m := &model{options: s.Options.(*Options), suite: s.Suite, pool: s.Providers}
	m.first = time.Duration(s.Suite.Config.FirstEventTimeoutSeconds * float64(time.Second))
	if m.pool == nil {
		m.pool, m.ownPool = provider.ForSuite(s.Suite, nil), true
	}
	client, err := m.pool.Client(ctx, api, m.options.Endpoint, s.Model)
	if err != nil {
		m.Close()
		return nil, executor.ProviderFault(err)
	}
	m.client = client
	return m, nil
}

func (m *model) Close() error {
	if m.ownPool {
		m.pool.Close()
	}
	return nil
}

// Execute asks the prompt and then the follow-ups, in one conversation. The last
// answer is the output.
func (m *model) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	system, err := m.system(t)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	prompt := t.Prompt
	if m.options.IncludeFiles {
		files, err := m.files(t)
		if err != nil {
			return executor.Outcome{}, executor.Permanent(err)
		}
		prompt += files
	}
	r := &recorder{model: m, trial: t}
	c := &Conversation{
		Client: m.client, Instructions: system, MaxTurns: m.options.MaxTurns, Params: m.options.Params, FirstEvent: m.first,
		Replied: r.replied, Called: r.called,
	}
	for i := range m.options.Tools {
		c.Tools = append(c.Tools, m.options.Tools[i].live(t))
	}
	for i, prompt := range append([]string{prompt}, t.FollowUps...) {
		t.Transcript.Message("user", prompt)
		if n := m.options.ContextTokens; i == 0 && n > 0 {
			prompt = filler(n, m.seed(t)) + "\n\n" + prompt
		}
		if _, err = c.Ask(ctx, prompt); err == nil {
			continue
		}
		if !errors.Is(err, ErrMaxTurns) {
			break
		}
		// The agent's shortcoming and none of the harness: graders shall see it.
		err = nil
		note := fmt.Sprintf("the model was stopped after %d answers to one prompt, the last of which still called tools (config.max_turns)", c.MaxTurns)
		t.Transcript.Add(record.Entry{Type: record.EntryError, Text: note})
		t.Logf("warning", "%s", note)
	}
	return r.outcome(), executor.ProviderFault(err)
}

// live makes a tool that answers as the suite says.
func (t *Tool) live(trial *executor.Trial) LiveTool {
	return LiveTool{
		Tool: provider.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters},
		Call: func(context.Context, json.RawMessage) (ToolResult, error) { return t.result(trial), nil },
	}
}

// result is what a call is answered with.
func (t *Tool) result(trial *executor.Trial) ToolResult {
	if t.Error != "" {
		return ToolResult{Text: trial.Expand(t.Error), IsError: true}
	}
	switch v := t.Result.(type) {
	case nil:
		return ToolResult{Text: "ok"}
	case string:
		return ToolResult{Text: trial.Expand(v)}
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return ToolResult{Text: "error: the result cannot be written as JSON", IsError: true}
		}
		return ToolResult{Text: string(b)}
	}
}

// clean takes keys out of what is recorded.
func (m *model) clean(text string) string { return m.pool.Redactor().Text(text) }
