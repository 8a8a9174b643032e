package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/compare"
	"waza/cmd/waza/complete"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/schema"
	"waza/eval"
	"waza/runner"
	runscompare "waza/runner/compare"
	"waza/runner/executor/acp"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/report/formats"
)

// completeCommand answers the completion scripts. Its arguments are the words after waza; the
// last one, possibly empty, is the word to complete. It prints one candidate per line. Where a
// file is expected it prints nothing, so that the shell completes file names.
func (e *env) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "complete", Hidden: true, SkipFlagParsing: true,
		Usage: "print the completions of the last argument",
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) > 0 && words[0] == "--" {
				words = words[1:] // the separator between our own arguments and the words
			}
			for _, word := range complete.Words(c.App, words, completions) {
				fmt.Fprintln(e.stdout, word)
			}
			return nil
		},
	}
}

// completions lists the values of flags and the arguments of commands.
var completions = complete.Source{Values: valuesOf, Arguments: argumentsOf}

// valuesOf returns the values that a flag accepts after the given arguments.
func valuesOf(f cli.Flag, arguments []string) []string {
	switch f.Names()[0] {
	case "executor":
		return plan.Executors.Names()
	case "agent", "judge-agent":
		project, _, _ := eval.FindProject(".")
		return acp.AgentNames(project)
	case "task", "tag":
		rn, err := runner.New(runner.Options{})
		if err != nil {
			return nil
		}
		ids, tags := complete.Tasks(arguments, eval.Options{Vocabulary: rn.Planner().Vocabulary()})
		if f.Names()[0] == "tag" {
			return tags
		}
		return ids
	case "suite":
		return complete.Suites()
	case "report":
		return formats.Names(formats.Formats())
	case "format":
		if d, ok := f.(cli.DocGenerationFlag); ok && strings.Contains(d.GetUsage(), "github-actions") {
			return compare.Formats()
		}
		return formats.Names(formats.Exports(nil))
	case "fsync":
		return journal.SyncNames()
	case "agents", "jobs", "browser", "router":
		return []string{"off"}
	case "log-level":
		return logLevels
	case "fail-on":
		if d, ok := f.(cli.DocGenerationFlag); ok && strings.Contains(d.GetUsage(), runflags.Unmeasured) {
			return []string{runflags.Unmeasured}
		}
		return compare.FailOn()
	case "undecided":
		return runflags.Undecided()
	case "on-new-tasks", "on-removed-tasks", "on-collapsed-tasks":
		return runscompare.OnTasksNames()
	}
	return nil
}

// argumentsOf returns the words, besides subcommands, that a command accepts next.
func argumentsOf(command string, before []string) (words []string) {
	switch command {
	case "waza run", "waza validate":
		return complete.Suites()
	case "waza runs show", "waza runs follow", "waza runs cancel", "waza runs rm", "waza runs export", "waza runs resume", "waza compare":
		return runIDs()
	}
	if len(before) > 0 {
		return nil
	}
	switch command {
	case "waza tasks", "waza history":
		return complete.Suites()
	case "waza grade", "waza review":
		return runIDs()
	case "waza completion":
		return complete.Shells()
	case "waza schema":
		return schema.Names()
	case "waza check", "waza dev", "waza quality", "waza suggest", "waza tokens profile":
		return complete.Skills()
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
