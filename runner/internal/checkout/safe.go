package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"waza/eval/files"
	"waza/runner/proc"
)

// safeSettings keep git from starting programs that the configuration of a repository names.
// They have precedence over all files of settings.
var safeSettings = [][2]string{
	{"core.fsmonitor", "false"},
	{"core.hooksPath", os.DevNull},
	{"core.pager", "cat"},
	{"core.editor", "true"},
	{"core.askPass", "true"},
	{"core.alternateRefsCommand", "true"},
	{"core.gitProxy", ""},
	{"commit.gpgSign", "false"},
	{"tag.gpgSign", "false"},
	{"log.showSignature", "false"},
	{"protocol.ext.allow", "never"},
}

// Limits of the search for repositories that somebody else wrote.
const (
	configTime      = 10 * time.Second // for reading the settings of one
	maxRepositories = 100
	maxSearched     = 200_000 // entries of directories
)

// SafeEnviron returns environ with settings for git, so that git starts no program that a
// repository in dir or below names in its own settings. dir is a directory that somebody else
// wrote. git does not search for a repository above dir, and uses a bare one only if the caller
// names it (git 2.38 and later; older versions use it safely). It still starts the programs that
// the settings of the user and of the machine name. A filter that a repository names has no
// effect, and git reports an error where it would need another program of the repository. If
// there are too many repositories or files to look at, git refuses to work.
func SafeEnviron(ctx context.Context, environ []string, dir string) []string {
	settings := append(slices.Clone(safeSettings), [2]string{"safe.bareRepository", "explicit"})
	environ = withCeiling(environ, filepath.Dir(dir))
	programs, err := localPrograms(ctx, environ, dir, settings)
	if err != nil {
		environ = append(withoutRepository(environ), "GIT_DIR="+filepath.Join(os.DevNull, err.Error()))
	}
	return withSettings(environ, append(settings, programs...))
}

// withCeiling returns environ with one more directory above which git searches no repository.
func withCeiling(environ []string, dir string) []string {
	const name = "GIT_CEILING_DIRECTORIES="
	dirs := dir
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		value, ok := strings.CutPrefix(kv, name)
		if ok && value != "" {
			dirs += string(filepath.ListSeparator) + value
		}
		return ok
	})
	return append(environ, name+dirs)
}

// withSettings returns environ with more settings for git. It keeps those of environ.
func withSettings(environ []string, settings [][2]string) []string {
	const countName = "GIT_CONFIG_COUNT"
	n := 0
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		if name != countName {
			return false
		}
		if given, err := strconv.Atoi(value); err == nil {
			n = max(0, given)
		}
		return true
	})
	for i, s := range settings {
		environ = append(environ, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n+i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n+i, s[1]))
	}
	return append(environ, fmt.Sprintf("%s=%d", countName, n+len(settings)))
}

// localPrograms returns an empty setting for each program whose name the repositories in dir or
// below chose. There is no general setting against them. The error is the reason why it cannot
// list all.
func localPrograms(ctx context.Context, environ []string, dir string, safe [][2]string) ([][2]string, error) {
	repositories, err := repositoriesIn(dir)
	var settings [][2]string
	for _, repository := range repositories {
		keys, failed := localKeys(ctx, withSettings(withoutRepository(environ), safe), repository)
		if failed != nil {
			return nil, failed
		}
		for _, key := range keys {
			if namesProgram(key) && !slices.ContainsFunc(settings, func(s [2]string) bool { return s[0] == key }) {
				settings = append(settings, [2]string{key, ""})
			}
		}
	}
	return settings, err
}

// localKeys returns the names of the settings of a repository, without those of the user and the
// machine.
func localKeys(ctx context.Context, environ []string, repository string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, configTime)
	defer cancel()
	const all = "--show-scope" // it includes settings of one worktree; git 2.26 and later
	for _, scope := range []string{all, "--local"} {
		listed := &proc.Limited{Max: 1 << 20}
		err := proc.Run(ctx, proc.Command{
			Args: []string{"git", "config", scope, "--includes", "--name-only", "--null", "--list"},
			Dir:  repository, Env: environ, Stdout: listed,
		})
		words := strings.Split(listed.String(), "\x00")
		switch {
		case ctx.Err() != nil:
			return nil, errors.New("git does not list the settings of a repository in the workspace")
		case err != nil: // git cannot read the settings, so it uses none of them
			continue
		case scope != all:
			return words, nil
		}
		var keys []string
		for i := 0; i+1 < len(words); i += 2 {
			if words[i] == "local" || words[i] == "worktree" {
				keys = append(keys, words[i+1])
			}
		}
		return keys, nil
	}
	return nil, nil
}

// repositoriesIn returns the directories in dir and below that git takes for repositories. It
// follows links, because programs can change to the directories that they lead to.
func repositoriesIn(dir string) ([]string, error) {
	var found []string
	left := maxSearched
	seen := map[string]bool{}
	for queue := []string{dir}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		entries, err := readDir(at, left)
		if len(entries) > left {
			return nil, errors.New("the workspace has too many files to look for git repositories")
		}
		if err != nil {
			continue // git cannot read it either
		}
		left -= len(entries)
		names := map[string]bool{}
		for _, e := range entries {
			names[e.Name()] = true
			path := filepath.Join(at, e.Name())
			if e.IsDir() && e.Name() != ".git" {
				queue = append(queue, path)
			}
			if e.Type() != os.ModeSymlink || !files.IsDir(path) {
				continue
			}
			if real, err := filepath.EvalSymlinks(path); err == nil {
				queue = append(queue, real)
				if top := files.RepositoryRoot(real); top != "" && !slices.Contains(found, top) {
					found = append(found, top)
				}
			}
		}
		if !names[".git"] && !(names["HEAD"] && (names["config"] || names["commondir"])) {
			continue
		}
		if !slices.Contains(found, at) {
			found = append(found, at)
		}
		if len(found) > maxRepositories {
			return nil, fmt.Errorf("the workspace has more than %d git repositories", maxRepositories)
		}
	}
	return found, nil
}

// readDir returns the entries of a directory, at most limit+1.
func readDir(dir string, limit int) ([]os.DirEntry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(limit + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// namesProgram reports whether the value of a setting is a program that reading commands start,
// such as status, diff and log. git writes the first and the last part of keys in lower case.
func namesProgram(key string) bool {
	first := key[:max(0, strings.IndexByte(key, '.'))]
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch first {
	case "diff":
		return last == "external" || last == "command" || last == "textconv"
	case "filter":
		return last == "clean" || last == "smudge" || last == "process"
	case "merge":
		return last == "driver"
	case "remote": // git runs them when a partial clone lacks an object
		return last == "uploadpack" || last == "receivepack" || last == "vcs"
	case "submodule":
		return last == "update"
	case "difftool", "mergetool", "browser", "man":
		return last == "cmd"
	case "trailer":
		return last == "command" || last == "cmd"
	case "sequence":
		return last == "editor"
	case "pager", "alias":
		return true
	case "gpg":
		return last == "program"
	case "core":
		return last == "sshcommand"
	case "interactive":
		return last == "difffilter"
	case "credential":
		return last == "helper"
	}
	return false
}
