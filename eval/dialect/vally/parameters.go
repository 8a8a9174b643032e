package vally

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// parameter matches ${KEY} and ${KEY=default}, whose values --param of Vally sets.
var parameter = text.Pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)(=[^{}]*)?\}`)

// withParameters returns a tree in which parameters have their values: those that the caller gives, else their
// defaults. Nodes without parameters are those of the tree.
func withParameters(params *dialect.Params, root *yaml.Node) *yaml.Node {
	r := replacement{params, map[place]*yaml.Node{}}
	return r.of(root, false)
}

// A replacement replaces parameters by their values.
type replacement struct {
	params *dialect.Params
	done   map[place]*yaml.Node // of lists and maps, because aliases repeat them
}

// A place is a node, and whether it has commands of the shell.
type place struct {
	node  *yaml.Node
	shell bool
}

func (r *replacement) of(n *yaml.Node, shell bool) *yaml.Node {
	if n = decode.Follow(n); n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		return r.scalar(n, shell)
	}
	at := place{n, shell}
	if with := r.done[at]; with != nil {
		return with
	}
	with := *n
	r.done[at] = &with
	with.Content = slices.Clone(n.Content)
	axis := dialect.TextOf(decode.Lookup(n, "path")) == "/environment/"+commandsKey // of an experiment
	for i, inner := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			with.Content[i] = r.of(inner, shell)
		case i%2 == 1:
			key := n.Content[i-1].Value
			with.Content[i] = r.of(inner, shell || key == commandsKey || axis && key == "values")
		}
	}
	return &with
}

// scalar returns a scalar with the values of its parameters. A plain scalar can become a number, but not null. The shell
// replaces parameters of its commands that have only a default, because ${KEY=default} also sets a variable.
func (r *replacement) scalar(n *yaml.Node, shell bool) *yaml.Node {
	if !strings.Contains(n.Value, "${") {
		return n
	}
	with := *n
	with.Value = parameter().ReplaceAllStringFunc(n.Value, func(ref string) string {
		name, standard, ok := strings.Cut(ref[2:len(ref)-1], "=")
		if value, given := r.params.Get(name); given {
			return value
		} else if ok && !shell {
			return standard
		}
		return ref
	})
	if with.Style == 0 && with.Value != "" && with.Value != n.Value {
		if with.Tag = ""; decode.IsNull(&with) {
			with.Tag = "!!str"
		}
	}
	return &with
}

// filled returns a text. It warns of parameters without a value.
func (s *stimulus) filled(n *yaml.Node) *yaml.Node {
	for _, m := range parameter().FindAllStringSubmatch(dialect.TextOf(n), -1) {
		s.warnOnce("parameter "+m[1], n, decode.CodeOtherMeaning, "%s is used as written; if it is a parameter, give it with --param %s=VALUE, or write ${%[2]s=VALUE}",
			text.Clip(m[0], 60), text.Clip(m[1], 60))
	}
	return n
}

// parameterIn returns the name of a parameter without a default in a text; "" without one.
func parameterIn(n *yaml.Node) string {
	if found := parameter().FindStringSubmatch(dialect.TextOf(n)); found != nil {
		return found[1]
	}
	return ""
}

// needsParameter explains that a parameter has no value.
func needsParameter(name string) string {
	name = text.Clip(name, 60)
	return fmt.Sprintf("needs the parameter %s; give it with --param %[1]s=VALUE, or write ${%[1]s=VALUE}", name)
}

// Options of graders in which ${KEY} without a default has a meaning: it can be part of a text, and the shell
// has a value for it in a command. It blocks the stimulus in all other options.
var (
	textOptions    = []string{"prompt", "substring", "value", "stdout_contains", "stderr_contains"}
	commandOptions = []string{"command", "program"}
)

// fillOptions reports parameters without a value in the options of the grader.
func (c *check) fillOptions() {
	if c.options == nil {
		return
	}
	with := *c.options
	with.Content = slices.Clone(with.Content)
	for i := 0; i+1 < len(with.Content); i += 2 {
		f := filler{check: c, option: with.Content[i].Value, done: map[*yaml.Node]*yaml.Node{}}
		with.Content[i+1] = f.fill(with.Content[i+1])
	}
	c.options = &with
}

// A filler fills in the parameters of one option.
type filler struct {
	*check
	option string
	done   map[*yaml.Node]*yaml.Node // of the nodes that were filled, because aliases repeat them
}

func (f *filler) fill(n *yaml.Node) *yaml.Node {
	if n = decode.Follow(n); n == nil || n.Kind == yaml.ScalarNode {
		return f.scalar(n)
	}
	if with := f.done[n]; with != nil {
		return with
	}
	with := *n
	f.done[n] = &with
	with.Content = slices.Clone(n.Content)
	for i, inner := range n.Content {
		if n.Kind != yaml.SequenceNode && i%2 == 0 {
			continue // a key
		}
		if f.option == "args" && i > 0 && isShellFlag(n.Content[i-1]) {
			continue
		}
		with.Content[i] = f.fill(inner)
	}
	return &with
}

func (f *filler) scalar(n *yaml.Node) *yaml.Node {
	switch {
	case slices.Contains(textOptions, f.option):
		return f.filled(n)
	case slices.Contains(commandOptions, f.option):
		return n
	}
	if name := parameterIn(n); name != "" {
		f.cannot(n, "%s", needsParameter(name))
	}
	return n
}

// isShellFlag reports whether the argument after this one is a script of the shell, as after -c.
func isShellFlag(n *yaml.Node) bool {
	flag := dialect.TextOf(n)
	return strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") && strings.HasSuffix(flag, "c")
}
