package main

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/config"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/eval"
	"waza/eval/decode"
)

func schemaCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "schema", Category: help.More,
		Usage:     "print the JSON Schema of suites, task files, trigger tests or the configuration of waza serve",
		ArgsUsage: "[suite|task|trigger_tests|serve]",
		Description: `Editors that know JSON Schema complete and check YAML files with it. Without an
argument it is the schema of suites.

Examples:
  waza schema > eval.schema.json
  waza schema task
  waza schema serve > waza.schema.json`,
		Flags:  []cli.Flag{flags.JSON("print it on one line; a schema is JSON in any case")},
		Action: e.do(printSchema),
	}
}

// schemas are those that waza schema prints.
var schemas = []struct {
	name string
	text func() []byte
}{
	{"suite", eval.SuiteSchema},
	{"task", eval.TaskSchema},
	{"trigger_tests", eval.TriggerTestsSchema},
	{"serve", config.Schema},
}

func printSchema(e *env, c *cli.Context) error {
	if err := flags.AtMost(c, 1); err != nil {
		return err
	}
	name := c.Args().First()
	var known []string
	for _, s := range schemas {
		known = append(known, s.name)
		if s.name == name || name == "" {
			return writeSchema(e, s.text(), c.Bool("json"))
		}
	}
	hint := "known are suite, task, trigger_tests and serve"
	if near := decode.Nearest(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return exit.Usagef(hint, "no schema is named %q", name)
}

func writeSchema(e *env, text []byte, oneLine bool) error {
	if oneLine {
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil {
			return err
		}
		text = b.Bytes()
	}
	_, err := io.WriteString(e.stdout, string(bytes.TrimRight(text, "\n"))+"\n")
	return err
}
