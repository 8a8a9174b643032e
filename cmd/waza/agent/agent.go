// Package agent is `waza agent`: a program that does evaluations for a server. Call
// [Command].
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
	"waza/cmd/waza/secret"
	"waza/rpc/gateway/agents/client"
)

// keyVariable has an agent's key; the server reads the same one.
const keyVariable = "WAZA_AGENT_KEY"

// defaultServer is where waza serve listens for agents unless it is configured otherwise.
const defaultServer = "ws://127.0.0.1:8080"

// Options say what the command shares with others.
type Options struct {
	// StateDir returns the absolute path of the state directory.
	StateDir func() (string, error)
	// Logger makes what log records are written with, as text or as JSON.
	Logger func(level slog.Level, json bool) *slog.Logger
}

// Command is waza agent.
func Command(o Options) *cli.Command {
	const does, server = "What it does", "The server"
	return &cli.Command{
		Name: "agent", Category: help.Daemon,
		Usage: "make any program an agent of waza serve",
		Description: `Connects to a server, waits for evaluations and runs the program once for each, in
this directory. The prompt is its standard input and what it prints is the answer; an
exit code other than 0 is a failure of the agent. Tool calls and tokens it reports as
JSON lines on file descriptor 3, as for executor command. The variables
WAZA_EVALUATION_ID, WAZA_TOOL, WAZA_URL and WAZA_MODEL say what it is asked for.

When the connection breaks, the agent connects again, for as long as it takes, and
loses no answer. Ctrl-C ends it with all that it has started.

Examples:
  waza agent --exec 'my-agent --print'
  waza agent --exec ./extract.py --json-input --tools extract_schema_data --concurrency 4
  waza agent --exec 'llm -m small' --connect wss://eval.example.org --key-env MY_KEY

Exit codes: 130 when a signal ended it, 2 for wrong usage, 3 when the server rejected
the agent at its first try.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "exec", Category: does, Usage: "the program, a `COMMAND` for sh -c", DefaultText: "required"},
			&cli.BoolFlag{Name: "json-input", Category: does, Usage: "give the program the whole evaluation as JSON in place of the prompt"},
			&cli.StringFlag{Name: "tools", Category: does, Usage: "take only evaluations for these tools, a `LIST` with commas", DefaultText: "any"},
			&cli.IntFlag{Name: "concurrency", Category: does, Usage: "do up to `N` evaluations at once", Value: 1, DefaultText: "1"},
			&cli.StringFlag{Name: "connect", Category: server, Usage: "connect to the `URL`, ws:// or wss://", Value: defaultServer, DefaultText: defaultServer},
			&cli.StringFlag{Name: "id", Category: server, Usage: "register with the client id `UUID`", DefaultText: "one that is kept in the state directory"},
			&cli.StringFlag{Name: "key-env", Category: server, Usage: "show the server the key in the environment variable `NAME`", Value: keyVariable, DefaultText: keyVariable},
			flags.JSON("write log records as JSON"),
		},
		Action: o.run,
	}
}

func (shared Options) run(c *cli.Context) error {
	if err := flags.AtMost(c, 0); err != nil {
		return err
	}
	o, err := options(c)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("current directory: %w", err)
	}
	if o.ClientID == "" {
		state, err := shared.StateDir()
		if err != nil {
			return err
		}
		id, release, err := client.Identity(filepath.Join(state, "agents"))
		if err != nil {
			return err
		}
		defer release()
		o.ClientID = id
	}
	program, err := client.NewProgram(c.String("exec"), dir, c.Bool("json-input"))
	if err != nil {
		return err
	}
	o.Do, o.Log = program.Do, shared.Logger(slog.LevelInfo, c.Bool("json"))
	if o.Key != "" && plainText(o.URL) {
		o.Log.Warn("the key is sent to another machine without encryption; use wss://")
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	err = client.Run(ctx, o)
	if rejected := (*client.RejectedError)(nil); errors.As(err, &rejected) {
		return exit.New(exit.Error, err, "the agent's key is read from the variable "+c.String("key-env"))
	}
	return exit.With(exit.Interrupted)
}

// options reads what the flags say of the agent and its server.
func options(c *cli.Context) (client.Options, error) {
	o := client.Options{URL: c.String("connect"), ClientID: c.String("id"), Concurrency: c.Int("concurrency"), Key: secret.Take(c.String("key-env"))}
	secret.Take(keyVariable) // the program inherits neither
	if strings.TrimSpace(c.String("exec")) == "" {
		return o, exit.Usagef("waza agent --exec 'my-agent --print'", "--exec is missing: the program that does evaluations")
	}
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return o, exit.Usagef(defaultServer, "--connect: %q is not the address of a server: ws://HOST:PORT or wss://HOST:PORT", o.URL)
	case o.ClientID != "" && !client.IsID(o.ClientID):
		return o, exit.Usagef("leave it out, and waza makes one", "--id: %q is not a UUID v4", o.ClientID)
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
			return o, exit.Usagef("leave it out to take any", "--tools names no tool")
		}
	}
	return o, nil
}

// plainText reports whether what is sent to the address crosses a network as it is.
func plainText(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}
