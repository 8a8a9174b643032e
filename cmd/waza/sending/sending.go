// Package sending implements `waza send`, which sends a message to the clients of the message
// router. Call [Command].
package sending

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/runner/routing"
)

// maxInput limits the bytes read from standard input. The router's limit is lower.
const maxInput = 1 << 20

// Options connects the command to a router and its input and output.
type Options struct {
	Stdin  io.Reader
	Stdout *output.Stdout
	// Connect reaches the router of the server. The command calls the returned function when it
	// is done.
	Connect func() (routing.Office, func())
}

// Command returns waza send.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "send", Category: help.Daemon, ArgsUsage: "TEXT|-",
		Usage: "send a message to a client of the message router of waza serve",
		Description: `A message that starts with the name of a client and a colon or comma goes to that
client. Otherwise the router chooses the clients with the model of its configuration or,
without one, by comparing the words of the message with the clients' descriptions. waza
send waits until all receivers have answered. It prints the receivers, the reason, and
their answers. With - it reads the text from standard input.

Ctrl-C ends the wait; the message is still delivered.

Examples:
  waza send "notebook: buy milk"
  waza send --voice 0.95 remember to buy milk
  git log -1 --format=%s | waza send -

Exit codes: 0 when a client took the message, or with --no-wait when it was accepted; 1
when no client took it, 2 for wrong usage, 3 when no server takes messages, 130 when Ctrl-C
ended the wait.`,
		Flags: []cli.Flag{
			&cli.Float64Flag{Name: "voice", Usage: "mark the message as spoken, recognized with this `CONFIDENCE`, from 0 to 1", DefaultText: "typed"},
			&cli.BoolFlag{Name: "no-wait", Usage: "print the id of the message as soon as it is accepted"},
			flags.JSON("print the message and its delivery as JSON"),
		},
		Action: o.send,
	}
}

func (o Options) send(c *cli.Context) error {
	m, err := o.message(c)
	if err != nil {
		return err
	}
	office, done := o.Connect()
	defer done()
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	send := office.Send
	if c.Bool("no-wait") {
		send = office.Post
	}
	r, err := send(ctx, m)
	if err != nil {
		return failure(ctx, m, err)
	}
	switch {
	case c.Bool("json"):
		err = o.Stdout.JSON(r)
	case c.Bool("no-wait"):
		_, err = fmt.Fprintln(o.Stdout, r.ID)
	default:
		_, err = io.WriteString(o.Stdout, report(r))
	}
	if err == nil && !c.Bool("no-wait") && r.Status != routing.Taken {
		return exit.New(exit.Failed, fmt.Errorf("no client took the message: %s", r.Reason), "")
	}
	return err
}

// message makes a message from the arguments.
func (o Options) message(c *cli.Context) (*routing.Message, error) {
	m := &routing.Message{ID: routing.NewID(), Text: strings.Join(c.Args().Slice(), " ")}
	if m.Text == "-" {
		data, err := io.ReadAll(io.LimitReader(o.Stdin, maxInput+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("standard input: %w", err)
		case len(data) > maxInput:
			return nil, exit.Usagef("", "standard input must not have more than %d bytes", maxInput)
		}
		m.Text = string(data)
	}
	if strings.TrimSpace(m.Text) == "" {
		return nil, exit.Usagef(`waza send "notebook: buy milk"`, "the message must not be empty")
	}
	if c.IsSet("voice") {
		confidence := c.Float64("voice")
		if !(confidence >= 0 && confidence <= 1) { // also rejects NaN
			return nil, exit.Usagef("waza send --voice 0.95 TEXT", "--voice must be between 0 and 1, got %v", confidence)
		}
		m.InputMethod, m.Confidence = routing.Voice, &confidence
	}
	return m, nil
}

// failure gives an error of the router its exit code.
func failure(ctx context.Context, m *routing.Message, err error) error {
	var invalid *routing.MessageError
	var unavailable *routing.UnavailableError
	switch {
	case ctx.Err() != nil:
		return exit.New(exit.Interrupted, fmt.Errorf("stopped waiting; message %s is still being delivered", m.ID), "")
	case errors.As(err, &invalid):
		return exit.Usagef("", "%v", err)
	case errors.Is(err, routing.ErrNoServer):
		return exit.New(exit.Error, err, "start one with waza serve")
	case errors.As(err, &unavailable):
		return exit.New(exit.Error, err, "")
	}
	return err
}

// choosers describes how clients were chosen.
var choosers = map[string]string{routing.ByModel: "chosen by the model", routing.ByWords: "chosen by words"}

// report describes the delivery of a message: the receivers, the reason, and their answers.
func report(r *routing.Routed) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(output.Clean(fmt.Sprintf(format, args...)) + "\n") }
	for _, choice := range r.Choices {
		if len(choice.Clients) == 0 {
			continue // the error has the reason
		}
		who := strings.Join(choice.Clients, ", ")
		if choice.By == routing.ByPrefix {
			line("to %s, named in the message", who)
		} else {
			line("to %s, %s: %s", who, choosers[choice.By], choice.Reason)
		}
		for _, name := range choice.Clients {
			if p := r.Recipient(name); p != nil && p.Reason != "" {
				line("%s: %s: %s", p.Client, p.State, p.Reason)
			} else if p != nil && p.State != routing.Notified { // its notification follows
				line("%s: %s", p.Client, p.State)
			}
			for _, n := range r.Notifications {
				if strings.EqualFold(n.Client, name) {
					line("%s", notification(&n))
				}
			}
		}
	}
	return b.String()
}

func notification(n *routing.Notification) string {
	s := n.Client + ": "
	if n.Title != n.Client {
		s += n.Title + ": "
	}
	return strings.TrimSuffix(s+n.Body, ": ")
}
