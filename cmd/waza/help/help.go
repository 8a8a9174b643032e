// Package help writes the help of commands and flags, for people and, as JSON, for programs.
// Call [WriteApp] or [WriteCommand] for the text and [Describe] for the data.
package help

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
)

// init removes the flag of the library's help, which this package replaces.
func init() { cli.HelpFlag = nil }

// The groups of commands, in the order in which help lists them.
const (
	Suites = "Suites"
	Skills = "Skills"
	Runs   = "Runs"
	Daemon = "Daemon"
	More   = "More"
)

// Groups lists all groups in that order.
var Groups = []string{Suites, Skills, Runs, Daemon, More}

// Find returns the visible command with the given name, or nil.
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
	width := widthOf(w)
	prose(w, fmt.Sprintf("%s: %s\n\nUsage: waza COMMAND [flags] [arguments]\n\n%s", app.Name, app.Usage, app.Description), width)
	for _, g := range Groups {
		fmt.Fprintf(w, "\n%s:\n", g)
		for _, c := range app.Commands {
			if c.Category == g && !c.Hidden {
				item(w, "  "+c.Name, c.Usage, commandColumn, width)
			}
		}
	}
	prose(w, fmt.Sprintf("\nExit codes:\n%s\n\nwaza COMMAND --help has more about a command.", exit.Codes), width)
}

// WriteCommand writes the help of a command, including its flags.
func WriteCommand(w io.Writer, c *cli.Command) {
	width := widthOf(w)
	prose(w, fmt.Sprintf("%s: %s\n\nUsage: %s", c.HelpName, c.Usage, usageLine(c)), width)
	if c.Description != "" {
		prose(w, "\n"+c.Description, width)
	}
	for _, sub := range c.Subcommands {
		if sub == c.Subcommands[0] {
			fmt.Fprint(w, "\nCommands:\n")
		}
		item(w, "  "+sub.Name, sub.Usage, commandColumn, width)
	}
	for _, g := range flagGroups(c.Flags) {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		for _, f := range g.flags {
			writeFlag(w, f, width)
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

// Hidden reports whether help omits the flag.
func Hidden(f cli.Flag) bool {
	v, ok := f.(cli.VisibleFlag)
	return ok && !v.IsVisible()
}

type flagGroup struct {
	title string
	flags []cli.Flag
}

// flagGroups groups flags by category, in the order in which the categories first occur.
func flagGroups(flags []cli.Flag) []flagGroup {
	var groups []flagGroup
next:
	for _, f := range flags {
		if Hidden(f) {
			continue
		}
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

// Flag is the help of a flag.
type Flag struct {
	Flag    string `json:"flag"` // with its value, as typed
	Short   string `json:"short,omitempty"`
	Usage   string `json:"usage"`
	Default string `json:"default"`
	Env     string `json:"env,omitempty"`
}

// DescribeFlag returns the help of a flag.
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
	} else if b, ok := f.(*cli.BoolFlag); ok && b.DefaultText != "" {
		h.Default = b.DefaultText
	}
	h.Env = strings.Join(d.GetEnvVars(), ", ")
	return h
}

// The columns where the texts about commands and about flags start.
const (
	commandColumn = 17
	flagColumn    = 26
)

func writeFlag(w io.Writer, f cli.Flag, width int) {
	h := DescribeFlag(f)
	left := "  " + h.Flag
	if h.Short != "" {
		left += ", " + h.Short
	}
	text := h.Usage
	if h.Flag != "--help" {
		text += fmt.Sprintf(" (default: %s)", h.Default)
	}
	item(w, left, text, flagColumn, width)
}

// CommandHelp is the help of a command, for programs.
type CommandHelp struct {
	Name        string        `json:"name"`
	Usage       string        `json:"usage"`
	Call        string        `json:"call"`
	Description string        `json:"description,omitempty"`
	Flags       []Flag        `json:"flags"`
	Commands    []CommandHelp `json:"commands,omitempty"`
}

// Describe returns the help of the commands below parent, without hidden ones.
func Describe(parent string, commands []*cli.Command) []CommandHelp {
	var out []CommandHelp
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		h := CommandHelp{Name: parent + " " + c.Name, Usage: c.Usage, Call: usageLine(c), Description: c.Description}
		for _, f := range c.Flags {
			if !Hidden(f) {
				h.Flags = append(h.Flags, DescribeFlag(f))
			}
		}
		h.Commands = Describe(h.Name, c.Subcommands)
		out = append(out, h)
	}
	return out
}
