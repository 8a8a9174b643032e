// Package agent implements `waza agent`, which runs a program for the evaluations of a server.
// Call [Command].
package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/secret"
	"waza/cmd/waza/state"
	"waza/rpc/client/agent"
	"waza/runner/executor/remote"
)

// keyVariable holds an agent's key; the server reads the same variable.
const keyVariable = "WAZA_AGENT_KEY"

// defaultServer is where waza serve listens for agents by default.
const defaultServer = "ws://127.0.0.1:8080"

// Options holds the streams: stderr gets the log.
type Options struct {
	output.Streams
}

// Command returns waza agent.
func Command(o Options) *cli.Command {
	const does, server = "Program", "Server"
	return &cli.Command{
		Name: "agent", Category: help.Daemon,
		Usage: "make any program an agent of waza serve",
		Description: `Connects to a server, waits for evaluations and runs the program once for each, in
this directory. The prompt is its standard input and its output is the answer; an exit
code other than 0 is a failure of the agent. The program reports tool calls and tokens
as JSON lines on file descriptor 3, as for executor command. The variables
WAZA_EVALUATION_ID, WAZA_TOOL, WAZA_URL and WAZA_MODEL describe the evaluation.

When the connection breaks, the agent reconnects until it succeeds, and loses no
answer. Ctrl-C ends it and the programs that it started.

Examples:
  waza agent --exec 'my-agent --print'
  waza agent --exec ./extract.py --json-input --tools extract_schema_data --concurrency 4
  waza agent --exec 'llm -m small' --connect wss://eval.example.org --key-env MY_KEY

Exit codes: 130 when a signal ended it, 2 for wrong usage, 3 when the server rejected
the agent at its first try.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "exec", Category: does, Usage: "run the program `COMMAND` with sh -c", DefaultText: "required"},
			&cli.BoolFlag{Name: "json-input", Category: does, Usage: "pass the whole evaluation as JSON to the program instead of the prompt"},
			&cli.StringFlag{
				Name: "tools", Category: does,
				Usage: "accept only evaluations for the tools in `LIST`, separated by commas", DefaultText: "any",
			},
			&cli.IntFlag{Name: "concurrency", Category: does, Usage: "do up to `N` evaluations at once", Value: 1, DefaultText: "1"},
			&cli.StringFlag{
				Name: "connect", Category: server, Usage: "connect to the `URL`, ws:// or wss://", Value: defaultServer,
				DefaultText: defaultServer,
			},
			&cli.StringFlag{
				Name: "id", Category: server, Usage: "register with the client id `UUID`",
				DefaultText: "an id stored in the state directory",
			},
			&cli.StringFlag{
				Name: "key-env", Category: server,
				Usage: "present the key in the environment variable `NAME` to the server", Value: keyVariable,
				DefaultText: keyVariable,
			},
			flags.JSON("write the log as lines of JSON"),
		},
		Action: flags.AtMost(0, o.run),
	}
}

func (shared Options) run(c *cli.Context) error {
	o, err := options(c)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("current directory: %w", err)
	}
	if o.ClientID == "" {
		home, err := state.Dir()
		if err != nil {
			return err
		}
		id, release, err := agent.Identity(filepath.Join(home, "agents"))
		if err != nil {
			return err
		}
		defer release()
		o.ClientID = id
	}
	program, err := agent.NewProgram(c.String("exec"), dir, c.Bool("json-input"))
	if err != nil {
		return err
	}
	o.Do, o.Log = program.Do, shared.Logger(slog.LevelInfo, c.Bool("json"))
	if o.Key != "" && plainText(o.URL) {
		o.Log.Warn("sending the key to another machine without encryption; use wss://")
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	err = agent.Run(ctx, o)
	if rejected := (*agent.RejectedError)(nil); errors.As(err, &rejected) {
		return exit.New(exit.Error, err, "waza reads the agent's key from the variable "+c.String("key-env"))
	}
	return exit.With(exit.Interrupted)
}

// options reads the flags that describe the agent and its server.
func options(c *cli.Context) (agent.Options, error) {
	o := agent.Options{
		URL: c.String("connect"), ClientID: c.String("id"), Concurrency: c.Int("concurrency"),
		Key: secret.Unset(c.String("key-env")),
	}
	secret.Unset(keyVariable) // the program must not inherit these
	if strings.TrimSpace(c.String("exec")) == "" {
		return o, exit.Usagef("waza agent --exec 'my-agent --print'", "--exec is required: the program that does evaluations")
	}
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return o, exit.Usagef(defaultServer, "--connect must be ws://HOST:PORT or wss://HOST:PORT, got %q", o.URL)
	case o.ClientID != "" && !remote.IsID(o.ClientID):
		return o, exit.Usagef("omit --id, and waza makes an id", "--id must be a UUID v4, got %q", o.ClientID)
	case o.Concurrency < 1:
		return o, exit.Usagef("", "--concurrency must be positive, got %d", o.Concurrency)
	case c.IsSet("key-env") && o.Key == "":
		return o, exit.Usagef("", "--key-env: the variable %s is empty or not set", c.String("key-env"))
	}
	if c.IsSet("tools") {
		for tool := range strings.SplitSeq(c.String("tools"), ",") {
			if tool = strings.TrimSpace(tool); tool != "" {
				o.Tools = append(o.Tools, tool)
			}
		}
		if len(o.Tools) == 0 {
			return o, exit.Usagef("omit --tools to accept all tools", "--tools must not be empty")
		}
	}
	return o, nil
}

// plainText reports whether data sent to the address crosses a network unencrypted.
func plainText(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}
