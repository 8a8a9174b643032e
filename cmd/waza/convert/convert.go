// Package convert implements `waza convert`, which writes suites of other tools as eval.yaml. Call
// [Command].
package convert

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/eval"
	"waza/eval/dialect"
	"waza/runner/plan"
	"waza/runner/report"
)

// Command returns waza convert.
func Command(to output.Streams) *cli.Command {
	return &cli.Command{
		Name: "convert", Category: help.Suites,
		Usage:     "write a suite of another tool as eval.yaml, or a suite for another tool",
		ArgsUsage: "SUITE",
		Description: `It prints the eval.yaml that a suite such as evals/evals.json means to waza, with all
tasks. Comments name the parts without an equivalent. Paths in it are relative to the
directory of the original, so the file belongs there. waza run does not need it: it
runs the original.

With --to, it writes a suite of any format for another tool: evals.json (skill
evals), trigger-evals.json (trigger sets), vally, promptfoo, or harbor, which needs
a folder in --output and gets a folder for each task. Keys that the format cannot
say are named, also in comments of YAML and TOML files.

The values of --param take the place of parameters in the file. They must not be
secrets.

Examples:
  waza convert skills/demo/evals/evals.json
  waza convert skills/demo/evals/evals.json --agent codex -o skills/demo/evals/eval.yaml
  waza convert skills/demo/evals/eval.yaml --to evals.json -o skills/demo/evals/evals.json
  waza convert eval.yaml --to harbor -o tasks

Exit codes: 0 when the suite is written, 1 when parts are not written without which
verdicts change, 2 when it is invalid, not in the format of another
tool, or has secrets in variables of the machine.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "write the `FORMAT` of another tool: " + strings.Join(targets(), " or "), DefaultText: "eval.yaml"},
			&cli.StringFlag{Name: "agent", Usage: "name the agent `NAME` in the suite", DefaultText: "none"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` beside the original, or below a folder with --to harbor", DefaultText: "print"},
			runflags.ParamFlag(""),
			flags.JSON("print the format and the text of the suite as JSON"),
		},
		Action: flags.AtMost(1, func(c *cli.Context) error { return convert(c, to) }),
	}
}

// converted is the output of --json.
type converted struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Suite  string `json:"suite"` // the text of the eval.yaml
}

func convert(c *cli.Context, to output.Streams) error {
	path := c.Args().First()
	if path == "" {
		return exit.Usagef("waza list finds them", "waza convert takes a suite of another tool")
	}
	params, err := runflags.Params(c)
	if err != nil {
		return err
	}
	if err := refuseParams(params); err != nil {
		return err
	}
	suite, found, err := eval.Load(path, eval.Options{Params: params})
	if err != nil {
		return err
	}
	if err := to.Diagnostics(found); err != nil {
		return err
	}
	if suite == nil || found.HasErrors() {
		return exit.Usagef("waza validate "+path+" lists all findings", "%s: the suite is invalid: %s", path, report.DiagnosticsSummary(found.Errors()))
	}
	if suite.Format == "" && c.String("to") == "" {
		return exit.Usagef("waza convert takes a suite in the format of another tool, see waza list", "%s is an eval.yaml already", path)
	}
	root, err := suite.Node()
	if err != nil {
		return exit.Usagef("use fewer aliases", "%s: %v", path, err)
	}
	if suite.Format != "" { // whose translation has the values of variables
		if err := refuseSecrets(path, root); err != nil {
			return err
		}
	}
	if c.String("to") != "" {
		return writeBack(c, suite, to)
	}
	setAgent(dialect.Map{Node: root}, c.String("agent"))
	text, err := dialect.Encode(root)
	if err != nil {
		return err
	}
	text = append([]byte(header(suite, c.String("agent"))), text...)
	file := c.String("output")
	switch {
	case c.Bool("json"):
		return to.Stdout.JSON(converted{path, suite.Format, string(text)})
	case file == "":
		_, err := to.Stdout.Write(text)
		return err
	}
	if abs, err := filepath.Abs(file); err != nil || filepath.Dir(abs) != suite.Dir {
		return exit.Usagef("name a file in "+output.Path(suite.Dir), "--output %s is not beside the original, whose directory the paths of the suite are relative to", file)
	}
	return output.WriteFile("--output", file, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// header returns the comment at the start of the file.
func header(suite *eval.Suite, agent string) string {
	text := fmt.Sprintf("# waza convert wrote this suite from %s (%s).\n", filepath.Base(suite.File), suite.Format)
	if agent == "" && suite.Config.Executor == "" {
		text += "# The original names no agent: use waza run --agent NAME, or set config.executor and config.agent.\n"
	}
	return text
}

// setAgent sets the agent in the config of a suite, if it is not empty.
func setAgent(root dialect.Map, agent string) {
	if agent == "" {
		return
	}
	config := dialect.Map{Node: root.Get("config")}
	if config.Node == nil {
		config = dialect.NewMap(nil)
		root.Set("config", config.Node)
	}
	config.Set("executor", dialect.Scalar(nil, plan.AgentExecutor))
	config.Set("agent", dialect.Scalar(nil, agent))
}
