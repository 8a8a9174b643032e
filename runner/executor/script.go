package executor

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
)

// interpreters are programs whose first plain argument is a script.
var interpreters = []string{"python", "python2", "python3", "node", "deno", "bun", "bash", "sh", "zsh", "dash", "ruby", "perl", "php", "pwsh"}

// scriptEndings are those of files that are scripts and nothing else.
var scriptEndings = []string{".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".ps1"}

// ScriptIndex returns which of the arguments of an interpreter, args[0], is its
// script, or 0 when none is or args[0] is no interpreter that is known.
func ScriptIndex(args []string) int {
	if len(args) == 0 || !slices.Contains(interpreters, strings.TrimSuffix(filepath.Base(args[0]), ".exe")) {
		return 0
	}
	for i, a := range args[1:] {
		switch {
		case a == "-c" || a == "-m" || a == "-e":
			return 0
		case !strings.HasPrefix(a, "-"):
			return i + 1
		}
	}
	return 0
}

// MissingScript returns which of args is a script that an interpreter, args[0],
// will not find, with the places where resolve looked for it, or 0 when none is
// or it is unknown: a hook may write it, or a task put it into the workspace.
func MissingScript(suite *eval.Suite, args []string, resolve func(rel string) (abs string, tried []string, ok bool)) (index int, tried []string) {
	index = ScriptIndex(args)
	if index == 0 {
		return 0, nil
	}
	script := args[index]
	if !slices.Contains(scriptEndings, strings.ToLower(filepath.Ext(script))) || strings.ContainsAny(script, "{}$*") {
		return 0, nil
	}
	_, tried, ok := resolve(script)
	if ok || len(suite.Hooks.BeforeRun)+len(suite.Hooks.BeforeTask) > 0 {
		return 0, nil
	}
	inWorkspace := path.Clean(filepath.ToSlash(script))
	for _, t := range suite.Tasks {
		for _, f := range t.Inputs.Files {
			if f.Path == inWorkspace {
				return 0, nil
			}
		}
	}
	return index, tried
}
