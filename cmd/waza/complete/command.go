package complete

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/compare"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
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

// Name is the name of the command. It knows all commands.
const Name = "complete"

// Command answers the completion scripts. Its arguments are the words after waza; the
// last one, possibly empty, is the word to  It prints one candidate per line. Where a
// file is expected it prints nothing, so that the shell completes file names.
func Command(stdout *output.Stdout) *cli.Command {
	return &cli.Command{
		Name: Name, Hidden: true, SkipFlagParsing: true,
		Usage: "print the completions of the last argument",
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) > 0 && words[0] == "--" {
				words = words[1:] // the separator between our own arguments and the words
			}
			for _, word := range Words(c.App, words) {
				fmt.Fprintln(stdout, word)
			}
			return nil
		},
	}
}

// valuesOf returns the values that a flag accepts, besides those that its help lists. It gets the
// arguments of the command before the flag.
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
		ids, tags := Tasks(arguments, eval.Options{Vocabulary: rn.Planner().Vocabulary()})
		if f.Names()[0] == "tag" {
			return tags
		}
		return ids
	case "suite":
		return Suites()
	case "report":
		return formats.Names(formats.Formats())
	case "format":
		if d, ok := f.(cli.DocGenerationFlag); ok && strings.Contains(d.GetUsage(), "github-actions") {
			return compare.Formats()
		}
		return formats.Names(formats.Exports(nil))
	case "sandbox":
		return []string{"off", "auto", "strict", "container"}
	case "fsync":
		return journal.SyncNames()
	case "agents", "jobs", "browser", "router":
		return []string{"off"}
	case "log-level":
		return flags.LogLevels
	case "fail-on":
		if d, ok := f.(cli.DocGenerationFlag); ok && strings.Contains(d.GetUsage(), runflags.Unmeasured) {
			return runflags.FailOnValues()
		}
		return compare.FailOn()
	case "about":
		return compare.About()
	case "undecided":
		return runflags.Undecided()
	case "on-new-tasks", "on-removed-tasks", "on-collapsed-tasks":
		return runscompare.OnTasksNames()
	}
	return nil
}

// argumentsOf returns the words, besides subcommands, that a command accepts as its next argument.
// The command has its full name: "waza runs show".
func argumentsOf(command string, before []string) (words []string) {
	switch command {
	case "waza run", "waza validate":
		return Suites()
	case "waza runs show", "waza runs follow", "waza runs cancel", "waza runs rm", "waza runs export", "waza runs resume", "waza compare":
		return runIDs()
	}
	if len(before) > 0 {
		return nil
	}
	switch command {
	case "waza tasks", "waza plan", "waza history":
		return Suites()
	case "waza grade", "waza review":
		return runIDs()
	case "waza completion":
		return Shells()
	case "waza schema":
		return schema.Names()
	case "waza check", "waza dev", "waza quality", "waza suggest", "waza tokens profile":
		return Skills()
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
