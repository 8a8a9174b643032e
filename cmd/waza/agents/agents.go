// Package agents implements `waza agents`, which shows the evaluation agents of a server as
// tables and JSON. Call [Command].
package agents

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
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/executor/remote"
)

// Options connects the command to a server and its outputs.
type Options struct {
	Stdout *output.Stdout
	Stderr io.Writer
	// Connect reaches the server. The command calls the returned function when it is done.
	Connect func() (remote.Directory, func())
}

// Command returns waza agents with its subcommands.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "agents", Category: help.Daemon,
		Usage: "list, show, watch and disconnect the agents of waza serve",
		Description: `Shows the agents that are connected to the server of this state directory, and
agents that disconnected while evaluations wait for them. The client id names an
agent. For an agent with tabs, the part before the colon means all of them.

Examples:
  waza agents
  waza agents watch --json
  waza agents kick 550e8400-e29b-41d4-a716-446655440000 --reason "new version"

Exit codes: 0 when done, 2 for wrong usage or an unknown agent, 3 when no server is
running, 130 when Ctrl-C ended waza agents watch.`,
		Flags:  []cli.Flag{flags.JSON("print the agents as JSON")},
		Action: flags.Group(o.withServer((*call).list)),
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list the agents",
				Flags:  []cli.Flag{flags.JSON("print the agents as JSON")},
				Action: flags.AtMost(0, o.withServer((*call).list)),
			},
			{
				Name: "show", Usage: "show the details of an agent", ArgsUsage: "AGENT",
				Flags:  []cli.Flag{flags.JSON("print the agent as JSON")},
				Action: o.withServer((*call).show),
			},
			{
				Name: "kick", Usage: "close the connection of an agent, which can connect again", ArgsUsage: "AGENT",
				Description: `Its evaluations wait for it for a while, then other agents get them.`,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "reason", Usage: "send the agent `TEXT` as the reason", Value: defaultReason, DefaultText: defaultReason},
					flags.JSON("print the agent's id as JSON"),
				},
				Action: o.withServer((*call).kick),
			},
			{
				Name: "watch", Usage: "print each agent, and again whenever it changes",
				Description: "It ends with Ctrl-C, or when the server ends.",
				Flags:       []cli.Flag{flags.JSON("print a line of JSON for each change")},
				Action:      flags.AtMost(0, o.withServer((*call).watch)),
			},
		},
	}
}

const defaultReason = "disconnected by waza agents kick"

// call is one use of a command.
type call struct {
	Options
	*cli.Context
	agents remote.Directory
}

// withServer turns a function over the agents of the server into a command's action.
func (o Options) withServer(do func(*call) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		directory, done := o.Connect()
		defer done()
		err := do(&call{o, c, directory})
		if errors.Is(err, executor.ErrNoServer) {
			return exit.New(exit.Error, errors.New("no waza server is running"), "start one with waza serve")
		}
		return err
	}
}

func (c *call) list() error {
	agents, err := c.agents.Agents(c.Context.Context)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return c.Stdout.JSON(map[string]any{"agents": output.NonNil(agents)})
	}
	if len(agents) == 0 {
		fmt.Fprintln(c.Stderr, "waza: no agents are connected")
		return nil
	}
	rows := [][]string{{"Agent", "State", "Running", "Answered", "Tools", "Since"}}
	for _, a := range agents {
		rows = append(rows, []string{a.ClientID, a.State, running(a), fmt.Sprint(a.Answered), tools(a), since(a)})
	}
	return c.Stdout.Table(rows)
}

func (c *call) show() error {
	agents, err := c.named()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		if len(agents) == 1 {
			return c.Stdout.JSON(agents[0])
		}
		return c.Stdout.JSON(map[string]any{"agents": agents})
	}
	for i, a := range agents {
		if i > 0 {
			fmt.Fprintln(c.Stdout)
		}
		for _, row := range [][2]string{
			{"Agent", a.ClientID}, {"State", a.State}, {"Running", running(a)}, {"Answered", fmt.Sprint(a.Answered)},
			{"Tools", tools(a)}, {"Lacks", strings.Join(a.Lacks, ", ")}, {"Version", a.Version}, {"Address", a.Address}, {"Since", since(a)},
		} {
			if row[1] != "" {
				fmt.Fprintf(c.Stdout, "%-9s %s\n", row[0], output.Clean(row[1]))
			}
		}
	}
	return nil
}

func (c *call) kick() error {
	agents, err := c.named()
	if err != nil {
		return err
	}
	if len(agents) > 1 {
		return exit.Usagef("name one agent with its tab", "%s means %d agents", c.Args().First(), len(agents))
	}
	id := agents[0].ClientID
	if err := c.agents.Kick(c.Context.Context, id, c.String("reason")); err != nil {
		return err
	}
	if c.Bool("json") {
		return c.Stdout.JSON(map[string]string{"clientId": id})
	}
	fmt.Fprintf(c.Stdout, "%s is disconnected\n", output.Clean(id))
	return nil
}

func (c *call) watch() error {
	ctx, stop := interrupt.Context(c.Context.Context)
	defer stop()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	err := c.agents.Watch(watching, func(a *remote.Agent) {
		var err error
		if c.Bool("json") {
			err = c.Stdout.Line(a)
		} else {
			_, err = fmt.Fprintf(c.Stdout, "%s %s, %s running, %d answered, tools: %s\n", output.Clean(a.ClientID),
				a.State, running(a), a.Answered, output.Clean(tools(a)))
		}
		if err != nil {
			cancel() // the reader is gone
		}
	})
	switch {
	case c.Stdout.Err() != nil:
		return c.Stdout.Err()
	case ctx.Err() != nil:
		return exit.With(exit.Interrupted)
	}
	return err
}

// named finds the agents that the only argument names.
func (c *call) named() ([]*remote.Agent, error) {
	if c.NArg() != 1 {
		return nil, exit.Usagef("waza agents lists the agents", "%s takes one agent, got %d", c.Command.HelpName, c.NArg())
	}
	id := c.Args().First()
	all, err := c.agents.Agents(c.Context.Context)
	if err != nil {
		return nil, err
	}
	var found []*remote.Agent
	for _, a := range all {
		if strings.EqualFold(a.ClientID, id) {
			return []*remote.Agent{a}, nil
		}
		if a.Is(id) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil, exit.Usagef("waza agents lists the agents", "unknown agent %q", text.Clip(id, 80))
	}
	return found, nil
}

func running(a *remote.Agent) string { return fmt.Sprintf("%d/%d", a.Running, a.MaxConcurrency) }

// tools lists the tools of an agent. An agent without a list can have any tools.
func tools(a *remote.Agent) string {
	if len(a.Tools) == 0 {
		return "any"
	}
	return strings.Join(a.Tools, ", ")
}

func since(a *remote.Agent) string { return a.Since.Local().Format("2006-01-02 15:04:05") }
