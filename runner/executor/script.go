package executor

import (
	"path"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/eval/files"
)

// MissingScript returns the index of a script in args that the interpreter args[0] will not
// find, and the places where resolve looked for it. It returns 0 if no script is missing or this
// cannot be known: a hook can write the script, or a task can put it into the workspace.
func MissingScript(
	suite *eval.Suite, args []string, resolve func(rel string) (abs string, tried []string, ok bool),
) (index int, tried []string) {
	index = files.ScriptIndex(args)
	if index == 0 {
		return 0, nil
	}
	script := args[index]
	if !files.IsScript(script) || strings.ContainsAny(script, "{}$*") {
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
