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

// withDefaults returns a scalar with the defaults of its parameters. A plain scalar can become a number.
func withDefaults(n *yaml.Node) *yaml.Node {
	if !strings.Contains(dialect.TextOf(n), "${") {
		return n
	}
	with := *decode.Follow(n)
	with.Value = parameter().ReplaceAllStringFunc(with.Value, func(ref string) string {
		if _, standard, ok := strings.Cut(ref[2:len(ref)-1], "="); ok {
			return standard
		}
		return ref
	})
	if with.Style == 0 && with.Value != "" {
		with.Tag = ""
	}
	return &with
}

// filled returns a text with the defaults of its parameters. It warns of those without one.
func (s *stimulus) filled(n *yaml.Node) *yaml.Node {
	with := withDefaults(n)
	for _, m := range parameter().FindAllStringSubmatch(dialect.TextOf(with), -1) {
		s.warnOnce("parameter "+m[1], n, decode.CodeOtherMeaning, "%s is used as written, because waza has no --param; write ${%s=VALUE} if it is a parameter",
			text.Clip(m[0], 60), text.Clip(m[1], 60))
	}
	return with
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
	return fmt.Sprintf("needs the parameter %s, and waza has no --param; write ${%s=VALUE}", name, name)
}

// Options of graders in which ${KEY} without a default has a meaning: it can be part of a text, and the shell
// has a value for it in a command. It blocks the stimulus in all other options.
var (
	textOptions    = []string{"prompt", "substring", "value", "stdout_contains", "stderr_contains"}
	commandOptions = []string{"command", "program"}
)

// fillOptions replaces the options of the grader by those with the defaults of parameters.
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
			with.Content[i] = withDefaults(decode.Follow(inner))
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
		return withDefaults(n)
	}
	with := withDefaults(n)
	if name := parameterIn(with); name != "" {
		f.cannot(n, "%s", needsParameter(name))
	}
	return with
}

// isShellFlag reports whether the argument after this one is a script of the shell, as after -c.
func isShellFlag(n *yaml.Node) bool {
	flag := dialect.TextOf(n)
	return strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") && strings.HasSuffix(flag, "c")
}
