// Package acp is the executor for agents that speak the Agent Client Protocol over their
// standard streams: GitHub Copilot, opencode, Gemini CLI and others. See [Kind] and
// [CopilotKind]. A new agent is one entry of the table in presets.go.
//
//	Execute ─► pool: an agent process ─► session in the trial's workspace ─► prompts
//	                                         ▲ updates, permission requests, files
//
// A process executes one trial at a time and many in sequence, so that its start is paid once
// per worker. It is killed with all its children when a trial is cut short, and replaced when it
// dies.
package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/internal/secrets"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Kind is the executor for any agent, chosen by config.agent.
var Kind = newKind(eval.Kind{
	Name:    "acp",
	Summary: "Drives an agent that speaks the Agent Client Protocol, in the trial's workspace: a preset, or any program by its command.",
	Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
}, func(o *Options) *Options { return o })

// Executors that drive one agent each, under the names that published suites use.
var (
	// CopilotKind drives GitHub Copilot.
	CopilotKind = agentKind("copilot", "Copilot",
		"Drives GitHub Copilot CLI: the same as executor acp with agent copilot.", "copilot-sdk", "copilot")
	// ClaudeKind drives Claude Code.
	ClaudeKind = agentKind("claude-code", "Claude Code",
		"Drives Claude Code: the same as executor acp with agent claude-code.", "claude-cli", "claude-code")
	// CodexKind drives Codex.
	CodexKind = agentKind("codex", "Codex", "Drives Codex: the same as executor acp with agent codex.", "codex")
)

// agentKind returns the executor that drives one agent of the presets. Messages call the agent
// title.
func agentKind(agent, title, summary, name string, aliases ...string) executor.Kind {
	of := func(o *Options) *Options {
		own := *o
		own.Agent = Agent{Name: agent}
		return &own
	}
	return newKind(eval.Kind{
		Name: name, Aliases: aliases, Summary: summary,
		Check: func(c *eval.Check, options any) {
			if c.Has(decode.At("agent")) {
				c.Warnf(decode.At("agent"), decode.CodeNoEffect,
					"agent has no effect: this executor drives %s; use executor: acp to choose an agent", title)
			}
			o := options.(*Options)
			*o = *of(o)
			check(c, o)
		},
	}, of)
}

// newKind completes an executor. It uses the options that of returns for those of a suite.
func newKind(kind eval.Kind, of func(*Options) *Options) executor.Kind {
	kind.TakesEffort, kind.TakesServers, kind.TakesSkills = true, true, true
	kind.Options = func() any { return &Options{Permissions: Workspace} }
	options := func(s executor.Settings) *Options { return of(s.Options.(*Options)) }
	return executor.Kind{
		Kind: kind, Programs: true, Agents: true, Streams: true,
		Capabilities: func(s executor.Settings) executor.Capabilities {
			if _, ok := s.Options.(*Options); !ok {
				return can(s, nil)
			}
			return can(s, options(s))
		},
		Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
			return open(s, options(s))
		},
		Preflight: func(_ context.Context, s executor.Settings) []executor.Finding {
			return preflight(s, options(s))
		},
		Needs: func(s executor.Settings) []record.Need { return needs(s, options(s)) },
	}
}

// Limits that suites cannot set. Tests shorten them.
const (
	startTime  = 2 * time.Minute // for an agent to start, and to answer session/new
	cancelTime = 2 * time.Second // for an agent to clean up after session/cancel
)

// acp is an executor that is open for one run. It owns the processes of the agents.
type acp struct {
	suite     *eval.Suite
	preset    *preset
	policy    Policy
	judges    bool // the agents can only call the tools of their trial; policy is Deny
	startTime time.Duration
	grace     time.Duration
	maxTrial  int64  // maximum number of bytes an agent can send in one trial
	home      string // temporary directory of the agents; removed by Close
	pool      *pool
	gate      *gate
	worked    atomic.Bool // see agent.worked
	secrets   *secrets.Redactor
	sandboxes *sandbox.Sandboxes
	files     []string // of the suite that the command of the agent names
}

func open(s executor.Settings, o *Options) (executor.Executor, error) {
	p, err := resolve(o, s.Suite)
	if err != nil {
		return nil, err
	}
	x := &acp{
		suite: s.Suite, preset: &p, policy: o.Permissions, startTime: startTime, grace: cancelTime, maxTrial: maxTrial,
		secrets: &secrets.Redactor{},
		pool:    newPool(s.Workers),
		gate:    newGate(),

		sandboxes: s.Sandboxes, files: o.Refers(s.Suite, nil),
	}
	if s.Providers != nil {
		x.secrets = s.Providers.Redactor()
	}
	x.policy = cmp.Or(x.policy, Workspace)
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
		return nil // the check has reported it
	}
	if _, err := p.command(environ(os.Environ(), p.env), s.Suite.Config.Sandbox.InImage(), s.Suite.Dir); err != nil {
		return []executor.Finding{{
			Severity: decode.Warning, Code: decode.CodeUnavailable,
			Message: fmt.Sprintf("every trial will end in error: %v", err),
		}}
	}
	return nil
}

// command returns the first command of the preset whose program is installed. Elsewhere, in an image,
// it cannot be looked up, and command returns the first one. A relative path is relative to the suite.
func (p *preset) command(env []string, elsewhere bool, dir string) ([]string, error) {
	for _, c := range p.commands {
		args := slices.Clone(c)
		if strings.ContainsRune(args[0], filepath.Separator) {
			args[0] = absolute(args[0], dir)
		}
		if _, err := proc.LookPath(args[0], env); err == nil || elsewhere {
			return args, nil
		}
	}
	hint := "install it, or correct the command"
	if p.install != "" {
		hint = "install it: " + p.install
	}
	return nil, fmt.Errorf("agent %s: %s is not installed; %s", p.name, p.commands[0][0], hint)
}

// environ returns base without variables that belong to a single task, followed by more.
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

// Close ends the agents and removes their temporary directory.
func (x *acp) Close() error {
	x.pool.close()
	return os.RemoveAll(x.home)
}

// Execute runs a trial in a new session with one of the agents.
func (x *acp) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	start := time.Now()
	dir, err := t.Dir()
	if err != nil {
		return executor.Outcome{}, err
	}
	cwd, err := t.Start() // agents look for skills and instructions in their start directory
	if err != nil {
		return executor.Outcome{}, err
	}
	given, err := giveSkills(ctx, cwd, x.preset.skills, t.Task.Skills, x.suite)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	preface, err := giveInstructions(cwd, x.preset.instructions, x.suite, t.Task)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	if t.Prepared != nil && (len(given) > 0 || len(x.suite.Instructions)+len(t.Task.Instructions) > 0) {
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
		err = x.converse(ctx, t, a, dir, preface, rec, start)
		a.proc.EndDetached(begin) // the agent will execute other trials
		died := a.dead()
		if ctx.Err() != nil && !executor.Decided(ctx) || errors.Is(err, executor.ErrTimeout) || died {
			a.kill(errClosed)
		} else if x.confined() || t.EndAgent {
			a.close() // its sandbox is that of the trial, or it must not see what follows
		}
		again := err != nil && used && died && ctx.Err() == nil && !rec.started()
		x.pool.put(a)
		if again {
			continue // it had died before this trial, unnoticed
		}
		out := rec.outcome() // also records pending entries
		out.Startup = rec.startup(start)
		if end := (*executor.EndError)(nil); err != nil && !errors.As(err, &end) {
			t.Transcript.Add(record.Entry{Type: record.EntryError, Text: err.Error()})
		}
		return out, err
	}
}

// converse opens the session and sends the prompts. It puts the preface before the first one.
func (x *acp) converse(ctx context.Context, t *executor.Trial, a *agent, dir, preface string, rec *recorder, start time.Time) error {
	s, err := a.openSession(ctx, x, t, dir, rec)
	x.gate.pass()
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	defer func() { s.count(context.WithoutCancel(ctx)) }() // an agent that did not stop in time is dead, and not asked
	return t.Converse(ctx, func(limited context.Context, _ int, text string) (executor.Outcome, error) {
		err := s.prompt(limited, x, preface, text)
		if end := (*executor.EndError)(nil); err != nil && !errors.As(err, &end) {
			return executor.Outcome{}, err
		}
		preface = ""
		if t.After == nil { // the outcome is needed only at the end
			return executor.Outcome{}, err
		}
		s.count(ctx)
		out := rec.outcome()
		out.Startup = rec.startup(start)
		return out, err
	})
}

// agent returns an initialized agent and reports whether it executed trials before.
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
	if first := executor.FirstEvent(x.suite, t.Task); first > 0 {
		limit = min(limit, first)
	}
	if err := a.greet(ctx, limit); err != nil {
		x.gate.pass()
		a.kill(errClosed)
		x.pool.put(a)
		return nil, false, err
	}
	return a, false, nil
}

// switches returns the variables of confined that apply.
func (p *preset) switches(confined bool, policy Policy) map[string]string {
	if !confined {
		return nil
	}
	return p.confined[policy]
}

// confined reports whether each process of an agent is in the sandbox of one trial.
func (x *acp) confined() bool { return x.sandboxes.Confine() }

// elsewhere reports whether the files of agents are in an image.
func (x *acp) elsewhere() bool { return x.sandboxes.Tier() == record.TierContainer }

// newHome returns the temporary directory of a new process. In sandboxes, each has its own.
func (x *acp) newHome() (string, error) {
	if !x.confined() {
		return x.home, nil
	}
	return os.MkdirTemp(x.home, "")
}

// homeOf returns the home directory in an environment.
func homeOf(env []string) string {
	for _, kv := range slices.Backward(env) {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok {
			return home
		}
	}
	return ""
}

// socketsOf returns the files through which a server is reached.
func socketsOf(s *executor.Server) []string {
	var files []string
	for _, arg := range s.Args {
		if info, err := os.Stat(arg); filepath.IsAbs(arg) && err == nil && info.Mode()&os.ModeSocket != 0 {
			files = append(files, arg)
		}
	}
	return files
}

// inside returns servers of waza as agents in a sandbox start them.
func (x *acp) inside(servers []executor.Server) ([]executor.Server, error) {
	servers = slices.Clone(servers)
	for i := range servers {
		s := &servers[i]
		command, err := x.sandboxes.Own(s.Command, s.Args)
		if err != nil {
			return nil, executor.Permanent(fmt.Errorf("mcp server %s: %w", s.Name, err))
		}
		s.Command, s.Args = command[0], command[1:]
	}
	return servers, nil
}

// start starts a process for trials like t.
func (x *acp) start(t *executor.Trial, key string) (*agent, error) {
	p := x.preset
	model := map[string]string{}
	if p.modelEnv != "" && t.Model != "" {
		model[p.modelEnv] = t.Model
	}
	// Some agents use the temporary directory without asking, and the common one can contain the
	// workspaces of other trials.
	home, err := x.newHome()
	if err != nil {
		return nil, err
	}
	own := map[string]string{"TMPDIR": home}
	env := environ(t.Env, own, p.sets, p.asks[x.policy], p.switches(x.confined(), x.policy), model, p.env)
	args, err := p.command(env, x.elsewhere(), x.suite.Dir)
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
	dir := home
	if p.cwd != "" {
		dir = absolute(p.cwd, x.suite.Dir)
	}
	workspace, err := t.Dir()
	if err != nil {
		return nil, err
	}
	inHome := func(names []string) []string {
		var paths []string
		for _, name := range names {
			paths = append(paths, filepath.Join(homeOf(env), filepath.FromSlash(name)))
		}
		return paths
	}
	read, reach := slices.Clone(x.files), []string(nil)
	for i := range t.Servers {
		s := &t.Servers[i]
		read = append(read, socketsOf(s)...)
		if !x.elsewhere() { // a container has waza at its own path
			read = append(read, s.Command)
		}
		if u, err := url.Parse(s.URL); err == nil && u.Host != "" {
			reach = append(reach, u.Host)
		}
	}
	box := x.sandboxes.For(sandbox.View{
		Env: env, Write: []string{home, workspace}, Read: read, Logins: inHome(p.logins), Personal: inHome(p.personal), Reach: reach, Task: t.Task.Sandbox, Workspace: workspace,
		OnRefused: t.Transcript.AddRefused,
	})
	a, err := x.launch(key, args, dir, env, home, box)
	if err != nil {
		return nil, executor.Permanent(fmt.Errorf("agent %s: %w", p.name, err))
	}
	a.port = port
	return a, nil
}
