// Package send implements `waza send`, which sends a message to the clients of the message
// router. Call [Command].
package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

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
	Connect func() (routing.Messenger, func())
}

// Command returns waza send.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "send", Category: help.Daemon, ArgsUsage: "TEXT|-",
		Usage: "send a message to a client of the message router of waza serve",
		Description: `A message that starts with the name of a client and a colon or comma goes to that
client. Otherwise the router chooses the clients with the model of its configuration or,
without one, by comparing the words of the message with the clients' descriptions. The
reason states when no client has the name before the colon. waza send prints the receivers
and the reason, waits until all receivers have answered, and prints their answers. With -
it reads the text from standard input.

Ctrl-C ends the wait; the message is still delivered.

Examples:
  waza send "notebook: buy milk"
  waza send --voice 0.95 remember to buy milk
  git log -1 --format=%s | waza send -

Exit codes: 0 when a client took the message, or with --no-wait when it was accepted; 1
when no client took it, 2 for wrong usage, 3 when no server takes messages, 130 when Ctrl-C
ended the wait.`,
		Flags: []cli.Flag{
			&cli.Float64Flag{
				Name: "voice", Usage: "mark the message as spoken, recognized with this `CONFIDENCE`, from 0 to 1",
				DefaultText: "typed",
			},
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
	messenger, done := o.Connect()
	defer done()
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	if c.Bool("no-wait") {
		r, err := messenger.Post(ctx, m)
		switch {
		case err != nil:
			return failure(ctx, m, err)
		case c.Bool("json"):
			return o.Stdout.JSON(r)
		}
		_, err = fmt.Fprintln(o.Stdout, r.ID)
		return err
	}
	var r *routing.Routed
	if c.Bool("json") {
		if r, err = messenger.Send(ctx, m); err == nil {
			err = o.Stdout.JSON(r)
		}
	} else {
		r, err = o.follow(ctx, messenger, m)
	}
	switch {
	case err != nil:
		return failure(ctx, m, err)
	case r.Status != routing.Taken:
		return exit.New(exit.Failed, fmt.Errorf("no client took the message: %s", r.Reason), "")
	}
	return nil
}

// follow sends a message and prints its delivery: each choice of receivers when it is made, and
// their answers.
func (o Options) follow(ctx context.Context, messenger routing.Messenger, m *routing.Message) (*routing.Routed, error) {
	p := &printer{out: o.Stdout}
	watching, stopWatching := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		// Without the changes, the printer prints everything at the end.
		_ = messenger.Watch(watching, func(change routing.Change) {
			if change.Message != nil && change.Message.ID == m.ID {
				p.print(change.Message, false)
			}
		})
	})
	r, err := messenger.Send(ctx, m)
	stopWatching()
	watch.Wait()
	if err != nil {
		return nil, err
	}
	return r, p.print(r, true)
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

// printer prints the delivery of a message, whose state is newer in each call of print. It is
// safe for concurrent use.
type printer struct {
	mu       sync.Mutex // guards the fields below
	out      *output.Stdout
	chosen   int // choices whose receivers are printed
	answered int // choices whose answers are printed
	over     bool
}

// print prints the new choices, and the answers to each choice that was followed by another one.
// If the message is over, it prints all answers. It returns the first error of the output.
func (p *printer) print(r *routing.Routed, over bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return p.out.Err()
	}
	p.over = over
	for i := range r.Choices {
		if i >= p.chosen {
			p.chosen++
			p.printChoice(&r.Choices[i])
		}
		isLast := i == len(r.Choices)-1
		if i == p.answered && (over || !isLast && !isWaiting(r, &r.Choices[i])) {
			p.answered++
			p.printAnswers(r, &r.Choices[i])
		}
	}
	return p.out.Err()
}

// isWaiting reports whether a receiver has not answered.
func isWaiting(r *routing.Routed, choice *routing.Chosen) bool {
	return slices.ContainsFunc(choice.Clients, func(name string) bool {
		p := r.Recipient(name)
		return p != nil && p.State == routing.Waiting
	})
}

func (p *printer) line(format string, args ...any) {
	_, _ = io.WriteString(p.out, output.Clean(fmt.Sprintf(format, args...))+"\n") // print returns the error
}

func (p *printer) printChoice(choice *routing.Chosen) {
	who := strings.Join(choice.Clients, ", ")
	switch {
	case who == "": // the error has the reason
	case choice.By == routing.ByPrefix:
		p.line("to %s, named in the message", who)
	default:
		p.line("to %s, %s: %s", who, choosers[choice.By], choice.Reason)
	}
}

func (p *printer) printAnswers(r *routing.Routed, choice *routing.Chosen) {
	for _, name := range choice.Clients {
		if c := r.Recipient(name); c != nil && c.Reason != "" {
			p.line("%s: %s: %s", c.Client, c.State, c.Reason)
		} else if c != nil && c.State != routing.Notified { // its notification follows
			p.line("%s: %s", c.Client, c.State)
		}
		for _, n := range r.Notifications {
			if strings.EqualFold(n.Client, name) {
				p.line("%s", notification(&n))
			}
		}
	}
}

func notification(n *routing.Notification) string {
	s := n.Client + ": "
	if n.Title != n.Client {
		s += n.Title + ": "
	}
	return strings.TrimSuffix(s+n.Body, ": ")
}
