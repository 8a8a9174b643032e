package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
	"waza/eval/text"
	"waza/runner/internal/checkout"
	"waza/runner/proc"
)

// apartEnviron returns the environment of a program that does not trust the workspace. Python
// imports neither from the current directory nor from the user's packages, but from beside the
// suite's own program and script. It leaves no compiled modules there, and uses none if somebody
// else can have written them. git starts no program that the workspace's settings name.
func apartEnviron(ctx context.Context, environ []string, workspace, temp string, line commandLine, compiled bool) []string {
	var paths []string
	for _, i := range line.own {
		if dir := filepath.Dir(line.args[i]); !slices.Contains(paths, dir) {
			paths = append(paths, dir)
			compiled = compiled || files.IsDir(filepath.Join(dir, "__pycache__"))
		}
	}
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		if name != "PYTHONPATH" {
			return false
		}
		for _, dir := range filepath.SplitList(value) {
			if filepath.IsAbs(dir) && !files.Within(workspace, dir) { // others depend on the current directory
				paths = append(paths, dir)
			}
		}
		return true
	})
	environ = append(environ, "PYTHONSAFEPATH=1", "PYTHONNOUSERSITE=1", "PYTHONDONTWRITEBYTECODE=1")
	if len(paths) > 0 {
		environ = append(environ, "PYTHONPATH="+strings.Join(paths, string(filepath.ListSeparator)))
	}
	if compiled { // slower, because Python then compiles all modules
		environ = append(environ, "PYTHONPYCACHEPREFIX="+filepath.Join(temp, "compiled"))
	}
	return checkout.SafeEnviron(ctx, environ, workspace)
}

// missingModule matches the messages of interpreters about a module that they do not find.
var missingModule = text.Pattern(`(?m)(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?|Cannot ` +
	`find (?:module|package) '([^'\n]+)'|No module named ([\w.]+)$`)

// missingFile matches words of messages about files that do not exist.
var missingFile = text.Pattern(`(?mi)^.*(?:no such file|cannot open|can't open|can't cd|not found|does not exist).*$`)

// distrustHint returns a line for the feedback if a program probably missed something because it
// does not trust the workspace; else "". It changes no verdict, because the agent can cause such
// messages.
func distrustHint(cmd proc.Command, workspace string, passed bool, said string) string {
	if passed {
		said = "" // only the arguments can mean something else than they do
	}
	for _, m := range missingModule().FindAllStringSubmatch(said, 20) {
		name := m[1] + m[2] + m[3]
		switch {
		case inWorkspace(workspace, name):
			return fmt.Sprintf("the module %s exists in the workspace, but the grader does not import from there; if its "+
				"purpose is to run the agent's code, set trust_workspace: true",
				name)
		case ofUser(cmd.Env, name):
			return fmt.Sprintf("the module %s is one of the user's packages, which the grader does not import; install "+
				"it for the machine, or set trust_workspace: true",
				name)
		}
	}
	args := cmd.Args[1:]
	if slices.ContainsFunc(args, func(arg string) bool { return ofWaza().MatchString(arg) }) {
		args = nil // these name no files of the workspace, but texts of the task can do so
	}
	for _, arg := range args {
		for _, word := range wordsOf(arg) {
			if strings.ContainsAny(word, "./") && onlyThere(cmd.Dir, workspace, word) {
				return relativeHint(word)
			}
		}
	}
	for _, line := range missingFile().FindAllString(said, 20) {
		for _, word := range wordsOf(line) {
			if onlyThere(cmd.Dir, workspace, word) {
				return relativeHint(word)
			}
		}
	}
	return ""
}

// ofWaza matches code that a translation of waza wrote.
var ofWaza = text.Pattern(`^(?://|#) waza: `)

// onlyThere reports whether a relative path exists in the workspace, but not in the directory of
// a program.
func onlyThere(dir, workspace, path string) bool {
	return local(path) && exists(workspace, path) && !exists(dir, path)
}

func relativeHint(path string) string {
	return fmt.Sprintf("%s exists in the workspace, but the grader starts in a directory of its own; name it "+
		"$WAZA_WORKSPACE_DIR/%s or, if the grader runs the agent's code, set trust_workspace: true",
		path, filepath.ToSlash(filepath.Clean(path)))
}

var notPath = text.Pattern(`[^\w./+@~-]+`)

// wordsOf returns the words of a message that can be paths.
func wordsOf(line string) []string {
	words := notPath().Split(line, -1)
	for i, w := range words {
		words[i] = strings.TrimRight(w, ".")
	}
	return words
}

// inWorkspace reports whether the workspace contains a module, at its top or below src or lib.
func inWorkspace(workspace, name string) bool {
	top, _, _ := strings.Cut(name, ".")
	for _, dir := range []string{"", "src", "lib"} {
		for _, file := range []string{name, top, top + ".py", name + ".js", name + ".mjs", name + ".cjs", filepath.Join("node_modules", name)} {
			if path := filepath.Join(dir, filepath.FromSlash(file)); local(path) && exists(workspace, path) {
				return true
			}
		}
	}
	// An interpreter may print the whole path of a module.
	return filepath.IsAbs(name) && (exists(workspace, filepath.Base(name)) || exists(workspace, filepath.Base(name)+".js"))
}

// ofUser reports whether a module of Python is installed for the user alone.
func ofUser(environ []string, name string) bool {
	top, _, _ := strings.Cut(name, ".")
	if !local(top) || strings.ContainsAny(top, `/*?[\`) {
		return false
	}
	home := ""
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, "HOME="); ok {
			home = value
		}
	}
	if home == "" {
		return false
	}
	found, err := filepath.Glob(filepath.Join(home, ".local", "lib", "python3*", "site-packages", top+"*"))
	return err == nil && slices.ContainsFunc(found, func(path string) bool {
		return strings.TrimSuffix(filepath.Base(path), ".py") == top
	})
}

func local(path string) bool {
	return path != "" && filepath.Clean(path) != "." && filepath.IsLocal(path)
}

func exists(dir, path string) bool {
	_, err := os.Lstat(filepath.Join(dir, path))
	return err == nil
}
