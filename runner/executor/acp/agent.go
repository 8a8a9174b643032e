package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"waza/runner/executor"
	"waza/runner/internal/secrets"
	"waza/runner/proc"
)

// Time limits that suites cannot set.
const (
	closeTime = time.Second     // for a session or an agent to close on request
	reapTime  = 5 * time.Second // for the exit of an agent after its output ended
)

var errClosed = errors.New("closed")

// agent is a running agent process and the connection to it. It executes one trial at a time.
// Its goroutines belong to the process and the connection, and one waits for both. They all end
// with the process, and kill waits for them.
type agent struct {
	preset *preset
	port   int    // port of its own server; 0 if it is not queried
	key    string // identifies how it was started, see poolKey
	proc   *proc.Process
	end    context.CancelCauseFunc // kills the process tree
	ctx    context.Context
	conn   *sdk.Connection
	tap    *tap
	out    *outbox
	stderr *tail
	hide   *secrets.Redactor
	gone   chan struct{} // closed when the process is reaped and its output read
	hello  sdk.InitializeResponse
	// sharesFiles means that the agent and this process see the same workspace, not copies.
	sharesFiles bool
	worked      *atomic.Bool // an agent of the run has finished a turn, so a user is logged in

	mu      sync.Mutex // guards session
	session *session   // of the current trial; nil between trials
}

// launch starts the process of an agent. No context bounds its life. home is its temporary
// directory, which it removes at its end unless all processes share it.
func (x *acp) launch(key string, args []string, dir string, env []string, home string, box *proc.Sandbox) (*agent, error) {
	a := &agent{
		preset: x.preset, key: key, out: newOutbox(), stderr: &tail{}, hide: x.secrets, gone: make(chan struct{}), worked: &x.worked,
		sharesFiles: !x.elsewhere(),
	}
	a.hide.Learn(env) // its error output is truncated, possibly within a key
	a.ctx, a.end = context.WithCancelCause(context.Background())
	pr, pw := io.Pipe()
	process, err := proc.Start(a.ctx, proc.Command{
		Args: args, Dir: dir, Env: env, Stdin: a.out, Stdout: pw, Stderr: a.stderr, Sandbox: box,
	})
	if err != nil {
		a.end(err)
		if home != x.home {
			_ = os.RemoveAll(home)
		}
		return nil, err
	}
	a.proc = process
	context.AfterFunc(a.ctx, func() { pr.CloseWithError(io.EOF) }) // a reader that stopped must not block writers
	a.tap = newTap(pr, x.maxTrial, a.ctx.Done(), a.end)
	a.tap.hide = a.hide
	a.conn = sdk.NewConnection(a.handle, a.out, a.tap)
	a.conn.SetLogger(slog.New(slog.DiscardHandler)) // the logger would quote messages
	close(a.tap.open)
	go func() {
		_ = process.Wait() // ended reports the error
		process.Sweep()    // tools in their own process sessions outlive an agent that dies
		pw.Close()
		a.out.Close()
		<-a.conn.Done()
		if home != x.home {
			_ = os.RemoveAll(home)
		}
		close(a.gone)
	}()
	return a, nil
}

// kill ends the process and everything it started, and waits for that. The first cause is kept.
func (a *agent) kill(cause error) {
	a.end(cause)
	<-a.gone
}

// close closes the input of the agent, gives it time to exit, and then kills it.
func (a *agent) close() {
	a.out.Close()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-a.gone:
	case <-timer.C:
	}
	a.kill(errClosed)
}

// dead reports whether the agent can take no more trials.
func (a *agent) dead() bool {
	select {
	case <-a.proc.Done():
		return true
	case <-a.conn.Done():
		return true
	case <-a.ctx.Done():
		return true
	default:
		return false
	}
}

// ended returns an error that describes how an agent ended unexpectedly.
func (a *agent) ended() error {
	timer := time.NewTimer(reapTime)
	defer timer.Stop()
	how := "closed its output"
	select {
	case <-a.proc.Done():
		how = "ended"
	case <-timer.C:
	}
	a.end(errClosed)
	switch cause := context.Cause(a.ctx); {
	case errors.Is(cause, errFlood), errors.Is(cause, errLong):
		return fmt.Errorf("%s: %w", a.preset.name, cause)
	}
	msg := a.preset.name + ": the agent " + how + " during the trial"
	var exit *proc.ExitError
	if err := a.proc.Wait(); errors.As(err, &exit) {
		msg += ": " + exit.Error()
	}
	return a.explain(msg)
}

// explain adds the recent error output of the agent to a message.
func (a *agent) explain(msg string) error {
	said := a.stderr.lines(5)
	if noise := a.tap.noise(); noise != "" && !a.tap.heard.Load() {
		msg += "; " + noise
	}
	if said != "" {
		msg += ": " + said
	}
	if a.saysLoggedOut(said) {
		return a.loggedOut(a.hide.Text(said))
	}
	return errors.New(a.hide.Text(msg))
}

// greet sends initialize and checks the protocol version, within the limit.
func (a *agent) greet(ctx context.Context, limit time.Duration) error {
	err := a.bounded(ctx, limit, "initialize", func(ctx context.Context) (err error) {
		a.hello, err = sdk.SendRequest[sdk.InitializeResponse](a.conn, ctx, sdk.AgentMethodInitialize, sdk.InitializeRequest{
			ProtocolVersion:    sdk.ProtocolVersionNumber,
			ClientInfo:         &sdk.Implementation{Name: "waza", Version: "1"},
			ClientCapabilities: sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{ReadTextFile: a.sharesFiles, WriteTextFile: a.sharesFiles}},
		})
		return err
	})
	if err != nil {
		return err
	}
	if v := a.hello.ProtocolVersion; v != sdk.ProtocolVersionNumber {
		return executor.Permanent(fmt.Errorf("%s: the agent speaks version %d of the Agent Client Protocol, but waza "+
			"needs version %d; install a different version of the agent (%s)",
			a.preset.name, v, sdk.ProtocolVersionNumber, orUnknown(a.preset.install)))
	}
	return nil
}

func orUnknown(install string) string {
	if install == "" {
		return "its install command is unknown"
	}
	return install
}

// bounded sends one request and converts a fault to an error that ends the trial. Without an
// answer within the limit the trial ends in timeout.
func (a *agent) bounded(ctx context.Context, limit time.Duration, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	err := do(ctx)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, errSlow):
		err := a.explain(fmt.Sprintf("%s: the agent did not answer %s within %s", a.preset.name, what, limit))
		if executor.AsStop(err) != nil {
			return err
		}
		return fmt.Errorf("%w: %w", executor.ErrTimeout, err)
	case cause != nil:
		return cause
	}
	return a.fault(what, err)
}

var errSlow = errors.New("no answer in time")

// authRequired is the protocol's error code for an agent without a logged-in user. Gemini
// returns the HTTP status of its provider instead.
const authRequired = -32000

// fault converts an error answer, or a missing answer, to an error that ends the trial.
func (a *agent) fault(what string, err error) error {
	var re *sdk.RequestError
	if a.dead() {
		return a.ended()
	}
	if !errors.As(err, &re) {
		return fmt.Errorf("%s: %s: %s", a.preset.name, what, a.hide.Text(err.Error()))
	}
	msg := re.Message
	if data, merr := json.Marshal(re.Data); merr == nil && re.Data != nil {
		data = a.hide.JSON(data)
		msg += " " + string(data[:min(len(data), 2<<10)])
	}
	msg = a.hide.Text(msg)
	// Some agents answer every failed prompt with this code.
	loggedOut := re.Code == authRequired && what != sdk.AgentMethodSessionPrompt ||
		(re.Code == authRequired || re.Code == http.StatusUnauthorized) && !a.worked.Load()
	if loggedOut || a.saysLoggedOut(msg) {
		return a.loggedOut(msg)
	}
	return fmt.Errorf("%s: %s: %s", a.preset.name, what, msg)
}

// saysLoggedOut reports whether a text of the agent means that no user is logged in. A task can
// make an agent write such a text, so it is ignored after a turn of the run has succeeded.
func (a *agent) saysLoggedOut(words string) bool {
	p := a.preset.loggedOut
	return p != nil && !a.worked.Load() && p().MatchString(words)
}

// loggedOut returns an error that stops the run, because all trials would fail in the same way.
func (a *agent) loggedOut(said string) error {
	hint := cmp.Or(a.preset.login, "use the agent's own command")
	return &executor.StopError{Err: fmt.Errorf("%s: the agent is not logged in: %s; to log in: %s", a.preset.name, said, hint)}
}

// handle handles requests and notifications of the agent.
func (a *agent) handle(_ context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
	defer a.tap.handled()
	var to struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(params, &to) != nil {
		return nil, sdk.NewInvalidParams(nil)
	}
	a.mu.Lock()
	s := a.session
	a.mu.Unlock()
	if s == nil || s.id != to.SessionID {
		return nil, sdk.NewInvalidParams(map[string]any{"error": "no such session"})
	}
	return s.handle(method, params)
}

func (a *agent) setSession(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = s
}
