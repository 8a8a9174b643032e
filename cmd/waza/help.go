package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/runner/report"
)

// The library prints no help: it is written here.
func init() { cli.HelpFlag = nil }

func (p *program) helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Category: groupMore,
		Usage:     "print the help of waza or of a command",
		ArgsUsage: "[COMMAND…]",
		Description: `Examples:
  waza help run      the same as waza run --help`,
		Flags: []cli.Flag{jsonFlag("print the commands and their flags as JSON")},
		Action: func(c *cli.Context) error {
			if c.Bool("json") {
				return p.printJSON(describeCommands("waza", p.app.Commands))
			}
			commands, parent := p.app.Commands, "waza"
			var found *cli.Command
			for _, name := range c.Args().Slice() {
				if found = findCommand(commands, name); found == nil {
					return p.unknownCommand(parent, name, commands)
				}
				commands, parent = found.Subcommands, found.HelpName
			}
			if found == nil {
				p.writeAppHelp(p.stdout)
			} else {
				p.writeCommandHelp(p.stdout, found)
			}
			return nil
		},
	}
}

// The groups of commands, in the order help lists them.
const (
	groupSuites = "Suites"
	groupRuns   = "Runs"
	groupDaemon = "Daemon"
	groupMore   = "More"
)

var groups = []string{groupSuites, groupRuns, groupDaemon, groupMore}

func findCommand(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) && !c.Hidden {
			return c
		}
	}
	return nil
}

func (p *program) writeAppHelp(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\nUsage: waza COMMAND [flags] [arguments]\n\n%s\n", p.app.Name, p.app.Usage, p.app.Description)
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s:\n", g)
		for _, c := range p.app.Commands {
			if c.Category == g && !c.Hidden {
				fmt.Fprintf(w, "  %-12s%s\n", c.Name, c.Usage)
			}
		}
	}
	fmt.Fprintf(w, "\nExit codes:\n%s\n\nwaza COMMAND --help tells more of a command.\n", exitCodes)
}

func (p *program) writeCommandHelp(w io.Writer, c *cli.Command) {
	fmt.Fprintf(w, "%s: %s\n\nUsage: %s\n", c.HelpName, c.Usage, usageLine(c))
	if c.Description != "" {
		fmt.Fprintf(w, "\n%s\n", c.Description)
	}
	for _, sub := range c.Subcommands {
		if sub == c.Subcommands[0] {
			fmt.Fprint(w, "\nCommands:\n")
		}
		fmt.Fprintf(w, "  %-12s%s\n", sub.Name, sub.Usage)
	}
	for _, g := range flagGroups(c.Flags) {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		for _, f := range g.flags {
			writeFlag(w, f)
		}
	}
}

func usageLine(c *cli.Command) string {
	s := c.HelpName
	if len(c.Subcommands) > 0 {
		s += " [COMMAND]"
	}
	s += " [flags]"
	if c.ArgsUsage != "" {
		s += " " + c.ArgsUsage
	}
	return s
}

type flagGroup struct {
	title string
	flags []cli.Flag
}

// flagGroups gathers flags by their category, in the order in which these first occur.
func flagGroups(flags []cli.Flag) []flagGroup {
	var groups []flagGroup
next:
	for _, f := range flags {
		title := "Flags"
		if c, ok := f.(cli.CategorizableFlag); ok && c.GetCategory() != "" {
			title = c.GetCategory()
		}
		for i := range groups {
			if groups[i].title == title {
				groups[i].flags = append(groups[i].flags, f)
				continue next
			}
		}
		groups = append(groups, flagGroup{title, []cli.Flag{f}})
	}
	return groups
}

// flagHelp is what help tells of a flag.
type flagHelp struct {
	Flag    string `json:"flag"` // with its value, as one types it
	Short   string `json:"short,omitempty"`
	Usage   string `json:"usage"`
	Default string `json:"default"`
	Env     string `json:"env,omitempty"`
}

func describeFlag(f cli.Flag) flagHelp {
	h := flagHelp{Flag: "--" + f.Names()[0], Default: "off"}
	for _, n := range f.Names()[1:] {
		if len(n) == 1 {
			h.Short = "-" + n
		}
	}
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return h
	}
	value := "VALUE"
	h.Usage = d.GetUsage()
	if d.TakesValue() {
		if before, name, ok := strings.Cut(h.Usage, "`"); ok {
			if name, after, ok := strings.Cut(name, "`"); ok {
				value, h.Usage = name, before+name+after
			}
		}
		h.Flag += " " + value
		h.Default = d.GetDefaultText()
	}
	h.Env = strings.Join(d.GetEnvVars(), ", ")
	return h
}

// helpColumn is where the text about a flag begins.
const helpColumn = 26

func writeFlag(w io.Writer, f cli.Flag) {
	h := describeFlag(f)
	left := "  " + h.Flag
	if h.Short != "" {
		left += ", " + h.Short
	}
	if report.Columns(left) > helpColumn-2 {
		left += "\n" + strings.Repeat(" ", helpColumn)
	} else {
		left += strings.Repeat(" ", helpColumn-report.Columns(left))
	}
	text := h.Usage
	if h.Flag != "--help" {
		text += fmt.Sprintf(" (default: %s)", h.Default)
	}
	fmt.Fprintf(w, "%s%s\n", left, text)
}

// commandHelp is what help tells of a command, for programs.
type commandHelp struct {
	Name        string        `json:"name"`
	Usage       string        `json:"usage"`
	Call        string        `json:"call"`
	Description string        `json:"description,omitempty"`
	Flags       []flagHelp    `json:"flags"`
	Commands    []commandHelp `json:"commands,omitempty"`
}

func describeCommands(parent string, commands []*cli.Command) []commandHelp {
	var out []commandHelp
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		h := commandHelp{Name: parent + " " + c.Name, Usage: c.Usage, Call: usageLine(c), Description: c.Description}
		for _, f := range c.Flags {
			h.Flags = append(h.Flags, describeFlag(f))
		}
		h.Commands = describeCommands(h.Name, c.Subcommands)
		out = append(out, h)
	}
	return out
}
