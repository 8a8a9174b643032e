// Package state opens the state directory for commands: its recorded runs, and its server. Call
// [Opener.Runner] in commands that read runs, and [Opener.Record] in those that record some.
package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/fleet"
	"waza/cmd/waza/output"
	"waza/rpc/gateway/link"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/executor/router"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/report/formats"
	"waza/runner/sandbox"
)

// Dir returns the absolute path of the state directory.
func Dir() (string, error) {
	dir, err := journal.DefaultDir()
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// Server returns a client of the server of the state directory. The client connects when it is
// first used.
func Server() *link.Client {
	dir, err := Dir()
	if err != nil { // runner.New reports the error
		dir = os.DevNull
	}
	return link.NewClient(dir)
}

// Hubs connect executors to the clients of a server.
type Hubs struct {
	Agents    remote.Hub
	Browsers  browser.Hub
	Messenger router.Sender
}

// HubsOf returns hubs that reach the clients of a server in another process.
func HubsOf(c *link.Client) Hubs {
	return Hubs{Agents: c, Browsers: c.Browsers(), Messenger: c.Messenger()}
}

// Opener opens runners for the commands of one process, and reports to its streams.
type Opener struct {
	output.Streams
	// Version is the version of this program.
	Version string
}

// Fleet returns the parts of the program that the commands of fleets need.
func (o Opener) Fleet() fleet.Program {
	return fleet.Program{Streams: o.Streams, Version: o.Version, StateDir: Dir, Tiers: sandbox.Offered}
}

// options returns options for a runner that reaches agents and browsers through hubs. Nothing
// connects to them before a suite needs it.
func (o Opener) options(hubs Hubs, log *slog.Logger) runner.Options {
	return runner.Options{
		Reports:   formats.Always(),
		Executors: plan.Executors.With(remote.New(hubs.Agents), browser.New(hubs.Browsers), router.New(hubs.Messenger)),
		Fleet:     fleet.Backend(o.Fleet(), log), Logger: log,
		Sandboxes: sandbox.Of,
	}
}

// Reader is what commands need that record no runs.
type Reader struct {
	output.Streams
	Runner func() (*Opened, error)
}

// Reader returns what commands need that record no runs.
func (o Opener) Reader() Reader { return Reader{Streams: o.Streams, Runner: o.Runner} }

// Runner opens the runner of a command that records no runs. It reaches agents and browsers
// through the server of the state directory.
func (o Opener) Runner() (*Opened, error) {
	r, err := o.RunnerIn("")
	if err == nil {
		r.WarnExposed()
	}
	return r, err
}

// RunnerIn opens the same runner for a temporary state directory.
func (o Opener) RunnerIn(dir string) (*Opened, error) {
	options := o.options(HubsOf(Server()), o.Logger(slog.LevelWarn, false))
	options.StateDir = dir
	rn, err := runner.New(options)
	if err != nil {
		return nil, err
	}
	return &Opened{Runner: rn, stderr: o.Stderr}, nil
}

// Opened is an open runner, and the stream for warnings about what it has recorded.
type Opened struct {
	*runner.Runner
	stderr io.Writer
}

// WarnExposed reports that other users can reach the state directory.
func (r *Opened) WarnExposed() {
	if exposed := journal.Exposure(r.Catalog().Store.Dir()); exposed != "" {
		fmt.Fprintf(r.stderr, "waza: warning: %s\n", output.Clean(exposed))
	}
}

// Find finds a run like [catalog.Catalog.Find], in the project of the current directory.
func (r *Opened) Find(ref string) (record.Handle, error) {
	h, err := r.Catalog().Find(".", ref)
	if !errors.Is(err, record.ErrRunNotFound) || ref != catalog.LatestRun {
		return h, err
	}
	if infos, lerr := r.Catalog().List(1); lerr == nil && len(infos) == 0 {
		return nil, exit.Usagef("waza run SUITE records one", "no runs are recorded")
	}
	return nil, err
}

// WarnDamage reports that the record of a run is damaged, and returns its damage.
func (r *Opened) WarnDamage(h record.Handle) (*record.Damage, error) {
	damage, err := h.Damage()
	if err == nil {
		output.WarnDamage(r.stderr, h.ID(), damage)
	}
	return damage, err
}

// CarryOut starts a run and waits for its end. If ctx ends before, it cancels the run.
func (r *Opened) CarryOut(ctx context.Context, p *plan.Plan) (*runner.Run, error) {
	run, err := r.Start(p)
	if err != nil {
		return nil, err
	}
	select {
	case <-run.Done():
		return run, nil
	case <-ctx.Done():
		run.Cancel()
		<-run.Done()
		return nil, context.Cause(ctx)
	}
}
