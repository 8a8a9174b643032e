package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/fleet"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/secret"
	"waza/rpc"
	"waza/rpc/host"
)

var logLevels = []string{"debug", "info", "warn", "error"}

func (e *env) jsonrpcCommand() *cli.Command {
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
		Flags: []cli.Flag{
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
			fsyncFlag(""), tracesFlag(""),
			&cli.StringFlag{
				Name: "log-level", Usage: "log to stderr at `LEVEL` and above: debug, info, warn or error",
				Value: "info", DefaultText: "info",
			},
			flags.JSON("write the log as lines of JSON"),
		},
		Action: e.serve,
	}
}

func (e *env) serve(c *cli.Context) error {
	if err := flags.AtMost(c, 0); err != nil {
		return err
	}
	options, door, watch, err := e.daemonOptions(c)
	if err != nil {
		return err
	}
	in, out, err := e.protocolFiles()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	code := rpc.Main(ctx, in, out, e.stderr, options, door)
	watch.close()
	return exit.With(code)
}

func (e *env) daemonOptions(c *cli.Context) (o rpc.Options, d rpc.Door, w *watchers, err error) {
	level, err := logLevel(c)
	if err != nil {
		return o, d, nil, err
	}
	o.Logger = e.logger(level, c.Bool("json"))
	o.Version = buildVersion().Version
	o.AllowRemote = c.Bool("allow-remote")
	d.TCP, d.Socket = c.String("tcp"), c.String("socket")
	switch {
	case c.IsSet("tcp") && d.TCP == "":
		return o, d, nil, exit.Usagef("give an address such as localhost:9000, or omit --tcp to serve stdin and stdout",
			"--tcp must not be empty")
	case c.IsSet("socket") && d.Socket == "":
		return o, d, nil, exit.Usagef("give a path, or omit --socket to serve stdin and stdout", "--socket must not be empty")
	case c.IsSet("metrics") && c.String("metrics") == "":
		return o, d, nil, exit.Usagef("give an address such as localhost:9464, or omit --metrics", "--metrics must not be empty")
	case o.AllowRemote && d.TCP == "" && !c.IsSet("metrics"):
		return o, d, nil, exit.Usagef("add --tcp ADDR, or omit --allow-remote", "--allow-remote requires --tcp or --metrics")
	case (c.IsSet("token-file") || c.IsSet("token-env")) && d.TCP == "" && d.Socket == "" && !c.IsSet("metrics"):
		return o, d, nil, exit.Usagef("add --tcp ADDR or --socket PATH", "--token-file and --token-env require --tcp, --socket or --metrics")
	}
	if o.Token, err = requiredToken(c); err != nil {
		return o, d, nil, err
	}
	d.Metrics = c.String("metrics")
	d.Listening = listening(o.Logger, o.Token != "")
	server := serverLink()
	o.Agents, o.Browsers, o.Messenger, o.Fleet = server, server.Browsers(), server.Messenger(), fleet.NewViewer(e.fleetProgram())
	if o.Runner, w, err = newRecordingRunner(c, e.runnerOptionsWith(hubsOf(server), o.Logger)); err != nil {
		return o, d, nil, err
	}
	if exposed := o.Runner.Catalog().Store.Exposure(); exposed != "" {
		o.Logger.Warn(exposed, "event", "state_exposed")
	}
	o.Metrics = w.registry()
	return o, d, w, nil
}

func logLevel(c *cli.Context) (level slog.Level, err error) {
	if err := flags.OneOf("log-level", c.String("log-level"), logLevels...); err != nil {
		return level, err
	}
	return level, level.UnmarshalText([]byte(c.String("log-level")))
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

// protocolFiles returns the files that carry the protocol. From then on, only the daemon can
// write to its stdout.
func (e *env) protocolFiles() (in, out *os.File, err error) {
	in, inOK := e.stdin.(*os.File)
	out, outOK := e.stdout.Unwrap().(*os.File)
	if !inOK || !outOK {
		return nil, nil, fmt.Errorf("jsonrpc: stdin and stdout must be files of the operating system")
	}
	if out == os.Stdout {
		out, err = host.TakeStdout()
	}
	return in, out, err
}
