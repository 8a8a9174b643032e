package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/runner"
	"waza/runner/journal"
	"waza/runner/plan"
)

var (
	//go:embed completion/waza.bash
	bashCompletion string
	//go:embed completion/waza.zsh
	zshCompletion string
	//go:embed completion/waza.fish
	fishCompletion string
)

// shells are those that completion scripts are printed for. The scripts know
// nothing of the commands: they ask `waza complete`.
var shells = []struct{ name, script, install string }{
	{"bash", bashCompletion, `eval "$(waza completion bash)"  # in ~/.bashrc`},
	{"zsh", zshCompletion, `eval "$(waza completion zsh)"  # in ~/.zshrc, after compinit`},
	{"fish", fishCompletion, `waza completion fish > ~/.config/fish/completions/waza.fish`},
}

func completionCommand(e *env) *cli.Command {
	description := "Put it where your shell reads it:\n"
	for _, s := range shells {
		description += "\n  " + s.install
	}
	return &cli.Command{
		Name: "completion", Category: help.More,
		Usage:       "print a script that lets a shell complete waza's commands",
		ArgsUsage:   "bash|zsh|fish",
		Description: description + "\n\nExamples:\n  source <(waza completion bash)",
		Flags:       []cli.Flag{flags.JSON("print the script in a JSON document")},
		Action: func(c *cli.Context) error {
			if err := flags.AtMost(c, 1); err != nil {
				return err
			}
			for _, s := range shells {
				if s.name != c.Args().First() {
					continue
				}
				if c.Bool("json") {
					return e.stdout.JSON(map[string]string{"shell": s.name, "script": s.script})
				}
				_, err := io.WriteString(e.stdout, s.script)
				return err
			}
			if c.NArg() == 0 {
				return exit.Usagef("waza completion bash, zsh or fish", "waza completion takes the name of a shell")
			}
			return exit.Usagef("known are bash, zsh and fish", "no completion for the shell %q", c.Args().First())
		},
	}
}

// completeCommand answers the completion scripts: its arguments are the words
// after waza, the last of them, perhaps empty, the one to complete. It prints
// what it may become, one a line; nothing where a file is wanted, so that the
// shell completes those.
func completeCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "complete", Hidden: true, SkipFlagParsing: true,
		Usage: "print what the last argument may become",
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) > 0 && words[0] == "--" {
				words = words[1:] // it parts them from what is meant for us
			}
			for _, word := range complete(c.App, words) {
				fmt.Fprintln(e.stdout, word)
			}
			return nil
		},
	}
}

// complete returns the words that the last of words may become.
func complete(app *cli.App, words []string) []string {
	words = joinEquals(words)
	if len(words) == 0 {
		words = []string{""}
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	at := flags.Arrangement{Name: "waza", Flags: app.Flags, Commands: app.Commands}
	var wants cli.Flag // the flag of which the word is the value
	for _, w := range before {
		switch {
		case wants != nil:
			wants = nil
		case w == "--":
			return nil // only arguments follow
		case strings.HasPrefix(w, "-"):
			if f := flags.Find(at.Flags, strings.TrimLeft(w, "-")); f != nil && flags.TakesValue(f) {
				wants = f
			}
		default:
			if c := at.Command(w); c != nil {
				at.Name, at.Flags, at.Commands = c.HelpName, c.Flags, c.Subcommands
			} else {
				at.Rest = append(at.Rest, w)
			}
		}
	}
	if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
		if f := flags.Find(at.Flags, strings.TrimLeft(name, "-")); f != nil {
			return startingWith(value, valuesOf(f))
		}
		return nil
	}
	switch {
	case wants != nil:
		return startingWith(word, valuesOf(wants))
	case strings.HasPrefix(word, "-"):
		return startingWith(word, flagWords(at.Flags))
	}
	return startingWith(word, argumentsOf(app, at))
}

// joinEquals puts --flag=value together again, which bash takes apart.
func joinEquals(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		if words[i] == "=" && len(out) > 0 && strings.HasPrefix(out[len(out)-1], "-") {
			out[len(out)-1] += "="
			if i+1 < len(words) {
				i++
				out[len(out)-1] += words[i]
			}
			continue
		}
		out = append(out, words[i])
	}
	return out
}

func flagWords(flags []cli.Flag) []string {
	var words []string
	for _, f := range flags {
		words = append(words, "--"+f.Names()[0])
	}
	return words
}

// valuesOf are the values a flag takes, where these are a few words.
func valuesOf(f cli.Flag) []string {
	switch f.Names()[0] {
	case "executor":
		return plan.Executors.Names()
	case "fsync":
		return journal.SyncNames()
	case "log-level":
		return logLevels
	case "fail-on":
		if d, ok := f.(cli.DocGenerationFlag); ok && strings.Contains(d.GetUsage(), failOnUnmeasured) {
			return []string{failOnUnmeasured}
		}
		return []string{failOnRegression, failOnDrop}
	}
	return nil
}

// argumentsOf are the subcommands and other fixed words that may stand here.
func argumentsOf(app *cli.App, at flags.Arrangement) []string {
	var words []string
	if len(at.Rest) > 0 {
		return nil
	}
	for _, c := range at.Commands {
		if !c.Hidden {
			words = append(words, c.Name)
		}
	}
	switch at.Name {
	case "waza completion":
		for _, s := range shells {
			words = append(words, s.name)
		}
	case "waza schema":
		for _, s := range schemas {
			words = append(words, s.name)
		}
	case "waza help":
		return argumentsOf(app, flags.Arrangement{Name: "waza", Commands: app.Commands})
	case "waza runs show", "waza runs follow", "waza runs cancel", "waza runs rm", "waza compare", "waza grade", "waza review":
		words = append(words, runIDs()...)
	}
	return words
}

func runIDs() []string {
	rn, err := runner.New(runner.Options{})
	if err != nil {
		return nil
	}
	infos, err := rn.Catalog().List(20)
	if err != nil {
		return nil
	}
	var ids []string
	for _, i := range infos {
		ids = append(ids, i.RunID)
	}
	return ids
}

func startingWith(prefix string, words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
}
