package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/survey"
)

// FleetCommand returns waza fleet with its subcommands.
func FleetCommand(p Program) *cli.Command {
	return &cli.Command{
		Name: "fleet", Category: help.Daemon,
		Usage: "show a fleet, drain its workers, make keys for orders",
		Description: `A fleet consists of the workers of a team (waza worker) and the runs whose trials they
do (waza run --fleet). --fleet or WAZA_FLEET selects the fleet.

Examples:
  waza fleet status --fleet embedded
  waza fleet workers --fleet nats://nats.example:4222 --json
  waza fleet drain --all`,
		Action: flags.Required("waza fleet status --fleet embedded", "waza fleet requires a command: status, workers, drain or key"),
		Subcommands: []*cli.Command{
			{
				Name: "status", Usage: "show the runs of a fleet, waiting orders, and why they wait",
				Description: `Orders with the same requirements form a class. The table shows for each class how many
orders wait, how many workers have, and how many workers can do them. A run is silent
when its owner has sent no heartbeat for 30 seconds; waza run --resume resumes it.

Examples:
  waza fleet status --fleet embedded
  WAZA_FLEET=nats://nats.example:4222 waza fleet status --json

` + exitCodes,
				Flags: p.flags("print the fleet as JSON"), Action: flags.AtMost(0, p.onFleet((*call).status)),
			},
			{
				Name: "workers", Usage: "list the workers of a fleet with their trials and offers",
				Description: `Examples:
  waza fleet workers --fleet embedded
  waza fleet workers --fleet 'nats://nats.example:4222?team=search' --json

` + exitCodes,
				Flags: p.flags("print the workers as JSON"), Action: flags.AtMost(0, p.onFleet((*call).workers)),
			},
			{
				Name: "drain", Usage: "let workers finish their trials, take no more, and end", ArgsUsage: "[WORKER…]",
				Description: `WORKER is the id of a worker, or a prefix of several ids, such as a host. The command
waits until the workers have ended. Ctrl-C ends the wait; the workers still end.

Examples:
  waza fleet drain build-7 --fleet nats://nats.example:4222
  waza fleet drain --all --no-wait

Exit codes: 0 when done, 2 for wrong usage or an unknown worker, 3 when the fleet cannot be
reached, 130 when Ctrl-C ended the wait.`,
				Flags: append(p.flags("print the workers as JSON"),
					&cli.BoolFlag{Name: "all", Usage: "drain all workers of the team"},
					&cli.BoolFlag{Name: "no-wait", Usage: "exit once the workers have received the request"}),
				Action: p.onFleet((*call).drain),
			},
			p.keyCommand(),
		},
	}
}

const exitCodes = `Exit codes: 0 when done, 2 for wrong usage, 3 when the fleet cannot be reached.`

func (p Program) flags(json string) []cli.Flag {
	return []cli.Flag{
		AddressFlag("use"), flags.JSON(json),
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print the connection's events to stderr"},
	}
}

// call is one use of a command about a fleet.
type call struct {
	Program
	*cli.Context
	ctx     context.Context // ends with Ctrl-C
	address engine.Address
	conn    *engine.Conn
}

// onFleet turns a function over the fleet into a command's action.
func (p Program) onFleet(do func(*call) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		address, err := addressOf(c)
		if err != nil {
			return err
		}
		ctx, stop := interrupt.ContextThenExit(c.Context)
		defer stop()
		conn, err := p.connect(ctx, address, engine.Options{Name: "waza fleet", Log: p.logger(c)})
		if err == nil {
			defer conn.Close()
			err = do(&call{p, c, ctx, address, conn})
		}
		if err != nil && ctx.Err() != nil {
			return exit.With(exit.Interrupted)
		}
		return err
	}
}

const (
	// answerTime limits the time for the fleet's state, tryTime the time of each attempt. A
	// request is lost when the server that received it ends.
	answerTime = 10 * time.Second
	tryTime    = 2 * time.Second
)

// survey returns the state of the fleet.
func (c *call) survey() (*survey.Survey, error) {
	for end := time.Now().Add(answerTime); ; {
		ctx, cancel := context.WithTimeout(c.ctx, tryTime)
		s, err := survey.Read(ctx, c.conn.JetStream(), c.address.Team)
		late := ctx.Err() != nil && c.ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			s.Fleet = c.address.String()
			return s, nil
		case !late:
			return nil, exit.New(exit.Error, err, "")
		case time.Now().After(end):
			return nil, exit.New(exit.Error, fmt.Errorf("fleet %s: JetStream does not answer", c.address), "")
		}
	}
}
