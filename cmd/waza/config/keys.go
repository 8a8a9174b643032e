package config

import (
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/cmd/waza/secret"
	"waza/eval/decode"
)

// maxKeysBytes limits the size of a file of keys.
const maxKeysBytes = 1 << 20

// goodKey is the minimum number of characters of a key.
const goodKey = 16

// readKeys reads the file of agents.keys_file. Findings about it have no position, so that they
// show no line of it.
func (l *loader) readKeys() {
	path := l.config.Agents.KeysFile
	if path == "" {
		return
	}
	data, err := secret.ReadFile(path, maxKeysBytes)
	if err != nil {
		l.report("agents", "keys_file", "", "%v", err)
		return
	}
	var found decode.Findings
	source := decode.Parse(path, filepath.Base(path), data, &found)
	for _, d := range found.Diagnostics() {
		if d.Severity == decode.Error {
			l.report("agents", "keys_file", "", "%s:%d is not valid YAML", path, max(1, d.Line))
			return
		}
	}
	root := decode.Follow(source.Root)
	if root == nil || root.Kind != yaml.MappingNode {
		l.report("agents", "keys_file", "", "%s must be a map of client ids to keys", path)
		return
	}
	keys := map[string]string{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		id, key := decode.Follow(root.Content[i]), decode.Follow(root.Content[i+1])
		line := root.Content[i].Line
		switch {
		case id.Kind != yaml.ScalarNode || strings.TrimSpace(id.Value) == "" || key.Kind != yaml.ScalarNode || strings.TrimSpace(key.Value) == "":
			l.report("agents", "keys_file", "", "%s:%d must be a client id and its key", path, line)
		case len(key.Value) < goodKey:
			l.report("agents", "keys_file", "",
				"%s:%d: the key must have at least %[4]d characters, got %[3]d; openssl rand -hex 32 prints a good one",
				path, line, len(key.Value), goodKey)
		default:
			keys[id.Value] = key.Value
		}
	}
	if len(root.Content) == 0 {
		l.report("agents", "keys_file", "", "%s contains no keys", path)
	}
	l.config.Keys = keys
}
