package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/migrating"
	"waza/eval/decode"
)

// Arrange puts flags before arguments, as the flag library requires, so that `waza run suite
// --json` works. It also reports unknown flags and missing values, because its messages are
// better than the library's.
func Arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{app.Name}
	}
	a := Arrangement{Name: app.Name, Flags: app.Flags, Commands: app.Commands, out: []string{args[0]}, flagsAt: 1}
	if err := a.take(args[1:]); err != nil {
		return nil, err
	}
	return a.result(), nil
}

// Arrangement is the state of scanning the arguments: the command found so far, and the
// rearranged arguments.
type Arrangement struct {
	Name     string         // full name of the command: "waza runs"
	Flags    []cli.Flag     // flags of the command
	Commands []*cli.Command // its subcommands
	Rest     []string       // arguments

	out []string // commands and flags
	// flags start at this index of out; default flags that others override go there
	flagsAt int
	debug   bool // --debug was among the arguments
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
			if !c.HasName(arg) {
				arg = c.Name
			}
			a.out = append(a.out, arg)
			a.flagsAt = len(a.out)
			if c.SkipFlagParsing {
				a.out = append(a.out, args[i+1:]...)
				return nil
			}
			a.Name, a.Flags, a.Commands = c.HelpName, c.Flags, c.Subcommands
		}
	}
	return nil
}

// Command returns the subcommand of that name, or nil after the first argument.
func (a *Arrangement) Command(name string) *cli.Command {
	if len(a.Rest) > 0 {
		return nil
	}
	for _, c := range a.Commands {
		if c.HasName(name) {
			return c
		}
	}
	for _, c := range a.Commands {
		if c.Name == migrating.Alias(a.Name+" "+name) {
			return c
		}
	}
	return nil
}

// flag consumes a flag with its value and returns the number of arguments consumed.
func (a *Arrangement) flag(args []string) (int, error) {
	name, _, hasValue := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	f := Find(a.Flags, name)
	if f == nil && len(a.Commands) > 0 && len(a.Rest) > 0 {
		a.Rest = append(a.Rest, args[0]) // the command does not exist, which is the error to report
		return 1, nil
	}
	if f == nil && name == "debug" {
		a.debug = true
		return 1, nil
	}
	if f == nil {
		if p, ok := migrating.Flag(a.Name, name); ok {
			return a.pointer(p, args)
		}
		return 0, a.unknown(args[0])
	}
	a.out = append(a.out, args[0])
	if hasValue || !TakesValue(f) {
		return 1, nil
	}
	if len(args) == 1 {
		return 0, exit.Usagef(fmt.Sprintf("%s --help describes it", a.Name), "%s needs a value", args[0])
	}
	a.out = append(a.out, args[1])
	return 2, nil
}

// pointer consumes a flag that has another name in waza, and returns the number of arguments
// consumed.
func (a *Arrangement) pointer(p migrating.Pointer, args []string) (int, error) {
	flag, value, hasValue := strings.Cut(args[0], "=")
	if p.Hint != "" {
		return 0, exit.Usagef(p.Hint, "%s has no flag %s", a.Name, flag)
	}
	n := 1
	if p.TakesValue && !hasValue {
		if len(args) == 1 {
			return 0, exit.Usagef(fmt.Sprintf("%s --help describes it", a.Name), "%s needs a value", flag)
		}
		value, n = args[1], 2
	}
	means, err := p.Rewrite(value)
	switch {
	case err != nil:
		return 0, exit.Usagef(fmt.Sprintf("%s --help lists the flags", a.Name), "%s: %v", flag, err)
	case hasValue && !p.TakesValue && value == "false":
	case p.Default:
		a.out = slices.Insert(a.out, a.flagsAt, means...)
	default:
		a.out = append(a.out, means...)
	}
	return n, nil
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
	// Only commands with --verbose print more; all others accept the flag and ignore it.
	if a.debug && Find(a.Flags, "verbose") != nil {
		a.out = append(a.out, "--verbose")
	} else if a.debug && Find(a.Flags, "log-level") != nil {
		a.out = slices.Insert(a.out, a.flagsAt, "--log-level", "debug")
	}
	if len(a.Rest) == 0 {
		return a.out
	}
	return append(append(a.out, "--"), a.Rest...)
}

// Find returns the flag with the given long or short name, or nil.
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
