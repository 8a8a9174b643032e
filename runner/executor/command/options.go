package command

import (
	"errors"
	"strings"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
)

// Options are the keys of a suite's config for the command executor.
type Options struct {
	// Program and arguments as a list, or a string run by sh -c. Files next to the suite are
	// found; of a string, the program and the script of an interpreter, such as `python3 agent.py`.
	Command Line `yaml:"command" path:"words"`
	// How the program gets the prompt: on standard input, as its last argument, or in
	// WAZA_PROMPT.
	PromptAs PromptAs `yaml:"prompt_as" jsonschema:"enum=stdin,enum=argument,enum=env,default=stdin"`
	// Environment variables of the program.
	Env map[string]string `yaml:"env" path:"maybe"`
	// The program only answers, and reports no tool calls and skills. Graders that need these then end in an error.
	NoSteps bool `yaml:"no_steps" json:",omitempty"`
}

// Environment returns the variables that the suite sets for the program.
func (o *Options) Environment() map[string]string { return o.Env }

// PromptAs selects how a program gets the prompt.
type PromptAs string

// The ways a program gets the prompt.
const (
	Stdin    PromptAs = "stdin"
	Argument PromptAs = "argument"
	Env      PromptAs = "env"
)

// Line is a program with its arguments or, if Shell is set, a single string for sh -c.
type Line struct {
	Args  []string
	Shell bool
}

// UnmarshalYAML accepts a list or a string.
func (l *Line) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		l.Args, l.Shell = []string{n.Value}, true
	} else if err := n.Decode(&l.Args); err != nil {
		return errors.New("command must be a list of strings, or a string for the shell")
	}
	if len(l.Args) == 0 || strings.TrimSpace(l.Args[0]) == "" {
		return errors.New("command is empty; set it to the program to run")
	}
	return nil
}

// JSONSchema describes a list or a string.
func (Line) JSONSchema() *jsonschema.Schema {
	one := uint64(1)
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", MinLength: &one},
		{Type: "array", Items: &jsonschema.Schema{Type: "string"}, MinItems: &one},
	}}
}

// String returns the program for use in messages.
func (l Line) String() string {
	if len(l.Args) == 0 {
		return "command"
	}
	return l.Args[0]
}

func check(c *eval.Check, o *Options) {
	if len(o.Command.Args) == 0 && !c.Has(decode.At("command")) {
		c.Errorf(decode.At(), decode.CodeMissingField,
			"config.command is missing; set it to the program to run, as a list or a string for the shell")
	}
	for k := range o.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			c.Errorf(decode.At("env", k), decode.CodeInvalidValue, "invalid environment variable name %q: it must not be empty or contain '='", k)
		}
	}
}
