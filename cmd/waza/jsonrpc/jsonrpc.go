// Package jsonrpc implements `waza jsonrpc` and `waza lsp`, the daemon for editors and scripts. Call
// [Command] and [LSPCommand].
package jsonrpc

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/fleet"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/secret"
	"waza/cmd/waza/state"
	"waza/rpc"
	"waza/runner/journal"
)

// Options opens what the commands need.
type Options struct {
	state.Opener
	// Files returns the files that carry the protocol.
	Files func() (in, out *os.File, err error)
}

// Command returns waza jsonrpc.
func Command(o Options) *cli.Command {
	const where = "Listening"
	return &cli.Command{
		Name: "jsonrpc", Category: help.Daemon,
		Usage: "serve editors and scripts over JSON-RPC",
		Description: `Speaks JSON-RPC 2.0, one message per line, on stdin and stdout unless a flag makes
it listen. It ends when its input ends and the requested runs are over. SIGINT and
SIGTERM cancel the runs, clean up and end it; a second signal ends it at once.

Exit codes: 0 when the client closed its input or sent shutdown and exit, or when a
signal ended a listening daemon without active runs; 1 when the client was gone or sent
exit without shutdown, 2 for wrong usage, 3 when a listener failed, 130 when a signal
cancelled runs or ended a daemon on stdin and stdout.

Examples:
  echo '{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"evals/demo/eval.yaml"}}' | waza jsonrpc
  waza jsonrpc --tcp localhost:9000
  waza jsonrpc --socket /run/user/1000/waza.sock`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{
				Name: "tcp", Category: where,
				Usage:       "listen on `ADDR`, such as localhost:9000; no host means localhost",
				DefaultText: "stdin and stdout",
			},
			&cli.StringFlag{
				Name: "socket", Category: where,
				Usage:       "listen on the Unix socket `PATH`, which only this user can open",
				DefaultText: "stdin and stdout",
			},
			&cli.BoolFlag{
				Name: "allow-remote", Category: where,
				Usage: "let --tcp and --metrics use addresses that other machines can reach; requires a token",
			},
			&cli.StringFlag{
				Name: "token-file", Category: where,
				Usage:       "require clients to present the token in `FILE`: 16 characters or more, mode 0600",
				DefaultText: "no token",
			},
			&cli.StringFlag{
				Name: "token-env", Category: where,
				Usage:       "require clients to present the token in the environment variable `NAME`: 16 characters or more",
				DefaultText: "no token",
			},
			&cli.StringFlag{
				Name: "metrics", Category: where,
				Usage:       "serve metrics of runs and requests to Prometheus at `ADDR`, such as localhost:9464",
				DefaultText: "off",
			},
		}, state.RecordingFlags(""), []cli.Flag{flags.LogLevel(), flags.JSON("write the log as lines of JSON")}),
		Action: flags.AtMost(0, o.serve),
	}
}

func (o Options) serve(c *cli.Context) error {
	options, door, rn, err := o.open(c)
	if err != nil {
		return err
	}
	in, out, err := o.Files()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	code := rpc.Main(ctx, in, out, o.Stderr, options, door)
	rn.CloseExporters()
	return exit.With(code)
}

// open reads the flags and opens the runner.
func (o Options) open(c *cli.Context) (d rpc.Options, door rpc.Door, rn *state.Recording, err error) {
	level, err := flags.LogLevelOf(c)
	if err != nil {
		return d, door, nil, err
	}
	d.Logger = o.Logger(level, c.Bool("json"))
	d.Version = o.Version
	d.AllowRemote = c.Bool("allow-remote")
	door.TCP, door.Socket = c.String("tcp"), c.String("socket")
	switch {
	case c.IsSet("tcp") && door.TCP == "":
		return d, door, nil, exit.Usagef("give an address such as localhost:9000, or omit --tcp to serve stdin and stdout",
			"--tcp must not be empty")
	case c.IsSet("socket") && door.Socket == "":
		return d, door, nil, exit.Usagef("give a path, or omit --socket to serve stdin and stdout", "--socket must not be empty")
	case c.IsSet("metrics") && c.String("metrics") == "":
		return d, door, nil, exit.Usagef("give an address such as localhost:9464, or omit --metrics", "--metrics must not be empty")
	case d.AllowRemote && door.TCP == "" && !c.IsSet("metrics"):
		return d, door, nil, exit.Usagef("add --tcp ADDR, or omit --allow-remote", "--allow-remote requires --tcp or --metrics")
	case (c.IsSet("token-file") || c.IsSet("token-env")) && door.TCP == "" && door.Socket == "" && !c.IsSet("metrics"):
		return d, door, nil, exit.Usagef("add --tcp ADDR or --socket PATH", "--token-file and --token-env require --tcp, --socket or --metrics")
	}
	if d.Token, err = requiredToken(c); err != nil {
		return d, door, nil, err
	}
	door.Metrics = c.String("metrics")
	door.Listening = listening(d.Logger, d.Token != "")
	server := state.Server()
	d.Agents, d.Browsers, d.Messenger, d.Fleet = server, server.Browsers(), server.Messenger(), fleet.NewViewer(o.Fleet())
	rn, err = o.Record(c, state.RecordOptions{Hubs: state.HubsOf(server), Log: d.Logger, Metrics: c.IsSet("metrics")})
	if err != nil {
		return d, door, nil, err
	}
	if exposed := journal.Exposure(rn.Catalog().Store.Dir()); exposed != "" {
		d.Logger.Warn(exposed, "event", "state_exposed")
	}
	d.Runner, d.Metrics = rn.Runner, rn.Registry()
	return d, door, rn, nil
}

// listening returns a function that logs a listener and who can connect. Without a token it logs
// a warning, because a client can run any program.
func listening(log *slog.Logger, token bool) func(net.Addr) {
	return func(a net.Addr) {
		level, clients := slog.LevelInfo, "clients that present the token"
		switch {
		case token:
		case a.Network() == "unix":
			clients = "every process of this user"
		default:
			level = slog.LevelWarn
			clients = "every process of this user, and each can run programs as this user; --token-file FILE or --token-env NAME requires a token"
		}
		log.Log(context.Background(), level, "listening", "network", a.Network(), "address", a.String(), "clients", clients)
	}
}

// requiredToken returns the token that clients must present, empty when none is required. It is read
// from a file or a variable because other users can see the flags of a process.
func requiredToken(c *cli.Context) (string, error) {
	file, env := c.String("token-file"), c.String("token-env")
	switch {
	case c.IsSet("token-file") && c.IsSet("token-env"):
		return "", exit.Usagef("omit one of them", "--token-file and --token-env cannot be combined")
	case c.IsSet("token-file"):
		return secret.TokenFile("--token-file", file, rpc.MinToken)
	case c.IsSet("token-env"):
		return secret.Token("--token-env "+env, secret.Unset(env), rpc.MinToken)
	}
	return "", nil
}
