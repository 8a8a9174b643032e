package command

import (
	"errors"
	"strings"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
)

// Options are the keys of a suite's config that belong to the command executor.
type Options struct {
	// Program and arguments as a list, or a text run by sh -c. Files that stand beside the suite are found.
	Command Line `yaml:"command"`
	// How the program gets the prompt: on standard input, as its last argument, or in WAZA_PROMPT.
	PromptAs PromptAs `yaml:"prompt_as" jsonschema:"enum=stdin,enum=argument,enum=env,default=stdin"`
	// Environment variables of the program.
	Env map[string]string `yaml:"env"`
}

// Environment is what the suite sets for the program.
func (o *Options) Environment() map[string]string { return o.Env }

// PromptAs says how a program gets the prompt.
type PromptAs string

// The ways a program gets the prompt.
const (
	Stdin    PromptAs = "stdin"
	Argument PromptAs = "argument"
	Env      PromptAs = "env"
)

// Line is a program with its arguments or, when Shell is set, one text for sh -c.
type Line struct {
	Args  []string
	Shell bool
}

// UnmarshalYAML takes both shapes.
func (l *Line) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		l.Args, l.Shell = []string{n.Value}, true
	} else if err := n.Decode(&l.Args); err != nil {
		return errors.New("command: a list of texts, or one text for the shell, is wanted")
	}
	if len(l.Args) == 0 || strings.TrimSpace(l.Args[0]) == "" {
		return errors.New("command: no program to run")
	}
	return nil
}

// JSONSchema describes both shapes.
func (Line) JSONSchema() *jsonschema.Schema {
	one := uint64(1)
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", MinLength: &one},
		{Type: "array", Items: &jsonschema.Schema{Type: "string"}, MinItems: &one},
	}}
}

// String names the program in messages.
func (l Line) String() string {
	if len(l.Args) == 0 {
		return "command"
	}
	return l.Args[0]
}

func check(c *eval.Check, o *Options) {
	if len(o.Command.Args) == 0 && !c.Has(decode.At("command")) {
		c.Errorf(decode.At(), decode.CodeMissingField, "config.command is missing: the program to run, as a list or a text for the shell")
	}
	for k := range o.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			c.Errorf(decode.At("env", k), decode.CodeInvalidValue, "%q cannot be the name of an environment variable", k)
		}
	}
}
