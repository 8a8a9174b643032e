package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"waza/runner/executor"
	"waza/runner/proc"
	"waza/runner/provider"
)

// How long things may take that have no limit of the suite's.
const (
	closeTime = time.Second     // a session or an agent that is asked to close
	reapTime  = 5 * time.Second // news of an agent's end after its output ended
)

var errClosed = errors.New("closed")

// agent is one running agent process and the connection to it. It does one
// trial at a time. Its goroutines are those of the process and the connection
// and one that waits for both; all end with the process, and kill waits for it.
type agent struct {
	preset *preset
	port   int    // of its own server; 0 when nothing is asked there
	key    string // what it was started with, see poolKey
	proc   *proc.Process
	end    context.CancelCauseFunc // kills the process tree
	ctx    context.Context
	conn   *sdk.Connection
	tap    *tap
	out    *outbox
	stderr *tail
	hide   *provider.Redactor
	gone   chan struct{} // closed when the process is reaped and its output read
	hello  sdk.InitializeResponse
	worked *atomic.Bool // an agent of the run has done a turn, so somebody is logged in

	mu      sync.Mutex // guards session
	session *session   // the trial it does; nil between trials
}

// launch starts an agent's process. No context bounds its life.
func (x *acp) launch(key string, args []string, dir string, env []string) (*agent, error) {
	a := &agent{preset: x.preset, key: key, out: newOutbox(), stderr: &tail{}, hide: x.secrets, gone: make(chan struct{}), worked: &x.worked}
	a.hide.Learn(env) // what it says in errors is cut short, which may cut through a key
	a.ctx, a.end = context.WithCancelCause(context.Background())
	pr, pw := io.Pipe()
	process, err := proc.Start(a.ctx, proc.Command{
		Args: args, Dir: dir, Env: env, Stdin: a.out, Stdout: pw, Stderr: a.stderr,
	})
	if err != nil {
		a.end(err)
		return nil, err
	}
	a.proc = process
	context.AfterFunc(a.ctx, func() { pr.CloseWithError(io.EOF) }) // nobody waits for a reader that stopped
	a.tap = newTap(pr, x.maxTrial, a.ctx.Done(), a.end)
	a.tap.hide = a.hide
	a.conn = sdk.NewConnection(a.handle, a.out, a.tap)
	a.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would quote messages
	close(a.tap.open)
	go func() {
		_ = process.Wait() // ended tells of it
		process.Sweep()    // tools in sessions of their own outlive an agent that dies
		pw.Close()
		a.out.Close()
		<-a.conn.Done()
		close(a.gone)
	}()
	return a, nil
}

// kill ends the process and all it started, and waits for that. The first cause counts.
func (a *agent) kill(cause error) {
	a.end(cause)
	<-a.gone
}

// close lets the agent end by itself, as it does when its input ends, and then kills it.
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

// dead reports whether the agent takes no more trials.
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

// ended says how an agent ended that was not meant to.
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
	msg := a.preset.name + ": the agent " + how + " in mid-trial"
	var exit *proc.ExitError
	if err := a.proc.Wait(); errors.As(err, &exit) {
		msg += ": " + exit.Error()
	}
	return a.explain(msg)
}

// explain adds what the agent itself may have said about a fault.
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

// greet says hello, within the limit.
func (a *agent) greet(ctx context.Context, limit time.Duration) error {
	err := a.bounded(ctx, limit, "initialize", func(ctx context.Context) (err error) {
		a.hello, err = sdk.SendRequest[sdk.InitializeResponse](a.conn, ctx, sdk.AgentMethodInitialize, sdk.InitializeRequest{
			ProtocolVersion:    sdk.ProtocolVersionNumber,
			ClientInfo:         &sdk.Implementation{Name: "waza", Version: "1"},
			ClientCapabilities: sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}},
		})
		return err
	})
	if err != nil {
		return err
	}
	if v := a.hello.ProtocolVersion; v != sdk.ProtocolVersionNumber {
		return executor.Permanent(fmt.Errorf("%s: the agent speaks version %d of the Agent Client Protocol, and waza version %d; install another version of it (%s)",
			a.preset.name, v, sdk.ProtocolVersionNumber, orUnknown(a.preset.install)))
	}
	return nil
}

func orUnknown(install string) string {
	if install == "" {
		return "no install line is known"
	}
	return install
}

// bounded does one request and turns what goes wrong into the end of a trial.
// With no answer within the limit the trial ends in timeout.
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

// authRequired is the protocol's code for an agent that nobody has logged in to.
// Gemini hands on the status of its provider instead.
const authRequired = -32000

// fault turns an error answer, or the lack of an answer, into the end of a trial.
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
	// To a prompt some agents answer with this code whatever went wrong.
	told := re.Code == authRequired && what != sdk.AgentMethodSessionPrompt ||
		(re.Code == authRequired || re.Code == http.StatusUnauthorized) && !a.worked.Load()
	if told || a.saysLoggedOut(msg) {
		return a.loggedOut(msg)
	}
	return fmt.Errorf("%s: %s: %s", a.preset.name, what, msg)
}

// saysLoggedOut reports whether words of the agent mean that nobody is logged
// in. A task can make an agent say them, so they mean nothing once a turn of the
// run has ended well.
func (a *agent) saysLoggedOut(words string) bool {
	p := a.preset.loggedOut
	return p != nil && !a.worked.Load() && p().MatchString(words)
}

// loggedOut stops the run: all its trials would meet the same.
func (a *agent) loggedOut(said string) error {
	hint := a.preset.login
	if hint == "" {
		hint = "use the agent's own command"
	}
	return &executor.StopError{Err: fmt.Errorf("%s: the agent is not logged in; it says: %s; to log in: %s", a.preset.name, said, hint)}
}

// handle takes all that the agent sends by itself.
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
