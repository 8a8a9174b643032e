package files

import (
	"path/filepath"
	"slices"
	"strings"
)

// interpreters are programs that take a script as their first plain argument.
var interpreters = []string{
	"python", "python2", "python3", "node", "deno", "bun", "bash", "sh", "zsh", "dash", "ruby", "perl", "php",
	"pwsh",
}

// scriptEndings are the file name endings that only scripts have.
var scriptEndings = []string{".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".ps1"}

// IsScript reports whether a file has the name of a script.
func IsScript(path string) bool {
	return slices.Contains(scriptEndings, strings.ToLower(filepath.Ext(path)))
}

// ScriptIndex returns the index of the script in the arguments of an interpreter, args[0]. It
// returns 0 if there is no script or args[0] is not a known interpreter.
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
