// Package model contains the executors that ask a model without an agent around it: openai, for
// OpenAI's API and compatible ones, and anthropic. The suite can declare tools with canned
// results, which the model can call. See [OpenAI] and [Anthropic]. [Conversation.Ask] implements
// the conversation itself. It is independent of suites and trials, and calls tools of any kind.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
)

// The model executors.
var (
	OpenAI    = kind(provider.OpenAI, "Asks a model through an OpenAI-compatible API: OpenAI, Azure, Ollama, vLLM, LM Studio, OpenRouter.")
	Anthropic = kind(provider.Anthropic, "Asks a model through Anthropic's API.")
)

func kind(api provider.API, summary string) executor.Kind {
	return executor.Kind{
		Kind: eval.Kind{
			Name: string(api), Summary: summary,
			Options: func() any { return newOptions() },
			Check:   func(c *eval.Check, o any) { check(c, api, o.(*Options)) },
			Params:  eval.ParamsInOption,

			MeasuresSpeed: true,
			TakesEffort:   true,
			TakesSkills:   true,
			TakesHistory:  true,
		},
		Capabilities: func(s executor.Settings) executor.Capabilities {
			o, ok := s.Options.(*Options)
			return executor.Capabilities{Metered: true, Stepless: ok && len(o.Tools) == 0}
		},
		Open: func(ctx context.Context, s executor.Settings) (executor.Executor, error) { return open(ctx, api, s) },
		Preflight: func(ctx context.Context, s executor.Settings) []executor.Finding {
			if s.Model != "" {
				return lacksKey(ctx, api, s)
			}
			return []executor.Finding{{
				Severity: decode.Error, Code: decode.CodeMissingField, Message: "config.model is missing; set it to the model to ask",
			}}
		},
		Needs: func(s executor.Settings) []record.Need {
			o, ok := s.Options.(*Options)
			if !ok {
				return nil
			}
			return o.Endpoint.Needs(api)
		},
	}
}

// lacksKey reports a missing key of the API. It does not run a program that prints the key.
func lacksKey(ctx context.Context, api provider.API, s executor.Settings) []executor.Finding {
	o, ok := s.Options.(*Options)
	if !ok || s.Providers == nil || len(o.APIKeyCommand) > 0 {
		return nil
	}
	_, err := s.Providers.Client(ctx, api, o.Endpoint, s.Model)
	if provider.KindOf(err) != provider.Refused {
		return nil // the run reports other problems
	}
	return []executor.Finding{{
		Severity: decode.Warning, Code: decode.CodeUnavailable, Message: err.Error() + "; every trial needs it",
	}}
}

type model struct {
	options *Options
	suite   *eval.Suite
	client  provider.Client
	pool    *provider.Pool
	ownPool bool
}

// open reads the key, so that a run without a key stops before its first trial.
func open(ctx context.Context, api provider.API, s executor.Settings) (*model, error) {
	m := &model{options: s.Options.(*Options), suite: s.Suite, pool: s.Providers}
	if m.pool == nil {
		m.pool, m.ownPool = provider.ForSuite(s.Suite, nil), true
	}
	client, err := m.pool.Client(ctx, api, m.options.Endpoint, s.Model)
	if err != nil {
		m.Close()
		return nil, executor.ProviderFault(err)
	}
	m.client = provider.WithEffort(client, s.Suite.Config.ReasoningEffort)
	return m, nil
}

func (m *model) Close() error {
	if m.ownPool {
		m.pool.Close()
	}
	return nil
}

// Execute sends the prompt and the follow-ups in one conversation. The last answer is the
// output.
func (m *model) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	system, err := m.system(t)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	files := "" // follow the first prompt
	if m.options.IncludeFiles {
		if files, err = m.files(t); err != nil {
			return executor.Outcome{}, executor.Permanent(err)
		}
	}
	r := &recorder{model: m, trial: t}
	c := &Conversation{
		Client: m.client, Instructions: system, History: historyOf(t.Task), MaxTurns: m.options.MaxTurns, Params: m.options.Params,
		FirstEvent: executor.FirstEvent(m.suite, t.Task),
		Replied:    r.replied, Called: r.called,
	}
	for i := range m.options.Tools {
		c.Tools = append(c.Tools, m.options.Tools[i].live(t))
	}
	err = t.Converse(ctx, func(ctx context.Context, num int, prompt string) (executor.Outcome, error) {
		if num == 1 {
			prompt += files
		}
		t.Transcript.Message("user", prompt)
		if n := m.options.ContextTokens; num == 1 && n > 0 {
			prompt = filler(n, m.seed(t)) + "\n\n" + prompt
		}
		_, err := c.Ask(ctx, prompt)
		if err == nil {
			return r.outcome(), nil
		}
		if !errors.Is(err, ErrMaxTurns) {
			return r.outcome(), executor.ProviderFault(err)
		}
		// This is a weakness of the agent, not an error of the harness, so graders see it.
		note := fmt.Sprintf("the model was stopped after %d answers to one prompt because it still called tools (config.max_turns)", c.MaxTurns)
		t.Transcript.Add(record.Entry{Type: record.EntryError, Text: note})
		t.Logf("warning", "%s", note)
		return r.outcome(), nil
	})
	return r.outcome(), err
}

// historyOf returns the messages before the prompt of a task.
func historyOf(t *eval.Task) []provider.Message {
	var history []provider.Message
	for _, m := range t.Inputs.History {
		history = append(history, provider.Message{Role: provider.Role(m.Role), Text: m.Text})
	}
	return history
}

// live returns a tool that answers with the result in the suite.
func (t *Tool) live(trial *executor.Trial) LiveTool {
	return LiveTool{
		Tool: provider.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters},
		Call: func(context.Context, json.RawMessage) (ToolResult, error) { return t.result(trial), nil },
	}
}

// result returns the answer to a call.
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

// clean removes keys from recorded text.
func (m *model) clean(text string) string { return m.pool.Redactor().Text(text) }
