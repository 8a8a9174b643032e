// Package browseragent implements `waza browser-agent`, an extension without a browser window
// that drives a Chromium for evaluations. Call [Command].
package browseragent

import (
	"context"
	"errors"
	"log/slog"
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
	"waza/cmd/waza/state"
	"waza/eval/text"
	"waza/rpc/client/agent"
	"waza/rpc/client/chromium"
	"waza/rpc/client/extension"
)

// defaultServer is where waza serve listens for extensions by default.
const defaultServer = "ws://127.0.0.1:8000/ws"

// Options holds the streams: stderr gets the log.
type Options struct {
	output.Streams
}

// Command returns waza browser-agent.
func Command(o Options) *cli.Command {
	const server, browser = "Server", "Browser"
	return &cli.Command{
		Name: "browser-agent", Category: help.Daemon,
		Usage: "let browser assistants of waza serve use a Chromium",
		Description: `Connects to a server as the browser extension does, and offers itself to the trials
of suites with executor browser. Each trial starts with an empty page of a headless
Chromium and without cookies. The tools are the same as the extension's: navigate,
click_element, type_text, scroll, screenshot, extract_text, extract_links,
extract_tables, get_dom and highlight_element.

The browser has its own profile and no access to files. It opens only http and https
addresses, and downloads nothing. A model can use every site that this machine can
reach: limit it with --allow-hosts if you know the sites of a suite. Several browser
agents can run at once, and each does one trial at a time.

When the connection breaks, it reconnects until it succeeds. Ctrl-C ends it, stops
Chromium and deletes the profile.

Examples:
  waza browser-agent
  waza browser-agent --allow-hosts 127.0.0.1,localhost,*.example.org
  waza browser-agent --connect wss://eval.example.org/ws --chromium /opt/chromium/chrome
  waza browser-agent --headful

Exit codes: 130 when a signal ended it, 2 for wrong usage, 3 when there is no Chromium,
it does not start, or the server rejected the extension at its first try.`,
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "connect", Category: server, Usage: "connect to the `URL`, ws:// or wss://", Value: defaultServer,
				DefaultText: defaultServer,
			},
			&cli.StringFlag{Name: "url", Hidden: true}, // the former name of --connect
			&cli.StringFlag{
				Name: "id", Category: server, Usage: "connect with the extension id `UUID`",
				DefaultText: "an id stored in the state directory",
			},
			&cli.StringFlag{
				Name: "chromium", Category: browser, Usage: "start the program `PATH`",
				DefaultText: "$CHROME, else chromium, chromium-browser or google-chrome",
			},
			&cli.StringFlag{
				Name: "allow-hosts", Category: browser,
				Usage:       "let pages load only from the hosts in `LIST`, separated by commas; *.example.org means all hosts below example.org",
				DefaultText: "all",
			},
			&cli.BoolFlag{Name: "headful", Category: browser, Usage: "show the browser's window"},
			flags.JSON("write the log as lines of JSON"),
		},
		Action: flags.AtMost(0, o.run),
	}
}

func (shared Options) run(c *cli.Context) error {
	hosts, err := check(c)
	if err != nil {
		return err
	}
	home, err := state.Dir()
	if err != nil {
		return err
	}
	dir := filepath.Join(home, "extensions")
	id := c.String("id")
	if id == "" {
		own, release, err := agent.Identity(dir)
		if err != nil {
			return err
		}
		defer release()
		id = own
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path, err := chromium.Find(c.String("chromium"))
	if err != nil {
		return exit.New(exit.Error, err, "install it, for example with apt-get install chromium, or name it with --chromium")
	}
	log := shared.Logger(slog.LevelInfo, c.Bool("json"))
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	b, err := chromium.Start(ctx, chromium.Options{Path: path, Dir: dir, Headful: c.Bool("headful"), AllowHosts: hosts, Log: log})
	switch {
	case ctx.Err() != nil:
		return exit.With(exit.Interrupted)
	case err != nil:
		return exit.New(exit.Error, err, "--chromium names another program, which can be a script that adds flags")
	}
	defer b.Close()
	log.Info("started", "browser", b.Version(), "program", path)
	err = extension.Run(ctx, extension.Options{
		URL: address(c), ID: id, Log: log,
		Do: func(ctx context.Context, call *extension.Call) (any, error) {
			return b.Do(ctx, call.Session, call.Tool, call.Params)
		},
	})
	if rejected := (*extension.RejectedError)(nil); errors.As(err, &rejected) {
		return exit.New(exit.Error, err, "--connect must be the URL of the browser door that waza serve prints")
	}
	return exit.With(exit.Interrupted)
}

// hostForm is the form of hosts in --allow-hosts: names and addresses, without ports.
var hostForm = text.Pattern(`^(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$|^\[[0-9a-fA-F:]+\]$`)

// address returns the address of the server. The flag --url is the former name of --connect.
func address(c *cli.Context) string {
	if c.IsSet("url") && !c.IsSet("connect") {
		return c.String("url")
	}
	return c.String("connect")
}

// check validates the flags and returns the allowed hosts.
func check(c *cli.Context) (hosts []string, err error) {
	server := address(c)
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return nil, exit.Usagef(defaultServer, "--connect must be ws://HOST:PORT/ws or wss://HOST:PORT/ws, got %q", server)
	case c.IsSet("id") && !extension.IsID(c.String("id")):
		return nil, exit.Usagef("omit --id, and waza makes an id", "--id must be a UUID, got %q", c.String("id"))
	case !c.IsSet("allow-hosts"):
		return nil, nil
	}
	for host := range strings.SplitSeq(c.String("allow-hosts"), ",") {
		switch host = strings.TrimSpace(host); {
		case host == "":
		case !hostForm().MatchString(host):
			return nil, exit.Usagef("--allow-hosts 127.0.0.1,*.example.org", "--allow-hosts: invalid host %q", host)
		default:
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return nil, exit.Usagef("omit --allow-hosts to allow all hosts", "--allow-hosts must not be empty")
	}
	return hosts, nil
}
