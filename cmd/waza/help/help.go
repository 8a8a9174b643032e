// Package help writes what waza says of its commands and flags, for people and, as
// JSON, for programs. Call [WriteApp] or [WriteCommand] for the text and
// [Describe] for the data.
package help

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/runner/report"
)

// The library prints no help: it is written here.
func init() { cli.HelpFlag = nil }

// The groups of commands, in the order help lists them.
const (
	Suites = "Suites"
	Runs   = "Runs"
	Daemon = "Daemon"
	More   = "More"
)

// Groups are all groups, in that order.
var Groups = []string{Suites, Runs, Daemon, More}

// Find returns the command of that name that help lists, or nil.
func Find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) && !c.Hidden {
			return c
		}
	}
	return nil
}

// WriteApp writes the help of the whole program.
func WriteApp(w io.Writer, app *cli.App) {
	fmt.Fprintf(w, "%s: %s\n\nUsage: waza COMMAND [flags] [arguments]\n\n%s\n", app.Name, app.Usage, app.Description)
	for _, g := range Groups {
		fmt.Fprintf(w, "\n%s:\n", g)
		for _, c := range app.Commands {
			if c.Category == g && !c.Hidden {
				fmt.Fprintf(w, "  %-12s%s\n", c.Name, c.Usage)
			}
		}
	}
	fmt.Fprintf(w, "\nExit codes:\n%s\n\nwaza COMMAND --help tells more of a command.\n", exit.Codes)
}

// WriteCommand writes the help of a command, its flags included.
func WriteCommand(w io.Writer, c *cli.Command) {
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

// Flag is what help says of a flag.
type Flag struct {
	Flag    string `json:"flag"` // with its value, as one types it
	Short   string `json:"short,omitempty"`
	Usage   string `json:"usage"`
	Default string `json:"default"`
	Env     string `json:"env,omitempty"`
}

// DescribeFlag returns what help says of a flag.
func DescribeFlag(f cli.Flag) Flag {
	h := Flag{Flag: "--" + f.Names()[0], Default: "off"}
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
	h := DescribeFlag(f)
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

// CommandHelp is what help says of a command, for programs.
type CommandHelp struct {
	Name        string        `json:"name"`
	Usage       string        `json:"usage"`
	Call        string        `json:"call"`
	Description string        `json:"description,omitempty"`
	Flags       []Flag        `json:"flags"`
	Commands    []CommandHelp `json:"commands,omitempty"`
}

// Describe returns what help says of the commands below parent, hidden ones left out.
func Describe(parent string, commands []*cli.Command) []CommandHelp {
	var out []CommandHelp
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		h := CommandHelp{Name: parent + " " + c.Name, Usage: c.Usage, Call: usageLine(c), Description: c.Description}
		for _, f := range c.Flags {
			h.Flags = append(h.Flags, DescribeFlag(f))
		}
		h.Commands = Describe(h.Name, c.Subcommands)
		out = append(out, h)
	}
	return out
}
