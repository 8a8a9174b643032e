package agents_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/agents"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/runner/executor"
	"waza/runner/executor/remote"
)

// directory contains some agents. Watch sends them and ends with gone.
type directory struct {
	agents []*remote.Agent
	gone   error
	kicked []string
}

func (d *directory) Agents(context.Context) ([]*remote.Agent, error) { return d.agents, d.gone }

func (d *directory) Watch(_ context.Context, changed func(*remote.Agent)) error {
	for _, a := range d.agents {
		changed(a)
	}
	return d.gone
}

func (d *directory) Kick(_ context.Context, id, why string) error {
	d.kicked = append(d.kicked, id+" "+why)
	return nil
}

const base = "550e8400-e29b-41d4-a716-446655440000"

func known() *directory {
	since := time.Date(2026, 5, 4, 3, 2, 1, 0, time.Local)
	return &directory{agents: []*remote.Agent{
		{
			ClientID: base + ":1", State: remote.Ready, Tools: []string{}, MaxConcurrency: 3, Running: 1,
			Answered: 7, Version: "1.0\x1b[2J", Address: "127.0.0.1:5000", Since: since,
		},
		{ClientID: base + ":2", State: remote.Gone, Tools: []string{"chat", "look"}, Lacks: []string{"act"}, MaxConcurrency: 1, Since: since},
	}}
}

// call calls waza agents with arguments, flags first.
func call(d *directory, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	done := false
	command := agents.Command(agents.Options{
		Stdout: output.New(&out), Stderr: &errs,
		Connect: func() (remote.Directory, func()) { return d, func() { done = true } },
	})
	for _, c := range append(command.Subcommands, command) {
		c.HideHelp = true // the library's own is shared by all apps of the process
	}
	app := &cli.App{Commands: []*cli.Command{command}, HideHelp: true, ExitErrHandler: func(*cli.Context, error) {}}
	err = app.Run(append([]string{"waza", "agents"}, args...))
	if !done && err == nil {
		err = errors.New("the connection was left open")
	}
	return out.String(), errs.String(), err
}

func TestList(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"list"}} {
		out, _, err := call(known(), args...)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Regexp(t, `^Agent +State +Running +Answered +Tools +Since$`, lines[0])
		require.Regexp(t, base+`:1 +ready +1/3 +7 +any +2026-05-04 03:02:01`, out)
		require.Regexp(t, base+`:2 +gone +0/1 +0 +chat, look +2026-05-04`, out)
	}
	out, _, err := call(known(), "list", "--json")
	require.NoError(t, err)
	require.Contains(t, out, `"clientId": "`+base+`:1"`)
	out, errs, err := call(&directory{}, "list")
	require.NoError(t, err)
	require.Empty(t, out)
	require.Equal(t, "waza: no agents are connected\n", errs)
	out, _, err = call(&directory{}, "list", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"agents": []}`, out)
}

func TestShow(t *testing.T) {
	t.Parallel()
	out, _, err := call(known(), "show", strings.ToUpper(base)+":1")
	require.NoError(t, err)
	require.Contains(t, out, "State     ready\n")
	require.Contains(t, out, "Tools     any\n")
	require.NotContains(t, out, "Lacks")
	require.NotContains(t, out, "\x1b", "an agent must not write to the terminal")
	out, _, err = call(known(), "show", base)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(out, "State "))
	out, _, err = call(known(), "show", "--json", base)
	require.NoError(t, err)
	require.Contains(t, out, `"agents": [`)
	_, _, err = call(known(), "show", "nobody")
	require.Equal(t, exit.Usage, exit.ProblemOf(err).Code)
	require.ErrorContains(t, err, `unknown agent "nobody"`)
	_, _, err = call(known(), "show")
	require.ErrorContains(t, err, "takes one agent, got 0")
}

func TestKick(t *testing.T) {
	t.Parallel()
	d := known()
	out, _, err := call(d, "kick", "--reason", "new version", base+":2")
	require.NoError(t, err)
	require.Equal(t, base+":2 is disconnected\n", out)
	require.Equal(t, []string{base + ":2 new version"}, d.kicked)
	_, _, err = call(d, "kick", base)
	require.ErrorContains(t, err, "means 2 agents")
	require.Len(t, d.kicked, 1)
}

func TestWatchEndsWithTheServer(t *testing.T) {
	t.Parallel()
	d := known()
	d.gone = executor.ErrNoServer
	out, _, err := call(d, "watch", "--json")
	require.Equal(t, 2, strings.Count(out, "\n"))
	problem := exit.ProblemOf(err)
	require.Equal(t, exit.Error, problem.Code)
	require.Equal(t, "start one with waza serve", problem.Hint)
	out, _, err = call(d, "watch")
	require.Contains(t, out, base+":2 gone, 0/1 running, 0 answered, tools: chat, look\n")
	require.Error(t, err)
	_, _, err = call(d, "wach")
	require.ErrorContains(t, err, `unknown command "wach"`)
}
