// Package model is the executors that ask a model without an agent around it:
// openai, for OpenAI's API and all that are compatible with it, and anthropic.
// The suite may declare tools with canned results, which the model can call. See
// [OpenAI] and [Anthropic].
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/provider"
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
	tools   []provider.Tool
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
	for _, t := range m.options.Tools {
		m.tools = append(m.tools, provider.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
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
	c := &conversation{model: m, trial: t}
	var err error
	if c.request.System, err = m.system(t); err != nil {
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
	c.request.Tools, c.request.Params, c.request.FirstEvent = m.tools, m.options.Params, m.first
	for _, prompt := range append([]string{prompt}, t.FollowUps...) {
		if err = c.ask(ctx, prompt); err != nil {
			break
		}
	}
	return c.outcome(), executor.ProviderFault(err)
}

// conversation is one trial.
type conversation struct {
	model   *model
	trial   *executor.Trial
	request provider.Request
	output  string
	usage   provider.Usage
	speed   executor.Speed
	writing time.Duration // spent between the first token of each answer and its end
}

// ask puts a prompt and goes on until the model calls no more tools.
func (c *conversation) ask(ctx context.Context, prompt string) error {
	c.trial.Transcript.Message("user", prompt)
	c.request.Messages = append(c.request.Messages, provider.Message{Role: provider.User, Text: prompt})
	for range c.model.options.MaxTurns {
		reply, err := c.model.client.Complete(ctx, &c.request)
		c.record(reply)
		if err != nil {
			c.trial.Transcript.Add(executor.Entry{Type: executor.EntryError, Text: c.model.clean(err.Error())})
			return err
		}
		c.output = c.model.clean(reply.Message.Text)
		c.request.Messages = append(c.request.Messages, reply.Message)
		c.remark(reply)
		if len(reply.Message.Calls) == 0 {
			return nil
		}
		c.answer(reply.Message.Calls)
	}
	// The agent's shortcoming and none of the harness: graders shall see it.
	note := fmt.Sprintf("the model was stopped after %d answers to one prompt, the last of which still called tools (config.max_turns)", c.model.options.MaxTurns)
	c.trial.Transcript.Add(executor.Entry{Type: executor.EntryError, Text: note})
	c.trial.Logf("warning", "%s", note)
	return nil
}

// record notes a reply, also what came of one that broke off.
func (c *conversation) record(r *provider.Reply) {
	c.usage = c.usage.Add(r.Usage)
	if r.Tries > 0 {
		c.speed.Retries += r.Tries - 1
		c.speed.Requests++
	}
	if r.FirstToken > 0 {
		if c.speed.FirstTokenMS == 0 {
			c.speed.FirstTokenMS = float64(r.FirstToken.Microseconds()) / 1000
		}
		c.writing += r.Duration - r.FirstToken
	}
	if r.Thought != "" {
		c.trial.Transcript.Add(executor.Entry{Type: executor.EntryThought, Role: "assistant", Text: c.model.clean(r.Thought)})
	}
	if r.Message.Text != "" {
		c.trial.Transcript.Message("assistant", c.model.clean(r.Message.Text))
	}
}

// remark tells of answers that ended otherwise than they should.
func (c *conversation) remark(r *provider.Reply) {
	switch r.Stop {
	case provider.StopLength:
		c.trial.Logf("warning", "the answer was cut off at the limit of tokens (config.params.max_tokens)")
	case provider.StopRefusal:
		c.trial.Logf("warning", "the model or its provider refused to answer")
	}
}

// answer records the tool calls of a reply and puts their results into the conversation.
func (c *conversation) answer(calls []provider.Call) {
	m := provider.Message{Role: provider.ToolRole}
	for _, call := range calls {
		text, failed := c.result(call)
		status := "completed"
		if failed {
			status = "failed"
		}
		result, err := json.Marshal(c.model.clean(text))
		if err == nil && json.Valid([]byte(text)) {
			result = c.model.pool.Redactor().JSON(json.RawMessage(text))
		}
		c.trial.Transcript.ToolCall(executor.ToolCall{
			ID: call.ID, Name: call.Name, Arguments: c.model.pool.Redactor().JSON(call.Arguments), Result: result, Status: status,
		})
		m.Results = append(m.Results, provider.Result{ID: call.ID, Text: text, IsError: failed})
	}
	c.request.Messages = append(c.request.Messages, m)
}

// result is what a call is answered with.
func (c *conversation) result(call provider.Call) (text string, failed bool) {
	if call.Malformed || len(call.Arguments) == 0 || call.Arguments[0] != '{' {
		return "error: the arguments are not a JSON object", true
	}
	for _, t := range c.model.options.Tools {
		if t.Name != call.Name {
			continue
		}
		if t.Error != "" {
			return c.trial.Expand(t.Error), true
		}
		switch v := t.Result.(type) {
		case nil:
			return "ok", false
		case string:
			return c.trial.Expand(v), false
		default:
			b, err := json.Marshal(v)
			if err != nil {
				return "error: the result cannot be written as JSON", true
			}
			return string(b), false
		}
	}
	return fmt.Sprintf("error: there is no tool %q", call.Name), true
}

func (c *conversation) outcome() executor.Outcome {
	out := executor.Outcome{Output: c.output}
	if c.speed.Requests > 0 {
		out.Usage = &executor.Usage{InputTokens: c.usage.InputTokens, OutputTokens: c.usage.OutputTokens, CostUSD: c.usage.CostUSD}
		if s := c.writing.Seconds(); s > 0 && !c.usage.Estimated {
			c.speed.TokensPerSecond = float64(c.usage.OutputTokens) / s
		}
		out.Speed = &c.speed
	}
	return out
}

// clean takes keys out of what is recorded.
func (m *model) clean(text string) string { return m.pool.Redactor().Text(text) }
