package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/complete"
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
			for _, word := range complete.Words(c.App, words, completions) {
				fmt.Fprintln(e.stdout, word)
			}
			return nil
		},
	}
}

// completions are what flags and commands take.
var completions = complete.Source{Values: valuesOf, Arguments: argumentsOf}

// valuesOf are the values a flag takes, where these are a few words.
func valuesOf(f cli.Flag) []string {
	switch f.Names()[0] {
	case "executor":
		return plan.Executors.Names()
	case "fsync":
		return journal.SyncNames()
	case "agents", "jobs", "browser", "router":
		return []string{"off"}
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

// argumentsOf are the fixed words, beside subcommands, that may be the first argument
// of a command.
func argumentsOf(command string) (words []string) {
	switch command {
	case "waza completion":
		for _, s := range shells {
			words = append(words, s.name)
		}
	case "waza schema":
		for _, s := range schemas {
			words = append(words, s.name)
		}
	case "waza runs show", "waza runs follow", "waza runs cancel", "waza runs rm", "waza compare", "waza grade", "waza review":
		return runIDs()
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
