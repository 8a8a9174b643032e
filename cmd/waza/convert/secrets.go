package convert

import (
	"maps"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/cmd/waza/exit"
	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// refuseSecrets returns an error if a translated suite has the value of a secret variable of the machine.
// A file would keep it in place of ${NAME}.
func refuseSecrets(path string, root *yaml.Node) error {
	name := secretIn(root, os.Environ())
	if name == "" {
		return nil
	}
	return exit.Usagef("waza run "+path+" runs the original, which needs no conversion",
		"%s: the file would contain the value of the variable %s, which is secret by its name", path, text.Clip(name, 60))
}

// refuseParams returns an error if the value of a parameter is a secret: the file would keep it.
func refuseParams(params map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value := params[name]
		if dialect.IsSecretVariable(name, value) {
			return exit.Usagef("leave the parameter out; waza run --param takes secrets, too",
				"--param %s: the file would contain the value of the parameter, which is secret by its name", text.Clip(name, 60))
		}
		given := dialect.NewMap(nil)
		given.Set(name, dialect.Scalar(nil, value))
		if of := secretOf(given.Node, os.Environ()); of != "" {
			return exit.Usagef("leave the parameter out; waza run --param takes secrets, too",
				"--param %s: the file would contain the value of the variable %s, which is secret by its name", text.Clip(name, 60), text.Clip(of, 60))
		}
	}
	return nil
}

// secretIn returns the name of a secret variable whose value is in an environment or a header of a suite;
// "" if there is no such value.
func secretIn(n *yaml.Node, env []string) string {
	for _, p := range dialect.Pairs(n) {
		search := secretIn
		if slices.Contains([]string{"env", "environment", "headers"}, p.Key.Value) {
			search = secretOf
		}
		if name := search(p.Value, env); name != "" {
			return name
		}
	}
	for _, item := range dialect.Items(n) {
		if name := secretIn(item, env); name != "" {
			return name
		}
	}
	return ""
}

// secretOf returns the name of a secret variable whose value is in a map of texts.
func secretOf(n *yaml.Node, env []string) string {
	for _, p := range dialect.Pairs(n) {
		for _, variable := range env {
			name, value, _ := strings.Cut(variable, "=")
			if dialect.IsSecretVariable(name, value) && contains(decode.Follow(p.Value), value) {
				return name
			}
		}
	}
	return ""
}

// minPart is the length from which a value counts as a secret also within a word.
const minPart = 4 // bytes

// contains reports whether a text has the value of a variable. Short values must be a whole word of it.
func contains(n *yaml.Node, value string) bool {
	words := dialect.TextOf(n)
	if value == "" || words == "" {
		return false
	}
	return words == value || slices.Contains(strings.Fields(words), value) || len(value) >= minPart && strings.Contains(words, value)
}
