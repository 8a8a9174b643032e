package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/browser"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// fakeHub is a server with the extensions and assistants of the test.
type fakeHub struct {
	// execute carries out a command. If it is nil, the hub echoes the command's text.
	execute func(ctx context.Context, c *browser.Command, step func(browser.Step)) (*browser.Answer, error)
	// closed makes Reserve wait until it is closed, unless it is nil.
	closed chan struct{}

	mu         sync.Mutex // guards the fields below
	noServer   bool
	extensions []*browser.Extension
	assistants []*browser.Assistant
	wants      []*browser.Want
	commands   []*browser.Command
	held       int // slots
}

func (h *fakeHub) Reserve(ctx context.Context, w *browser.Want) (browser.Slot, error) {
	if h.closed != nil {
		select {
		case <-h.closed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wants = append(h.wants, w)
	h.held++
	return fakeSlot{h}, nil
}

func (h *fakeHub) Extensions(context.Context) ([]*browser.Extension, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noServer {
		return nil, executor.ErrNoServer
	}
	return slices.Clone(h.extensions), nil
}

func (h *fakeHub) Assistants(context.Context) ([]*browser.Assistant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noServer {
		return nil, executor.ErrNoServer
	}
	return slices.Clone(h.assistants), nil
}

type fakeSlot struct{ *fakeHub }

func (fakeSlot) ExtensionID() string { return "e1" }

func (s fakeSlot) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
}

func (s fakeSlot) Execute(ctx context.Context, c *browser.Command, step func(browser.Step)) (*browser.Answer, error) {
	s.mu.Lock()
	s.commands = append(s.commands, c)
	s.mu.Unlock()
	if s.execute != nil {
		return s.execute(ctx, c, step)
	}
	return &browser.Answer{Text: c.Text}, nil
}

func newRunner(t *testing.T, hub browser.Hub) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(browser.New(hub))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// run runs a suite to its end.
func run(t *testing.T, hub browser.Hub, suite string) (runnertest.Result, []*record.Event) {
	t.Helper()
	live := runnertest.Start(t, newRunner(t, hub), "-- eval.yaml --\n"+suite, record.Request{})
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	return runnertest.ResultOf(t, live), events
}

const instructions = "Use the browser to do what you are asked."

// A prompt and its follow-ups are commands of one session. The transcript contains all steps.
func TestTrial(t *testing.T) {
	t.Parallel()
	hub := &fakeHub{execute: func(ctx context.Context, c *browser.Command, step func(browser.Step)) (*browser.Answer, error) {
		if _, ok := ctx.Deadline(); !ok {
			return nil, errors.New("no deadline")
		}
		step(browser.Step{Thought: "hm"})
		step(browser.Step{Message: "I open it."})
		step(browser.Step{
			Tool: &record.ToolCall{
				ID: "1", Name: "navigate", Arguments: json.RawMessage(`{"url":"http://x"}`),
				Result: json.RawMessage(`{"title":"X"}`), Status: "completed", DurationMS: 7,
			},
		})
		step(browser.Step{Warning: "the answer was cut off"})
		step(browser.Step{
			Tool: &record.ToolCall{
				ID: "2", Name: "screenshot", Result: json.RawMessage(`"` + strings.Repeat("A", 1<<20) + `"`),
				Status: "completed",
			},
		})
		step(browser.Step{Message: "Done: " + c.Text})
		return &browser.Answer{Text: "Done: " + c.Text, Model: "m1", Usage: record.Usage{InputTokens: 1000, OutputTokens: 100}, Requests: 2}, nil
	}}
	res, events := run(t, hub, `
name: s
inputs: {site: shop}
config:
  executor: browser
  extension: 550e8400-e29b-41d4-a716-446655440000
  max_turns: 5
  timeout_seconds: 60
  prices: {m1: {input: 1000, output: 10000}}
  assistant: {name: Buyer, instructions: "Use the {{site}} as a person would.", capabilities: [navigate, screenshot], model: m1}
tasks:
  - {id: a, prompt: "open {{site}}", follow_up_prompts: [and close it]}
`)
	got := res.Tasks[0].Trials[0]
	require.Equal(t, record.Passed, got.Verdict, got.Error)
	require.Equal(t, "Done: and close it", got.Output)
	require.Equal(t, &record.Usage{InputTokens: 2000, OutputTokens: 200, CostUSD: 4}, got.Usage)
	id := res.RunID + "/a/1/1/" + got.Hash[:12]
	require.Equal(t, []*browser.Want{{ID: id, Extension: "550e8400-e29b-41d4-a716-446655440000"}}, hub.wants)
	require.Zero(t, hub.held)
	made := &browser.Made{
		Name: "Buyer", Instructions: "Use the shop as a person would.",
		Capabilities: []string{"navigate", "screenshot"}, Model: "m1",
	}
	for i, c := range hub.commands {
		require.Greater(t, c.Timeout, 60*time.Second, "the trial's deadline comes first")
		require.Less(t, c.Timeout, 71*time.Second)
		c.Timeout = 0
		require.Equal(t, &browser.Command{
			ID: fmt.Sprintf("%s/%d", id, i+1), Text: []string{"open shop", "and close it"}[i], Made: made,
			MaxTurns: 5,
		},
			c)
	}
	var lines []string
	for _, e := range got.Transcript {
		line := string(e.Type) + " " + e.Role + " " + e.Text
		if e.Tool != nil {
			line += fmt.Sprintf("%s %s %s %s", e.Tool.Name, e.Tool.Arguments, e.Tool.Status, e.Tool.Result)
		}
		lines = append(lines, line)
	}
	require.Equal(t, []string{
		"message user open shop", "thought assistant hm", "message assistant I open it.",
		`tool_call  navigate {"url":"http://x"} completed {"title":"X"}`,
		"error  the answer was cut off", `tool_call  screenshot  completed {"begins":"\"` + strings.Repeat("A", 1999) + `","bytes":1048578}`,
		"message assistant Done: open shop",
	}, lines[:7])
	require.Len(t, lines, 14)
	require.Contains(t, runnertest.Logs(events), "task a, trial 1: the answer was cut off")
}

// A suite refers to an assistant of the user by name. An assistant made for a trial has all
// tools unless the suite lists some.
func TestAssistants(t *testing.T) {
	t.Parallel()
	for assistant, want := range map[string]browser.Command{
		"Shopper": {Assistant: "Shopper"},
		"{instructions: '" + instructions + "'}": {
			Made: &browser.Made{Name: "evaluation", Instructions: instructions, Capabilities: browser.Capabilities, Model: "from-config"},
		},
	} {
		hub := &fakeHub{}
		res, _ := run(t, hub, "name: s\nconfig: {executor: browser, model: from-config, assistant: "+assistant+"}\ntasks: [{id: a, prompt: x}]\n")
		require.Equal(t, "x", res.Tasks[0].Trials[0].Output)
		require.Nil(t, res.Tasks[0].Trials[0].Usage)
		require.Equal(t, want.Assistant, hub.commands[0].Assistant)
		require.Equal(t, want.Made, hub.commands[0].Made)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	spent := &browser.Answer{Requests: 1, Usage: record.Usage{InputTokens: 5}}
	for name, c := range map[string]struct {
		err     error
		verdict record.Verdict
		says    string
	}{
		"model":   {&provider.Error{Kind: provider.Invalid, Message: "no such model"}, record.Errored, "no such model"},
		"silent":  {&provider.Error{Kind: provider.Silent, Message: "nothing came"}, record.TimedOut, "timeout exceeded: nothing came"},
		"slow":    {fmt.Errorf("%w: the command", executor.ErrTimeout), record.TimedOut, "timeout exceeded: the command"},
		"harness": {errors.New("no assistant \"x\""), record.Errored, `no assistant "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := &fakeHub{execute: func(context.Context, *browser.Command, func(browser.Step)) (*browser.Answer, error) {
				return spent, c.err
			}}
			res, _ := run(t, hub, "name: s\nconfig: {executor: browser, retry_errors: 0, assistant: x}\ntasks: [{id: a, "+
				"prompt: x, follow_up_prompts: [y]}]\n")
			got := res.Tasks[0].Trials[0]
			require.Equal(t, c.verdict, got.Verdict)
			require.Equal(t, c.says, got.Error)
			require.Equal(t, int64(5), got.Usage.InputTokens, "spending counts even for a failed trial")
			require.Len(t, hub.commands, 1)
		})
	}
}

// The trial is admitted again with the same attempt number when its extension leaves.
func TestExtensionLeaves(t *testing.T) {
	t.Parallel()
	left := false
	hub := &fakeHub{}
	hub.execute = func(_ context.Context, c *browser.Command, _ func(browser.Step)) (*browser.Answer, error) {
		if !left {
			left = true
			return nil, &executor.RetryError{Reason: "the extension e1 is gone"}
		}
		return &browser.Answer{Text: "done"}, nil
	}
	res, events := run(t, hub, "name: s\nconfig: {executor: browser, retry_errors: 0, assistant: x}\ntasks: [{id: a, prompt: x}]\n")
	got := res.Tasks[0].Trials[0]
	require.Equal(t, record.Passed, got.Verdict, got.Error)
	require.Empty(t, got.Attempts)
	require.Contains(t, runnertest.Logs(events), "task a, trial 1: the extension e1 is gone; waiting to be admitted again")
	require.Len(t, hub.wants, 2)
	require.Zero(t, hub.held)
}

func TestPromptsThatAreTooLong(t *testing.T) {
	t.Parallel()
	hub := &fakeHub{}
	res, _ := run(t, hub, "name: s\ninputs: {long: '"+strings.Repeat("x", 10_000)+
		"'}\nconfig: {executor: browser, assistant: x}\ntasks: [{id: a, prompt: 'a{{long}}'}]\n")
	require.Equal(t, "the prompt of a browser assistant must have 1 to 10000 characters, got 10001", res.Tasks[0].Trials[0].Error)
	require.Empty(t, hub.commands)
}

func TestNoHub(t *testing.T) {
	t.Parallel()
	_, err := browser.New(nil).Open(t.Context(), executor.Settings{Options: &browser.Options{}})
	require.EqualError(t, err, "this program has no connection to a waza server, so it cannot reach a browser")
	require.True(t, executor.IsPermanent(err))
}

// findings returns the findings about a config.
func findings(t *testing.T, config string) (list []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: s\nconfig:\n  executor: browser\n"+config+"\ntasks: [{id: a, prompt: x}]\n"), 0o644))
	_, ds, err := eval.Load(path, eval.Options{Vocabulary: &eval.Vocabulary{Executors: []eval.Kind{browser.New(nil).Kind}}})
	require.NoError(t, err)
	for _, d := range ds {
		if d.Severity != decode.Info && d.Code != decode.CodeNothingChecked {
			line := string(d.Severity) + ": " + d.Message
			if d.Suggestion != "" {
				line += " → " + d.Suggestion
			}
			list = append(list, line)
		}
	}
	return list
}

func TestFindings(t *testing.T) {
	t.Parallel()
	const at = "error: executor browser: "
	for config, want := range map[string][]string{
		"  assistant: Shopper": nil,
		"  assistant: {instructions: '" + instructions + "', capabilities: [navigate]}\n  extension: abcdefghijklmnopabcdefghijklmnop": nil,
		"": {
			at + "config.assistant is missing; set it to the name or id of an assistant, or a map with instructions",
		},
		"  assistant: x\n  max_turns: 101": {at + "max_turns must be at most 100, got 101"},
		"  assistant: {}":                  {at + "config.assistant.instructions is missing"},
		"  assistant: []": {
			at + "config.assistant must be the name or id of an assistant, or a map with instructions, got a list",
		},
		"  assistant: {instructions: short, instruction: x}": {
			at + `unknown key "instruction" in config.assistant → instructions`,
		},
		"  assistant: {instructions: short, name: 'a/b', capabilities: [navigate, click, navigate]}": {
			at + `assistant.name must have 1 to 100 letters, digits, spaces and hyphens, got "a/b"`,
			at + "assistant.instructions must have 10 to 10000 characters, got 5",
			at + `assistant.capabilities[1]: "click" is not one of ` + strings.Join(browser.Capabilities, ", ") + " → click_element",
			at + "assistant.capabilities contains navigate twice",
		},
		"  assistant: {instructions: '" + instructions + "', capabilities: [extract_tex]}": {
			at + `assistant.capabilities[0]: "extract_tex" is not one of ` + strings.Join(browser.Capabilities, ", ") + " → extract_text",
		},
		"  assistant: {instructions: '" + instructions +
			"', capabilities: []}": {at + "assistant.capabilities must not be empty; remove it to allow all tools"},
		"  assistant: x\n  extension: mine\n  model: m\n  mcp_servers: {a: {}}": {
			"warning: executor browser: model has no effect: the assistant \"x\" has its own model",
			at + `extension must be the id of an extension, a UUID or 32 letters from a to p, got "mine"`,
			"warning: executor browser: mcp_servers has no effect: only assistant.instructions configures a browser assistant",
		},
		"  model: m\n  assistant: {instructions: '" + instructions +
			"', model: n}": {"warning: executor browser: model has no effect: assistant.model overrides it"},
	} {
		got := findings(t, config)
		slices.Sort(got)
		slices.Sort(want)
		require.Equal(t, want, got, config)
	}
}

// The options are part of the content hash of a trial.
func TestOptionsAreContent(t *testing.T) {
	t.Parallel()
	hashes := map[string]bool{}
	configs := []string{
		"assistant: x", "assistant: y", "assistant: {instructions: '" + instructions + "'}",
		"assistant: {instructions: '" + instructions + "', capabilities: [scroll]}", "assistant: x, max_turns: 3",
	}
	for _, config := range configs {
		p := runnertest.PlanOf(t, newRunner(t, &fakeHub{}),
			"-- eval.yaml --\nname: s\nconfig: {executor: browser, "+config+"}\ntasks: [{id: a, prompt: x}]\n")
		hashes[p.Tasks[0].Hash] = true
		p.Close()
	}
	require.Len(t, hashes, len(configs))
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	hub := &fakeHub{assistants: []*browser.Assistant{{ID: "id-1", Name: "Shopper"}, {ID: "id-2", Name: "Reader"}}}
	for named, want := range map[string]string{
		"shopper": "", "ID-2": "", "": "",
		"Shoper": `waza serve has no assistant "Shoper"; did you mean "Shopper"?`,
		"xyz":    `waza serve has no assistant "xyz"; it has Shopper, Reader`,
	} {
		found := browser.New(hub).Preflight(t.Context(),
			executor.Settings{Options: &browser.Options{Assistant: browser.AssistantSpec{Named: named}}})
		if want == "" {
			require.Empty(t, found, named)
			continue
		}
		require.Len(t, found, 1)
		require.Equal(t, want, found[0].Message)
	}
	hub.noServer = true
	require.Empty(t, browser.New(hub).Preflight(t.Context(),
		executor.Settings{Options: &browser.Options{Assistant: browser.AssistantSpec{Named: "xyz"}}}))
}

// A run reports waiting trials: after a second if no extension is suitable, and every half
// minute.
func TestReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{closed: make(chan struct{}), noServer: true}
		start := time.Now()
		var mu sync.Mutex
		var reports []string
		logf := func(level, format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, fmt.Sprintf("%v %s: %s", time.Since(start), level, fmt.Sprintf(format, args...)))
		}
		after := func(d time.Duration) []string {
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			r := reports
			reports = nil
			return r
		}
		set := func(extensions ...*browser.Extension) {
			hub.mu.Lock()
			defer hub.mu.Unlock()
			hub.noServer, hub.extensions = false, extensions
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		open := func(o *browser.Options) executor.Executor {
			exec, err := browser.New(hub).Open(t.Context(), executor.Settings{Options: o})
			require.NoError(t, err)
			return exec
		}
		anyOf, chosen := open(&browser.Options{}), open(&browser.Options{Extension: "e9"})
		var done sync.WaitGroup
		wait := func(exec executor.Executor, n int) {
			done.Go(func() {
				_, err := exec.(executor.Admitter).Admit(ctx, &executor.Admission{
					Order: &record.Order{RunID: "r", TaskID: "a", Num: n, Task: &eval.Task{ID: "a"}}, Attempt: 1, Logf: logf,
				})
				require.EqualError(t, err, "enough")
			})
		}
		wait(anyOf, 1)
		require.Equal(t, []string{"1s warning: 1 trial waits for a browser: no waza server is running: start one with waza serve"},
			after(time.Second))
		wait(anyOf, 2)
		set()
		require.Equal(t, []string{"30s warning: 2 trials wait for a browser: no extension is connected: start one with waza browser-agent"},
			after(29*time.Second))
		set(&browser.Extension{ID: "e9"})
		require.Equal(t, []string{
			"1m0s warning: 2 trials wait for a browser: no connected extension is available for evaluations: start one " +
				"with waza browser-agent, or set config.extension",
		},
			after(30*time.Second))
		set(&browser.Extension{ID: "e1", Evaluation: true, Trial: "t"}, &browser.Extension{ID: "e9"})
		require.Equal(t, []string{"1m30s info: 2 trials wait for a browser: the extension is busy"}, after(30*time.Second))
		set(&browser.Extension{ID: "e1", Evaluation: true, Trial: "t"}, &browser.Extension{ID: "e2", Evaluation: true, Command: "c"})
		require.Equal(t, []string{"2m0s info: 2 trials wait for a browser: all 2 extensions are busy"}, after(30*time.Second))
		wait(chosen, 3)
		require.Equal(t, []string{"2m1s warning: 1 trial waits for a browser: the extension e9 is not connected"}, after(time.Second))
		cancel(errors.New("enough"))
		done.Wait()
		require.Empty(t, after(time.Minute))
		require.NoError(t, anyOf.Close())
		require.NoError(t, chosen.Close())
	})
}
