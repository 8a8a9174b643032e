// Package acp is the executor for agents that speak the Agent Client Protocol
// over their standard streams: GitHub Copilot, opencode, Gemini CLI and others.
// See [Kind] and [CopilotKind]; a new agent is one entry of the table in presets.go.
//
//	Execute ─► pool: an agent process ─► session in the trial's workspace ─► prompts
//	                                         ▲ updates, requests for leave, files
//
// A process serves one trial at a time and many after one another, so that its
// start is paid once per worker. It is killed, with all it started, when a trial
// is cut short, and replaced when it dies.
package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/proc"
	"waza/runner/provider"
	"waza/runner/record"
)

// Kind is the executor for any agent, chosen by config.agent.
var Kind = executor.Kind{
	Kind: eval.Kind{
		Name:    "acp",
		Summary: "Drives an agent that speaks the Agent Client Protocol, in the trial's workspace: a preset, or any program by its command.",
		Options: func() any { return &Options{Permissions: Workspace} },
		Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
	},
	Capabilities: capabilities,
	Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
		return open(s, s.Options.(*Options))
	},
	Preflight: func(_ context.Context, s executor.Settings) []executor.Finding {
		return preflight(s, s.Options.(*Options))
	},
}

// CopilotKind is GitHub Copilot, by the name that most published suites use.
var CopilotKind = executor.Kind{
	Kind: eval.Kind{
		Name: "copilot-sdk", Aliases: []string{"copilot"},
		Summary: "Drives GitHub Copilot CLI: the same as executor acp with agent copilot.",
		Options: func() any { return &Options{Permissions: Workspace} },
		Check: func(c *eval.Check, o any) {
			if c.Has(decode.At("agent")) {
				c.Warnf(decode.At("agent"), decode.CodeNoEffect, "agent has no effect: this executor drives Copilot; write executor: acp to choose")
			}
			*o.(*Options) = *copilot(o)
			check(c, o.(*Options))
		},
	},
	Capabilities: capabilities,
	Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
		return open(s, copilot(s.Options))
	},
	Preflight: func(_ context.Context, s executor.Settings) []executor.Finding {
		return preflight(s, copilot(s.Options))
	},
}

// capabilities: skill invocations are recognised.
func capabilities(executor.Settings) executor.Capabilities {
	return executor.Capabilities{Skills: true}
}

func copilot(options any) *Options {
	o := *options.(*Options)
	o.Agent = Agent{Name: "copilot"}
	return &o
}

// Limits that no suite sets; tests shorten them.
const (
	startTime  = 2 * time.Minute // an agent's start, and its answer to session/new
	cancelTime = 2 * time.Second // for an agent to clean up after session/cancel
)

// acp is open for one run. It owns the agents' processes.
type acp struct {
	suite     *eval.Suite
	preset    *preset
	policy    Policy
	first     time.Duration // first_event_timeout_seconds; 0 means no limit
	startTime time.Duration
	grace     time.Duration
	maxTrial  int64  // bytes an agent may send in one trial
	home      string // temporary directory of the agents; removed by Close
	pool      *pool
	gate      *gate
	worked    atomic.Bool // see agent.worked
	secrets   *provider.Redactor
}

func open(s executor.Settings, o *Options) (executor.Executor, error) {
	p, err := resolve(o, s.Suite)
	if err != nil {
		return nil, err
	}
	x := &acp{
		suite: s.Suite, preset: &p, policy: o.Permissions, startTime: startTime, grace: cancelTime, maxTrial: maxTrial,
		secrets: &provider.Redactor{},
		first:   time.Duration(s.Suite.Config.FirstEventTimeoutSeconds * float64(time.Second)),
		pool:    newPool(s.Workers),
		gate:    newGate(),
	}
	if s.Providers != nil {
		x.secrets = s.Providers.Redactor()
	}
	if x.policy == "" {
		x.policy = Workspace
	}
	if s.Temp != "" {
		if err := os.MkdirAll(s.Temp, 0o700); err != nil {
			return nil, err
		}
	}
	if x.home, err = os.MkdirTemp(s.Temp, "waza-agent-"); err != nil {
		return nil, err
	}
	return x, nil
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func preflight(s executor.Settings, o *Options) []executor.Finding {
	p, err := resolve(o, s.Suite)
	if err != nil {
		return nil // the check told
	}
	if _, err := p.command(environ(os.Environ(), p.env), s.Suite.Dir); err != nil {
		return []executor.Finding{{
			Severity: decode.Warning, Code: decode.CodeUnavailable,
			Message: fmt.Sprintf("every trial will end in error: %v", err),
		}}
	}
	return nil
}

// command returns the first of the ways to start the agent that is installed. A
// program that stands beside the suite is found.
func (p *preset) command(env []string, dir string) ([]string, error) {
	for _, c := range p.commands {
		args := slices.Clone(c)
		if strings.ContainsRune(args[0], filepath.Separator) {
			args[0] = absolute(args[0], dir)
		}
		if _, err := proc.LookPath(args[0], env); err == nil {
			return args, nil
		}
	}
	hint := "install it or correct the command"
	if p.install != "" {
		hint = "install it: " + p.install
	}
	return nil, fmt.Errorf("agent %s: %s is not installed; %s", p.name, p.commands[0][0], hint)
}

// environ is base without what belongs to one task only, and with more.
func environ(base []string, more ...map[string]string) []string {
	var env []string
	for _, kv := range base {
		if !strings.HasPrefix(kv, "WAZA_TASK_ID=") {
			env = append(env, kv)
		}
	}
	for _, m := range more {
		for k, v := range m {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// Close ends the agents.
func (x *acp) Close() error {
	x.pool.close()
	return os.RemoveAll(x.home)
}

// Execute does a trial in a session of its own with one of the agents.
func (x *acp) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	start := time.Now()
	dir, err := t.Dir()
	if err != nil {
		return executor.Outcome{}, err
	}
	given, err := giveSkills(ctx, dir, x.preset.skills, t.Task.Skills)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	preface, err := giveInstructions(dir, x.preset.instructions, x.suite)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	if t.Prepared != nil && (len(given) > 0 || len(x.suite.Instructions) > 0) {
		t.Prepared()
	}
	for {
		a, used, err := x.agent(ctx, t)
		if err != nil {
			return executor.Outcome{}, err
		}
		a.tap.bytes.Store(0)
		rec := newRecord(x.preset, t.Transcript, given)
		begin := proc.Now()
		err = x.converse(ctx, t, a, dir, preface, rec)
		a.proc.EndDetached(begin) // the agent continues with other trials
		died := a.dead()
		if ctx.Err() != nil || errors.Is(err, executor.ErrTimeout) || died {
			a.kill(errClosed)
		}
		again := err != nil && used && died && ctx.Err() == nil && !rec.begun()
		x.pool.put(a)
		if again {
			continue // it had died before this trial, unnoticed so far
		}
		out := rec.outcome() // it records what is left to record
		out.Startup = rec.startup(start)
		if err != nil {
			t.Transcript.Add(record.Entry{Type: record.EntryError, Text: err.Error()})
		}
		return out, err
	}
}

// converse opens the session and sends the prompts, the preface with the first.
func (x *acp) converse(ctx context.Context, t *executor.Trial, a *agent, dir, preface string, rec *recorder) error {
	s, err := a.openSession(ctx, x, t, dir, rec)
	x.gate.pass()
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	defer s.count(ctx)
	for _, text := range append([]string{t.Prompt}, t.FollowUps...) {
		if err := s.prompt(ctx, x, preface, text); err != nil {
			return err
		}
		preface = ""
	}
	return nil
}

// agent returns an agent that has said hello, and whether it did trials before.
func (x *acp) agent(ctx context.Context, t *executor.Trial) (*agent, bool, error) {
	key := poolKey(t)
	if a, err := x.pool.get(ctx, key); a != nil || err != nil {
		return a, true, err
	}
	if err := x.gate.enter(ctx); err != nil {
		x.pool.put(nil)
		return nil, false, err
	}
	a, err := x.start(t, key)
	if err != nil {
		x.gate.pass()
		x.pool.put(nil)
		return nil, false, err
	}
	limit := x.startTime
	if x.first > 0 {
		limit = min(limit, x.first)
	}
	if err := a.greet(ctx, limit); err != nil {
		x.gate.pass()
		a.kill(errClosed)
		x.pool.put(a)
		return nil, false, err
	}
	return a, false, nil
}

// start starts a process for trials like t.
func (x *acp) start(t *executor.Trial, key string) (*agent, error) {
	p := x.preset
	model := map[string]string{}
	if p.modelEnv != "" && t.Model != "" {
		model[p.modelEnv] = t.Model
	}
	// Some agents take the temporary directory for theirs to use unasked, and
	// other trials' workspaces may be in the common one.
	own := map[string]string{"TMPDIR": x.home}
	env := environ(t.Env, own, p.sets, p.asks[x.policy], model, p.env)
	args, err := p.command(env, x.suite.Dir)
	if err != nil {
		return nil, executor.Permanent(err)
	}
	args, port := p.withPort(args)
	if x.policy != Allow {
		args = append(args, p.limits...)
	}
	if t.Model != "" {
		for _, arg := range p.modelArgs {
			args = append(args, strings.ReplaceAll(arg, "{model}", t.Model))
		}
	}
	dir := x.home
	if p.cwd != "" {
		dir = absolute(p.cwd, x.suite.Dir)
	}
	a, err := x.launch(key, args, dir, env)
	if err != nil {
		return nil, executor.Permanent(fmt.Errorf("agent %s: %w", p.name, err))
	}
	a.port = port
	return a, nil
}
