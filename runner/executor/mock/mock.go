// Package mock is the executor that needs no agent. It gives canned replies, or the replies that
// the suite defines under config.mock. See [Kind].
package mock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/pause"
	"waza/runner/record"
)

// Kind is the mock executor.
var Kind = executor.Kind{
	Kind: eval.Kind{
		Name:    "mock",
		Summary: "Answers without an agent: `Mock response for: <prompt>`, or the replies in config.mock.",
		Options: func() any { return &Options{} },
		Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
	},
	// Replies are canned without a script. A script reports skills.
	Capabilities: func(s executor.Settings) executor.Capabilities {
		scripted := s.Options.(*Options).Mock != nil
		return executor.Capabilities{Canned: !scripted, Skills: scripted, Simulated: true}
	},
	Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
		return open(s.Options.(*Options))
	},
	Contained: true,
}

type mock struct {
	script  *Script // nil for canned replies
	matches []*regexp.Regexp
}

func open(o *Options) (*mock, error) {
	m := &mock{script: o.Mock}
	if m.script == nil {
		return m, nil
	}
	for i, r := range m.script.Replies {
		re, err := regexp.Compile(r.Match)
		if err != nil {
			return nil, fmt.Errorf("config.mock.replies[%d].match: %w", i, err)
		}
		m.matches = append(m.matches, re)
	}
	return m, nil
}

func (m *mock) Close() error { return nil }

func (m *mock) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	var out executor.Outcome
	if m.script == nil {
		err := t.Converse(ctx, func(ctx context.Context, _ int, prompt string) (executor.Outcome, error) {
			out.Output = canned(t, prompt)
			recordCall(t, prompt, out.Output)
			return out, context.Cause(ctx)
		})
		return out, err
	}
	random := m.random(t)
	fails := random.Float64() < m.script.ErrorRate
	err := t.Converse(ctx, func(ctx context.Context, _ int, prompt string) (executor.Outcome, error) {
		if err := pause.For(ctx, m.script.LatencyMS.draw(random)); err != nil {
			return out, err
		}
		if fails {
			return out, errors.New("mock: random error from error_rate")
		}
		if err := m.turn(t, prompt, &out); err != nil {
			return out, err
		}
		return out, context.Cause(ctx)
	})
	return out, err
}

// canned returns the reply of microsoft/waza's mock executor, which counts the files of the task.
func canned(t *executor.Trial, prompt string) string {
	reply := "Mock response for: " + prompt
	if n := len(t.Task.Inputs.Files); n > 0 {
		reply += fmt.Sprintf("\nAnalyzed %d file(s)", n)
	}
	return reply
}

func recordCall(t *executor.Trial, prompt, reply string) {
	t.Transcript.Message("user", prompt)
	t.Transcript.Message("assistant", reply)
}

// random returns the random numbers of a trial. They depend on the seed, the task and the
// trial's number, but not on the order of trials.
func (m *mock) random(t *executor.Trial) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(t.Task.ID + "/" + strconv.Itoa(t.Num)))
	return rand.New(rand.NewPCG(m.script.Seed, h.Sum64()))
}

// turn executes one reply of the script.
func (m *mock) turn(t *executor.Trial, prompt string, out *executor.Outcome) error {
	r := m.reply(prompt, t.Num)
	if r == nil {
		out.Output = canned(t, prompt)
		recordCall(t, prompt, out.Output)
		return nil
	}
	t.Transcript.Message("user", prompt)
	for _, s := range r.Skills {
		t.Transcript.Skill(s)
	}
	for i, c := range r.ToolCalls {
		call, err := c.record(i)
		if err != nil {
			return err
		}
		t.Transcript.ToolCall(call)
	}
	if err := writeFiles(t, r.Files); err != nil {
		return err
	}
	if r.Usage != nil {
		sum := r.Usage.usage()
		if out.Usage != nil {
			sum = out.Usage.Add(sum)
		}
		out.Usage = &sum
	}
	if r.Error != "" {
		msg := t.Expand(r.Error)
		t.Transcript.Add(record.Entry{Type: record.EntryError, Text: msg})
		return errors.New(msg)
	}
	out.Output = t.Expand(r.Output)
	t.Transcript.Message("assistant", out.Output)
	return nil
}

// reply returns the first reply of the script that matches a prompt and trial, or nil.
func (m *mock) reply(prompt string, trial int) *Reply {
	for i := range m.script.Replies {
		r := &m.script.Replies[i]
		if len(r.Trials) > 0 && !slices.Contains(r.Trials, trial) {
			continue
		}
		if m.matches[i].MatchString(prompt) {
			return r
		}
	}
	return nil
}

func (c ToolCall) record(i int) (record.ToolCall, error) {
	call := record.ToolCall{ID: "call-" + strconv.Itoa(i+1), Name: c.Name, Status: "completed"}
	var err error
	if c.Arguments != nil {
		if call.Arguments, err = json.Marshal(c.Arguments); err != nil {
			return call, fmt.Errorf("mock: tool call %s: arguments: %w", c.Name, err)
		}
	}
	if c.Result != nil {
		if call.Result, err = json.Marshal(c.Result); err != nil {
			return call, fmt.Errorf("mock: tool call %s: result: %w", c.Name, err)
		}
	}
	return call, nil
}

// writeFiles writes files to the workspace, and never outside it.
func writeFiles(t *executor.Trial, files []File) error {
	if len(files) == 0 {
		return nil
	}
	dir, err := t.Dir()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		name := filepath.FromSlash(f.Path)
		if dir := filepath.Dir(name); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("mock: file %s: %w", f.Path, err)
			}
		}
		if err := root.WriteFile(name, []byte(t.Expand(f.Content)), 0o644); err != nil {
			return fmt.Errorf("mock: file %s: %w", f.Path, err)
		}
	}
	return nil
}
