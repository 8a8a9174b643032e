// Package mcp lets agents work with suites and runs over the Model Context Protocol. The command
// line calls [Main].
//
//	agent ─ stdio ─► stdio.go ─► mcp.Server ─► tools ─► Daemon ─► runner
//	                 limits       the SDK       │        by JSON-RPC
//	                                            └──► runner: results, transcripts
//
// The server is a client of the daemon in its own process. Its tools call the daemon's methods,
// so a run that an agent starts is recorded, listed and cancelled like all others. This package
// adapts the results to agents, whose context is small: summaries first, failures with their
// reasons, long texts in pages.
//
// A tool is a function in the file of its family, and a line in tools.go.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/rpc/host"
	"waza/runner"
)

// A Daemon serves JSON-RPC in this process. An rpc.Server is one.
type Daemon interface {
	// ServeStdio serves one client until in ends, and then cancels its runs.
	ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error
	// Shutdown ends all connections and runs. It returns an error if ctx ends before they do.
	Shutdown(ctx context.Context) error
}

// Options configure [Main]. Dir, Daemon and Runner are required.
type Options struct {
	// Dir is the directory for relative paths, as an absolute path. Suites and skills outside of
	// it are refused.
	Dir string
	// Daemon starts runs with Runner. Main shuts it down, which closes Runner.
	Daemon Daemon
	// Runner finds runs.
	Runner *runner.Runner
	// Logger receives messages for people, never protocol messages; nil discards them.
	Logger *slog.Logger
	// Version is the version of the program; empty means "dev".
	Version string
}

// The exit codes of Main.
const (
	exitOK          = 0
	exitClientGone  = 1
	exitUsage       = 2
	exitInterrupted = 130
)

const (
	// drainTime limits the time, after the input has ended, for calls that do not wait for a
	// run.
	drainTime = 5 * time.Second
	// cleanupTime limits the time for runs to end their processes after the client is gone.
	cleanupTime = 4 * time.Second
)

var errClientGone = errors.New("client disconnected")

// Main serves one client on in and out until in ends, out is closed or ctx ends. Then it cancels
// the runs that the client started. It returns the exit code: 0 if the input has ended, 1 if the
// client was gone before that, 2 if the server could not be set up, 130 if ctx ended first.
//
// Main owns in and out. Get out from [host.TakeStdout], so that only protocol messages are
// written to it. Main writes messages for people to stderr.
func Main(ctx context.Context, in, out *os.File, stderr io.Writer, o Options) int {
	host.IgnoreBrokenPipe()
	s, err := newServer(o)
	if err != nil {
		fmt.Fprintf(stderr, "waza: %v\n", err)
		return exitUsage
	}
	err = s.serve(ctx, in, out)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	s.daemon.close(limit)
	if serr := o.Daemon.Shutdown(limit); serr != nil {
		fmt.Fprintf(stderr, "waza: some runs did not end in time: %v\n", serr)
	}
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "waza: %v\n", err) // stderr may be closed, too
	return exitClientGone
}

// A server serves one client. It has the goroutines of the SDK's session and of the daemon's
// connection, and one that watches the output; [Main] waits for all.
type server struct {
	dir    string // absolute, without links
	runner *runner.Runner
	daemon *daemon
	mcp    *sdk.Server
	log    *slog.Logger

	life   context.Context // ends when the client leaves, which ends all waits for runs
	leave  context.CancelFunc
	leaves chan struct{} // closed when the input has ended
}

func newServer(o Options) (*server, error) {
	dir, err := realDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, runner: o.Runner, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), leaves: make(chan struct{})}
	if s.daemon, err = dial(o.Daemon, dir); err != nil {
		return nil, err
	}
	s.life, s.leave = context.WithCancel(context.Background())
	s.mcp = sdk.NewServer(&sdk.Implementation{Name: "waza", Title: "waza", Version: cmp.Or(o.Version, "dev")}, &sdk.ServerOptions{
		Instructions: instructions, Logger: s.log, Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{},
		},
		CompletionHandler: s.complete,
	})
	s.mcp.AddReceivingMiddleware(s.guard)
	s.addTools()
	s.addResources()
	s.addPrompts()
	return s, nil
}

// instructions are the texts about the server that clients pass to their models.
const instructions = `waza evaluates AI agents and their skills with suites of tasks (eval.yaml). ` +
	`Find suites with waza_eval_list, check one with waza_eval_validate after each change, and run it with waza_run: ` +
	`it returns a summary and the failures with their reasons. waza_run_transcript shows what the agent did in a trial. ` +
	`After a change of the skill, run the suite again and use waza_run_compare to see whether it improved. ` +
	`Runs call models, which costs money and time: choose tasks while you work, and run the whole suite at the end.`

// serve serves the client until it leaves. It returns nil if the input has ended.
func (s *server) serve(ctx context.Context, in, out *os.File) error {
	defer s.leave()
	gone := make(chan struct{})
	defer host.WatchOutput(out, func() { close(gone) })()
	session, err := s.mcp.Connect(context.WithoutCancel(ctx), &stdio{in: in, out: out, ended: func() { close(s.leaves); s.leave() }}, nil)
	if err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = session.Wait() // the reason is known from the event that ended the session
	}()
	err = s.wait(ctx, gone, over)
	s.leave()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = session.Close()
		<-over
	}()
	select {
	case <-closed:
	case <-time.After(drainTime): // a write to a client that does not read cannot be interrupted
	}
	return err
}

// wait waits until the client has left. It returns an error unless the input has ended.
func (s *server) wait(ctx context.Context, gone, over <-chan struct{}) error {
	select {
	case <-over:
	case <-gone:
		return errClientGone
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.leaves:
		select {
		case <-over:
		case <-time.After(drainTime):
		case <-gone:
		case <-ctx.Done():
		}
		return nil
	}
	select {
	case <-s.leaves:
		return nil
	default:
		return errClientGone // the output broke
	}
}
