package main

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/urfave/cli/v2"

	"waza/eval"
)

func (p *program) schemaCommand() *cli.Command {
	return &cli.Command{
		Name: "schema", Category: groupMore,
		Usage:     "print the JSON Schema of suites, task files or trigger tests",
		ArgsUsage: "[suite|task|trigger_tests]",
		Description: `Editors that know JSON Schema complete and check YAML files with it. Without an
argument it is the schema of suites.

Examples:
  waza schema > eval.schema.json
  waza schema task`,
		Flags:  []cli.Flag{jsonFlag("print it on one line; a schema is JSON in any case")},
		Action: p.schema,
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
}

func (p *program) schema(c *cli.Context) error {
	if err := most(c, 1); err != nil {
		return err
	}
	name := c.Args().First()
	var known []string
	for _, s := range schemas {
		known = append(known, s.name)
		if s.name == name || name == "" {
			return p.printSchema(s.text(), c.Bool("json"))
		}
	}
	hint := "known are suite, task and trigger_tests"
	if near := eval.Nearest(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usage(hint, "no schema is named %q", name)
}

func (p *program) printSchema(text []byte, oneLine bool) error {
	if oneLine {
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil {
			return err
		}
		text = b.Bytes()
	}
	_, err := io.WriteString(p.stdout, string(bytes.TrimRight(text, "\n"))+"\n")
	return err
}
