package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/eval"
)

// arrange puts flags before arguments, as the flag library wants them, so that
// `waza run suite --json` means what it says. It also finds unknown flags and
// missing values, because it knows better than the library what to say of them.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{app.Name}
	}
	a := arrangement{name: app.Name, flags: app.Flags, commands: app.Commands, out: []string{args[0]}}
	if err := a.take(args[1:]); err != nil {
		return nil, err
	}
	return a.result(), nil
}

// arrangement is the state of going through the arguments: the command they
// have led to, and what comes out.
type arrangement struct {
	name     string
	flags    []cli.Flag
	commands []*cli.Command
	out      []string // commands and flags
	rest     []string // arguments
}

func (a *arrangement) take(args []string) error {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			a.rest = append(a.rest, args[i+1:]...)
			return nil
		case len(arg) > 1 && arg[0] == '-':
			n, err := a.flag(args[i:])
			if err != nil {
				return err
			}
			i += n - 1
		default:
			c := a.command(arg)
			if c == nil {
				a.rest = append(a.rest, arg)
				continue
			}
			a.out = append(a.out, arg)
			if c.SkipFlagParsing {
				a.out = append(a.out, args[i+1:]...)
				return nil
			}
			a.name, a.flags, a.commands = c.HelpName, c.Flags, c.Subcommands
		}
	}
	return nil
}

// command is the subcommand of that name, unless arguments have begun.
func (a *arrangement) command(name string) *cli.Command {
	if len(a.rest) > 0 {
		return nil
	}
	for _, c := range a.commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// flag takes a flag with its value and returns how many arguments that were.
func (a *arrangement) flag(args []string) (int, error) {
	name, _, hasValue := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	f := findFlag(a.flags, name)
	if f == nil && len(a.commands) > 0 && len(a.rest) > 0 {
		a.rest = append(a.rest, args[0]) // of a command that is not there, which is what to tell
		return 1, nil
	}
	if f == nil {
		return 0, a.unknown(args[0])
	}
	a.out = append(a.out, args[0])
	if hasValue || !takesValue(f) {
		return 1, nil
	}
	if len(args) == 1 {
		return 0, usage(fmt.Sprintf("%s --help tells which", a.name), "%s needs a value", args[0])
	}
	a.out = append(a.out, args[1])
	return 2, nil
}

func (a *arrangement) unknown(arg string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	var known []string
	for _, f := range a.flags {
		known = append(known, f.Names()[0])
	}
	hint := a.name + " --help lists the flags"
	if near := eval.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean --%s?", near)
	}
	shown, _, _ := strings.Cut(arg, "=")
	return usage(hint, "%s: unknown flag %s", a.name, shown)
}

func (a *arrangement) result() []string {
	if len(a.rest) == 0 {
		return a.out
	}
	return append(append(a.out, "--"), a.rest...)
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}
