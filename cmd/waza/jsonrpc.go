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
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/secret"
	"waza/rpc"
	"waza/rpc/host"
)

var logLevels = []string{"debug", "info", "warn", "error"}

func jsonrpcCommand(e *env) *cli.Command {
	const where = "Where it listens"
	return &cli.Command{
		Name: "jsonrpc", Category: help.Daemon,
		Usage: "serve editors and scripts by JSON-RPC",
		Description: `One JSON-RPC 2.0 message a line, on stdin and stdout unless told to listen. It
ends when its input does and the runs asked for are over. SIGINT and SIGTERM
cancel the runs, clean up and end it; a second one ends it at once.

Exit codes: 0 when the client ended well, or when a signal ended a daemon that
listens while no run was active; 1 when the client was gone, 2 for wrong usage, 3
when a listener failed, 130 when a signal cancelled runs or ended stdin and stdout.

Examples:
  echo '{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"evals/demo/eval.yaml"}}' | waza jsonrpc
  waza jsonrpc --tcp localhost:9000
  waza jsonrpc --socket /run/user/1000/waza.sock`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tcp", Category: where, Usage: "listen at `ADDR`, such as localhost:9000; no host means localhost", DefaultText: "stdin and stdout"},
			&cli.StringFlag{Name: "socket", Category: where, Usage: "listen at the unix socket `PATH`, for this user alone", DefaultText: "stdin and stdout"},
			&cli.BoolFlag{Name: "allow-remote", Category: where, Usage: "let --tcp and --metrics take addresses that other machines reach; wants a token"},
			&cli.StringFlag{Name: "token-file", Category: where, Usage: "ask clients that connect for the token in `FILE`: 16 characters or more, mode 0600", DefaultText: "none is asked for"},
			&cli.StringFlag{Name: "token-env", Category: where, Usage: "ask clients that connect for the token in the environment variable `NAME`: 16 characters or more", DefaultText: "none is asked for"},
			&cli.StringFlag{Name: "metrics", Category: where, Usage: "tell Prometheus at `ADDR`, such as localhost:9464, how runs and requests go", DefaultText: "off"},
			fsyncFlag(""), tracesFlag(""),
			&cli.StringFlag{Name: "log-level", Usage: "log to stderr from `LEVEL` on: debug, info, warn or error", Value: "info", DefaultText: "info"},
			flags.JSON("log as lines of JSON; the protocol is JSON in any case"),
		},
		Action: e.do(serve),
	}
}

func serve(e *env, c *cli.Context) error {
	if err := flags.AtMost(c, 0); err != nil {
		return err
	}
	options, door, watch, err := daemonOptions(e, c)
	if err != nil {
		return err
	}
	in, out, err := protocolFiles(e)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	code := rpc.Main(ctx, in, out, e.stderr, options, door)
	watch.close()
	return exit.With(code)
}

func daemonOptions(e *env, c *cli.Context) (o rpc.Options, d rpc.Door, w *watchers, err error) {
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
		return o, d, nil, exit.Usagef("give one, such as localhost:9000, or leave --tcp out to serve stdin and stdout", "--tcp: the address is empty")
	case c.IsSet("socket") && d.Socket == "":
		return o, d, nil, exit.Usagef("give one, or leave --socket out to serve stdin and stdout", "--socket: the path is empty")
	case c.IsSet("metrics") && c.String("metrics") == "":
		return o, d, nil, exit.Usagef("give one, such as localhost:9464, or leave --metrics out", "--metrics: the address is empty")
	case o.AllowRemote && d.TCP == "" && !c.IsSet("metrics"):
		return o, d, nil, exit.Usagef("add --tcp ADDR, or leave it out", "--allow-remote is about --tcp and --metrics, which are not there")
	case (c.IsSet("token-file") || c.IsSet("token-env")) && d.TCP == "" && d.Socket == "" && !c.IsSet("metrics"):
		return o, d, nil, exit.Usagef("add --tcp ADDR or --socket PATH", "a token is for clients that connect; on stdin there are none")
	}
	if o.Token, err = token(c); err != nil {
		return o, d, nil, err
	}
	d.Metrics = c.String("metrics")
	d.Listening = listening(o.Logger, o.Token != "")
	agents := serverLink()
	o.Agents = agents
	if o.Runner, w, err = newRecordingRunner(c, e.runnerOptionsWith(agents, o.Logger)); err != nil {
		return o, d, nil, err
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

// listening logs each listener in one line that says who can connect. Without a
// token it is a warning, as a connection can run any program.
func listening(log *slog.Logger, token bool) func(net.Addr) {
	return func(a net.Addr) {
		level, clients := slog.LevelInfo, "those that show the token"
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

// token is what clients have to show; empty when they need not. It is not a
// flag itself, as everybody can read those of running programs.
func token(c *cli.Context) (string, error) {
	file, env := c.String("token-file"), c.String("token-env")
	switch {
	case c.IsSet("token-file") && c.IsSet("token-env"):
		return "", exit.Usagef("name one of them", "--token-file and --token-env do not go together")
	case c.IsSet("token-file"):
		return secret.TokenFile("--token-file", file, rpc.MinToken)
	case c.IsSet("token-env"):
		return secret.Token("--token-env "+env, secret.Take(env), rpc.MinToken)
	}
	return "", nil
}

// protocolFiles are what the protocol is spoken on. Nothing but the daemon can
// write to its stdout any more.
func protocolFiles(e *env) (in, out *os.File, err error) {
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
