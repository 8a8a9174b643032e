// Package flags reads the arguments of a command line. It reorders them for the flag library,
// and rejects unknown flags and arguments with a hint. Call [Arrange] before the library parses
// anything, make actions with [AtMost] and [Group], and call [OneOf] in them.
package flags

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/migrating"
	"waza/eval/decode"
)

// AtMost returns an action that rejects a call with more than n arguments.
func AtMost(n int, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := TooMany(c, n); err != nil {
			return err
		}
		return action(c)
	}
}

// TooMany returns the error of a call with more than n arguments, else nil.
func TooMany(c *cli.Context, n int) error {
	if c.NArg() <= n {
		return nil
	}
	return exit.Usagef(fmt.Sprintf("%s --help prints its usage", c.Command.HelpName),
		"unexpected argument %q", c.Args().Get(n))
}

// Group returns the action of a command with subcommands. It rejects an argument, which names none
// of them; without arguments it does what the command does alone.
func Group(alone cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if name := c.Args().First(); name != "" {
			return UnknownCommand(c.Command.HelpName, name, c.Command.Subcommands)
		}
		return alone(c)
	}
}

// Required returns the action of a command that does nothing without one of its subcommands.
func Required(hint, problem string) cli.ActionFunc {
	return Group(func(*cli.Context) error { return exit.Usagef(hint, "%s", problem) })
}

// JSON returns the flag --json, which every command has.
func JSON(usage string) cli.Flag { return &cli.BoolFlag{Name: "json", Usage: usage} }

// IsFile reports whether path is a regular file.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// OneOf checks the value of a flag that accepts one of a few words.
func OneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return exit.Usagef("known values are "+strings.Join(words, ", "), "--%s: unknown value %q", flag, value)
}

// FormatFlag returns the flag --format of a command that prints in one of the given formats. The
// first is the default.
func FormatFlag(words ...string) *cli.StringFlag {
	last := len(words) - 1
	return &cli.StringFlag{
		Name: "format", Usage: "print as `FORMAT`: " + strings.Join(words[:last], ", ") + " or " + words[last],
		Value: words[0], DefaultText: words[0],
	}
}

// Format returns the value of --format, one of the given words, or json if --json is given.
func Format(c *cli.Context, words ...string) (string, error) {
	format := c.String("format")
	if err := OneOf("format", format, words...); err != nil {
		return "", err
	}
	if !c.Bool("json") {
		return format, nil
	}
	if c.IsSet("format") && format != "json" {
		return "", exit.Usagef("omit one of them", "--json and --format %s cannot be combined", format)
	}
	return "json", nil
}

// UsageError rewrites the errors of the flag library.
func UsageError(command string) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		msg := err.Error()
		// invalid value "x" for flag -trials: parse error
		if rest, ok := strings.CutPrefix(msg, "invalid value "); ok {
			if value, rest, ok := strings.Cut(rest, " for flag -"); ok {
				name, _, _ := strings.Cut(rest, ":")
				msg = fmt.Sprintf("--%s: invalid value %s", name, value)
			}
		}
		return exit.Usagef(command+" --help lists the flags", "%s", msg)
	}
}

// UnknownCommand returns an error for a word that names no command of parent.
func UnknownCommand(parent, name string, commands []*cli.Command) error {
	if hint, ok := migrating.Command(parent + " " + name); ok {
		return exit.Usagef(hint, "unknown command %q", name)
	}
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	hint := fmt.Sprintf("%s --help lists the commands", parent)
	if near := decode.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s %s?", parent, near)
	} else if IsFile(name) && parent == "waza" {
		hint = fmt.Sprintf("to run that suite: waza run %s", name)
	}
	return exit.Usagef(hint, "unknown command %q", name)
}
