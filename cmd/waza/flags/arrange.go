package flags

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/eval/decode"
)

// Arrange puts flags before arguments, as the flag library wants them, so that
// `waza run suite --json` means what it says. It also finds unknown flags and
// missing values, because it knows better than the library what to say of them.
func Arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{app.Name}
	}
	a := Arrangement{Name: app.Name, Flags: app.Flags, Commands: app.Commands, out: []string{args[0]}}
	if err := a.take(args[1:]); err != nil {
		return nil, err
	}
	return a.result(), nil
}

// Arrangement is the state of going through the arguments: the command they
// have led to, and what comes out.
type Arrangement struct {
	Name     string         // of the command, with those above it: "waza runs"
	Flags    []cli.Flag     // that it takes
	Commands []*cli.Command // its subcommands
	Rest     []string       // arguments

	out []string // commands and flags
}

func (a *Arrangement) take(args []string) error {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			a.Rest = append(a.Rest, args[i+1:]...)
			return nil
		case len(arg) > 1 && arg[0] == '-':
			n, err := a.flag(args[i:])
			if err != nil {
				return err
			}
			i += n - 1
		default:
			c := a.Command(arg)
			if c == nil {
				a.Rest = append(a.Rest, arg)
				continue
			}
			a.out = append(a.out, arg)
			if c.SkipFlagParsing {
				a.out = append(a.out, args[i+1:]...)
				return nil
			}
			a.Name, a.Flags, a.Commands = c.HelpName, c.Flags, c.Subcommands
		}
	}
	return nil
}

// Command is the subcommand of that name, unless arguments have begun.
func (a *Arrangement) Command(name string) *cli.Command {
	if len(a.Rest) > 0 {
		return nil
	}
	for _, c := range a.Commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// flag takes a flag with its value and returns how many arguments that were.
func (a *Arrangement) flag(args []string) (int, error) {
	name, _, hasValue := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	f := Find(a.Flags, name)
	if f == nil && len(a.Commands) > 0 && len(a.Rest) > 0 {
		a.Rest = append(a.Rest, args[0]) // of a command that is not there, which is what to tell
		return 1, nil
	}
	if f == nil {
		return 0, a.unknown(args[0])
	}
	a.out = append(a.out, args[0])
	if hasValue || !TakesValue(f) {
		return 1, nil
	}
	if len(args) == 1 {
		return 0, exit.Usagef(fmt.Sprintf("%s --help tells which", a.Name), "%s needs a value", args[0])
	}
	a.out = append(a.out, args[1])
	return 2, nil
}

func (a *Arrangement) unknown(arg string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	var known []string
	for _, f := range a.Flags {
		known = append(known, f.Names()[0])
	}
	hint := a.Name + " --help lists the flags"
	if near := decode.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean --%s?", near)
	}
	shown, _, _ := strings.Cut(arg, "=")
	return exit.Usagef(hint, "%s: unknown flag %s", a.Name, shown)
}

func (a *Arrangement) result() []string {
	if len(a.Rest) == 0 {
		return a.out
	}
	return append(append(a.out, "--"), a.Rest...)
}

// Find returns the flag that has the name, be it its long or a short one, or nil.
func Find(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// TakesValue reports whether the flag is followed by a value.
func TakesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}
