// Package surroundings defines an agent's surroundings besides files: repositories in its workspace, a
// model that replies to it, mocks of MCP servers, hooks, and a sandbox. The types are decoded from suites;
// Check functions report their faults.
package surroundings

import (
	"path"
	"path/filepath"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// A Reporter records a finding about a place below the checked key.
type Reporter func(at decode.Path, severity decode.Severity, code decode.Code, format string, args ...any)

// A Repo is a git repository of this machine. waza puts one of its commits into the workspace.
type Repo struct {
	// How waza puts it into the workspace. worktree creates a git worktree with a detached HEAD.
	Type string `yaml:"type" jsonschema:"enum=worktree,default=worktree"`
	// Directory of the repository or in it: absolute, or relative to the suite, else to the current directory of waza.
	Source string `yaml:"source" jsonschema:"required" jsonschema_extras:"x-refers=suite-directory" path:"maybe"`
	// Branch, tag or commit to check out.
	Commit string `yaml:"commit" jsonschema:"default=HEAD"`
	// Folder of the workspace for the repository; the workspace itself when absent.
	Dest string `yaml:"dest"`

	// Dir is the absolute path of Source.
	Dir string `yaml:"-" path:"repo"`
	// Line and Column are the position of Source in the file that declares the task.
	Line, Column int `yaml:"-"`
}

// maxRepos limits the repositories of one task.
const maxRepos = 20

// CheckRepos checks the repositories of a task and cleans their Dest. find returns the absolute
// path of a Source, and whether that directory exists.
func CheckRepos(repos []Repo, find func(source string) (dir string, ok bool), report Reporter) {
	if len(repos) > maxRepos {
		report(decode.At(), decode.Error, decode.CodeTooLarge, "repos has %d repositories; the limit is %d", len(repos), maxRepos)
	}
	for i := range repos {
		r := &repos[i]
		if strings.HasPrefix(r.Commit, "-") || strings.ContainsAny(r.Commit, "\x00\n") {
			report(decode.At(i, "commit"), decode.Error, decode.CodeInvalidValue,
				"repos[%d].commit must be a branch, a tag or a commit, got %q", i, text.Clip(r.Commit, 80))
		}
		if strings.TrimSpace(r.Source) != "" {
			var ok bool
			if r.Dir, ok = find(r.Source); !ok {
				report(decode.At(i, "source"), decode.Error, decode.CodeMissingFile,
					"repos[%d].source: no such directory: %s", i, text.Clip(r.Source, 200))
			}
		}
		dest, ok := Folder(r.Dest)
		if !ok {
			report(decode.At(i, "dest"), decode.Error, decode.CodeEscapingPath,
				"repos[%d].dest must be a relative path inside the workspace, got %q", i, text.Clip(r.Dest, 80))
			continue
		}
		r.Dest = dest
		for j := range i {
			if overlap(repos[j].Dest, dest) {
				report(decode.At(i, "dest"), decode.Error, decode.CodeInvalidValue,
					"repos[%d].dest and repos[%d].dest overlap; use separate folders", j, i)
				break
			}
		}
	}
}

// Folder returns the clean form of a path in the workspace, "." for the workspace itself. It
// returns false for an absolute path, or one with a ".." element.
func Folder(p string) (clean string, ok bool) {
	slashed := filepath.ToSlash(p)
	if strings.ContainsRune(p, 0) || path.IsAbs(slashed) || !filepath.IsLocal(filepath.FromSlash(path.Clean(slashed))) {
		return "", false
	}
	for part := range strings.SplitSeq(slashed, "/") {
		if part == ".." {
			return "", false
		}
	}
	return path.Clean(slashed), true
}

func overlap(a, b string) bool {
	within := func(dir, p string) bool { return dir == "." || p == dir || strings.HasPrefix(p, dir+"/") }
	return within(a, b) || within(b, a)
}
