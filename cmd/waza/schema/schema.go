// Package schema implements `waza schema`, which prints the JSON Schemas of the files that waza
// reads. Call [Command].
package schema

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/config"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/eval/decode"
	"waza/eval/schemafiles"
)

// Command returns waza schema, which prints to stdout.
func Command(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name: "schema", Category: help.More,
		Usage:     "print the JSON Schema of suites, task files, trigger tests, .waza.yaml or the configuration of waza serve",
		ArgsUsage: "[suite|task|trigger_tests|project|serve]",
		Description: `Editors with JSON Schema support use it to complete and check YAML files. Without
an argument, it prints the schema of suites.

Examples:
  waza schema > eval.schema.json
  waza schema task
  waza schema project > .waza.schema.json
  waza schema serve > waza.schema.json`,
		Flags:  []cli.Flag{flags.JSON("print the schema on one line")},
		Action: flags.AtMost(1, func(c *cli.Context) error { return show(stdout, c) }),
	}
}

// all lists the schemas that waza schema prints.
var all = []struct {
	name string
	text func() []byte
}{
	{"suite", schemafiles.Suite},
	{"task", schemafiles.Task},
	{"trigger_tests", schemafiles.TriggerTests},
	{"project", schemafiles.Project},
	{"serve", config.Schema},
}

// Names returns the names of the schemas.
func Names() (names []string) {
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

func show(stdout io.Writer, c *cli.Context) error {
	name := c.Args().First()
	for _, s := range all {
		if s.name == name || name == "" {
			return write(stdout, s.text(), c.Bool("json"))
		}
	}
	hint := "known schemas are suite, task, trigger_tests, project and serve"
	if near := decode.Nearest(name, Names()); near != "" {
		hint = "did you mean " + near + "?"
	}
	return exit.Usagef(hint, "unknown schema %q", name)
}

func write(stdout io.Writer, text []byte, oneLine bool) error {
	if oneLine {
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil {
			return err
		}
		text = b.Bytes()
	}
	_, err := io.WriteString(stdout, string(bytes.TrimRight(text, "\n"))+"\n")
	return err
}
