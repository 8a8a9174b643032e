// Package checkout checks a commit of a local git repository out into a directory. Call
// [Resolve] to resolve the name of a commit, then [Make] for each directory.
package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waza/eval/files"
	"waza/eval/text"
	"waza/runner/proc"
)

// A checkout is a clone that borrows the objects of its source (git clone --shared), not a
// worktree (git worktree add). The source lists its worktrees, and an entry remains there when
// waza is killed. In a worktree, an agent that commits or deletes a branch does so in the
// source, and creating several worktrees at once waits for locks. A clone leaves the source
// unchanged. It is as fast as a worktree, because no objects are copied, and has the same
// branches and tags. It has no remote, so that nobody pushes to the source by accident.

// Limits for git, which may wait for a slow disk or a lock.
const (
	resolveTime = 20 * time.Second
	makeTime    = 10 * time.Minute
	maxMessage  = 4 << 10 // bytes of git's messages
)

// Resolve returns the id of the commit that name denotes in the repository of the directory
// source. The name is a branch, a tag, an id or a prefix of it; an empty name means HEAD. The
// error states that git is not installed, that the directory is not in a repository, or that the
// commit does not exist.
func Resolve(ctx context.Context, source, name string) (id string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, resolveTime, fmt.Errorf("git did not answer within %v", resolveTime))
	defer cancel()
	name = cmp.Or(name, "HEAD")
	if !files.IsDir(source) {
		return "", fmt.Errorf("no such directory: %s", source)
	}
	if _, err := top(ctx, source); err != nil {
		return "", err
	}
	if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "^") { // git answers ^v1 with ^ and an id
		return "", noCommit(source, name)
	}
	id, said, err := git(ctx, source, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	var exit *proc.ExitError
	switch {
	case errors.As(err, &exit) && said == "":
		return "", noCommit(source, name)
	case err != nil:
		return "", fault("the commit "+quote(name)+" of "+source, said, err)
	}
	return id, nil
}

func noCommit(source, name string) error {
	return fmt.Errorf("%s has no commit %s; use a commit id, a branch or a tag", source, quote(name))
}

func quote(name string) string { return fmt.Sprintf("%q", text.Clip(name, 80)) }

// top returns the top directory of the repository that contains source: that of its files, or
// the repository itself if it is bare.
func top(ctx context.Context, source string) (string, error) {
	for _, what := range []string{"--show-toplevel", "--absolute-git-dir"} {
		dir, said, err := git(ctx, source, "rev-parse", what)
		var exit *proc.ExitError
		switch {
		case err == nil && dir != "":
			return dir, nil
		case err == nil || errors.As(err, &exit) && what == "--show-toplevel":
			continue
		case errors.As(err, &exit):
			return "", fault(source+" is not a readable git repository", said, nil)
		default:
			return "", fault("git cannot read "+source, said, err)
		}
	}
	return "", fmt.Errorf("%s is not in a git repository", source)
}

// Make checks a commit out into dir, which must be empty or not exist, with a detached HEAD. The
// id must come from [Resolve] for the same source. Make writes nothing to the source. git and
// all its child processes have ended when Make returns.
func Make(ctx context.Context, source, id, dir string) error {
	return makeWith(ctx, source, id, dir, nil)
}

// makeWith is like [Make], with settings of git for the checkout, such as core.eol=lf.
func makeWith(ctx context.Context, source, id, dir string, settings []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, makeTime, fmt.Errorf("git did not finish within %v", makeTime))
	defer cancel()
	from, err := top(ctx, source)
	if err != nil {
		return err
	}
	checkout := []string{"-C", dir, "-c", "advice.detachedHead=false"}
	for _, s := range settings {
		checkout = append(checkout, "-c", s)
	}
	for _, args := range [][]string{
		// No template: the hooks of this machine's user do not belong to the repository.
		{
			"clone", "--quiet", "--shared", "--no-checkout", "--template=", "--config",
			"remote.origin.fetch=+refs/heads/*:refs/heads/*", "--", from, dir,
		},
		append(checkout, "checkout", "--quiet", "--detach", "--force", id, "--"),
		{"-C", dir, "remote", "remove", "origin"},
	} {
		if _, said, err := git(ctx, filepath.Dir(dir), args...); err != nil {
			err = fault("git cannot check "+quote(id)+" of "+source+" out", said, err)
			if partial, _, perr := git(ctx, from, "config", "--get-regexp", `^remote\..*\.promisor$`); perr == nil && partial != "" {
				return fmt.Errorf("%w; it is a partial clone, so fetch its files first: git fetch --refetch --no-filter", err)
			}
			return err
		}
	}
	return nil
}

// git runs git and returns its standard output and its standard error.
func git(ctx context.Context, dir string, args ...string) (printed, said string, err error) {
	stdout := &proc.Limited{Max: maxMessage}
	said, err = pipe(ctx, dir, nil, stdout, args...)
	return strings.TrimSpace(stdout.String()), said, err
}

// environ returns this process's environment for git. git must not ask for a password, and
// starts no program that the repository names in its settings.
func environ() []string {
	return append(withSettings(withoutRepository(os.Environ()), safeSettings), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
}

// withoutRepository returns an environment without the variables that select a repository; hooks
// of git set them.
func withoutRepository(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX":
			return true
		}
		return false
	})
}

// fault returns an error that includes git's message.
func fault(what, said string, err error) error {
	if missing := (*proc.NotFoundError)(nil); errors.As(err, &missing) {
		return fmt.Errorf("%s: git is not installed; install it, or list the files under inputs.files", what)
	}
	if said != "" {
		lines := strings.Split(said, "\n")
		what += ": " + text.Clip(strings.Join(lines[max(0, len(lines)-3):], "; "), 500)
	}
	if err == nil {
		return errors.New(what)
	}
	return fmt.Errorf("%s: %w", what, err)
}
