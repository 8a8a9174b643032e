package output

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

// linked adds symbolic links to a workspace: name → target.
func linked(links map[string]string) func(*grader.Subject) {
	return func(s *grader.Subject) {
		dir, err := s.Dir()
		if err != nil {
			panic(err)
		}
		for name, target := range links {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				panic(err)
			}
		}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	tree := func(change ...func(*grader.Subject)) *grader.Subject {
		files := map[string]string{"README.md": "# Grader Showcase\nInstall it.\n", "src/a.go": "package a"}
		return gradertest.Subject("", append([]func(*grader.Subject){gradertest.Workspace(t, files)}, change...)...)
	}
	outside := linked(map[string]string{"passwd": "/etc/passwd", "up": "..", "inside": "src", "dangling": "nowhere", "loop": "loop"})
	gradertest.RunCases(t, "file", []gradertest.Case{
		{"exist", "must_exist: [README.md, src/a.go, src, src/]", nil, tree(), gradertest.Passes()},
		{"does not exist", "must_exist: [README.md, x.md]", nil, tree(), gradertest.Scores(0.5, "x.md does not exist")},
		{"path for short", "path: README.md", nil, tree(), gradertest.Passes()},
		{"path for short is missing", "path: x.md", nil, tree(), gradertest.Scores(0, "x.md does not exist")},
		{"must not exist", "must_not_exist: [x.md, src/b/c.go]", nil, tree(), gradertest.Passes()},
		{"exists and is forbidden", "must_not_exist: [src/]", nil, tree(), gradertest.Scores(0, "src/ exists, which is forbidden")},
		{"below a file", "must_exist: [README.md/x]", nil, tree(), gradertest.Scores(0, "does not exist")},
		{
			"content",
			"content_patterns: [{path: README.md, must_match: ['(?i)grader[- ]?showcase'], must_not_match: [Copyright]}]",
			nil, tree(), gradertest.Passes(),
		},
		{"content differs", "content_patterns: [{path: README.md, must_match: [zzz], must_not_match: [Install]}]", nil, tree(),
			gradertest.Scores(0, `does not match /zzz/; it starts with "# Grader`, `matches /Install/, which is forbidden: "Install"`)},
		{
			"absent content proves nothing", "content_patterns: [{path: x.md, must_not_match: [Copyright]}]", nil,
			tree(), gradertest.Scores(0, "x.md does not exist"),
		},
		{
			"content of a directory", "content_patterns: [{path: src, must_match: [a]}]", nil, tree(),
			gradertest.Scores(0, "not a regular file: a directory"),
		},
		{"link out of the workspace", "must_exist: [passwd]", nil, tree(outside), gradertest.Scores(0, "leads out of the workspace")},
		{
			"content out of the workspace", "content_patterns: [{path: passwd, must_match: [root]}]", nil,
			tree(outside), gradertest.Scores(0, "leads out of the workspace"),
		},
		{"directory out of the workspace", "must_exist: [up/x]", nil, tree(outside), gradertest.Scores(0, "leads out of the workspace")},
		{"link inside", "must_exist: [inside/a.go]", nil, tree(outside), gradertest.Passes()},
		{"dangling link exists", "must_not_exist: [dangling, loop]", nil, tree(outside), gradertest.Scores(0, "dangling exists")},
		{"dangling link leads nowhere", "must_exist: [dangling, loop]", nil, tree(outside), gradertest.Scores(0, "dangling does not exist")},
		{"no workspace", "must_exist: [x]", nil, gradertest.Subject(""), gradertest.Errors("the workspace is not needed here")},
	})
}

// A pattern once counted as a file name, which no file had: must_not_exist with *.tmp passed
// beside a.tmp.
func TestFilePatterns(t *testing.T) {
	t.Parallel()
	tree := func(change ...func(*grader.Subject)) *grader.Subject {
		files := map[string]string{"a.tmp": "", ".b.tmp": "", "src/deep/c.tmp": "", "src/[id].tsx": "", "src/main.go": ""}
		return gradertest.Subject("", append([]func(*grader.Subject){gradertest.Workspace(t, files)}, change...)...)
	}
	links := linked(map[string]string{"up": "..", "inside": "src/deep", "dangling.lnk": "nowhere", "circle": "."})
	gradertest.RunCases(t, "file", []gradertest.Case{
		{"one name", `must_not_exist: ["a.*"]`, nil, tree(), gradertest.Scores(0, "a.tmp exists, but it matches the forbidden pattern a.*")},
		{"hidden file", `must_not_exist: ["*b.tmp"]`, nil, tree(), gradertest.Scores(0, ".b.tmp exists")},
		{"at any depth", `must_not_exist: ["**/c.tmp"]`, nil, tree(), gradertest.Scores(0, "src/deep/c.tmp exists")},
		{"not at any depth", `must_not_exist: ["c.*", "*/c.tmp"]`, nil, tree(), gradertest.Passes()},
		{"either", `must_not_exist: ["src/{deep,flat}/*.tmp"]`, nil, tree(), gradertest.Scores(0, "src/deep/c.tmp exists")},
		{"directory", `must_not_exist: ["src/d??p"]`, nil, tree(), gradertest.Scores(0, "src/deep exists")},
		{"not clean", `must_not_exist: ["./src//../[a-b].tmp/"]`, nil, tree(), gradertest.Scores(0, "a.tmp exists")},
		{"nothing matches", `must_not_exist: ["*.log", "**/*.log", "none/*"]`, nil, tree(), gradertest.Passes()},
		{"name with special characters", `must_not_exist: ["src/[id].tsx"]`, nil, tree(), gradertest.Scores(0, "src/[id].tsx exists")},
		{"special characters escaped", `must_exist: ['src/\[id\].tsx']`, nil, tree(), gradertest.Passes()},
		{"exists", `must_exist: ["*.tmp", "**/*.go", "src/[id].tsx"]`, nil, tree(), gradertest.Passes()},
		{"does not exist", `must_exist: ["*.tmp", "*.go"]`, nil, tree(), gradertest.Scores(0.5, "no file or directory matches *.go")},
		{"path for short", `path: "src/*.go"`, nil, tree(), gradertest.Passes()},
		{"through a link", `must_not_exist: ["inside/*.tmp"]`, nil, tree(links), gradertest.Scores(0, "inside/c.tmp exists")},
		{"through a link that matches", `must_not_exist: ["*/c.tmp"]`, nil, tree(links), gradertest.Scores(0, "inside/c.tmp exists")},
		{"links that lead in circles", `must_not_exist: ["**/*.log"]`, nil, tree(links), gradertest.Passes()},
		{"out of the workspace", `must_not_exist: ["up/*"]`, nil, tree(links), gradertest.Passes()},
		{"dangling link exists", `must_not_exist: ["*.lnk"]`, nil, tree(links), gradertest.Scores(0, "dangling.lnk exists")},
		{"dangling link leads nowhere", `must_exist: ["*.lnk"]`, nil, tree(links), gradertest.Scores(0, "no file or directory matches *.lnk")},
		{"workspace that is no longer known", `must_not_exist: ["*.log"]`, nil, tree(func(s *grader.Subject) {
			s.Missing = func(path string) error {
				if path == "" {
					return errors.New("only a new run can show")
				}
				return nil
			}
		}), gradertest.Errors("only a new run can show")},
	})
	gradertest.RunOptions(t, "file", []gradertest.OptionCase{
		{"well", `must_exist: ["**/*.go"]`, "", nil},
		{"malformed", `must_not_exist: ["a["]`, "bad-glob: must_not_exist[0]: malformed pattern", nil},
		{"escapes", `must_exist: ["*/../../x"]`, "escaping-path: leads out of the workspace", nil},
	})
}

// An agent must not hide the content of a directory by making it unreadable.
func TestFilePatternsUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can list every directory")
	}
	s := gradertest.Subject("", gradertest.Workspace(t, map[string]string{"closed/a.tmp": ""}))
	dir, err := s.Dir()
	require.NoError(t, err)
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Chmod(closed, 0))
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	b, _ := gradertest.Bind(t, "file", `must_not_exist: ["**/*.tmp"]`, nil)
	gradertest.RequireVerdict(t, b, s, gradertest.Errors("permission denied"))
}

// Opening a pipe that nobody writes to would block forever.
func TestFilePipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	b, _ := gradertest.Bind(t, "file", "content_patterns: [{path: pipe, must_match: [a]}]", nil)
	s := gradertest.Subject("", func(s *grader.Subject) { s.Dir = func() (string, error) { return dir, nil } })
	gradertest.RequireVerdict(t, b, s, gradertest.Scores(0, "not a regular file"))
}

func TestFileTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "big")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, grader.MaxFileBytes+1))
	b, _ := gradertest.Bind(t, "file", "content_patterns: [{path: big, must_not_match: [a]}]", nil)
	s := gradertest.Subject("", func(s *grader.Subject) { s.Dir = func() (string, error) { return dir, nil } })
	gradertest.RequireVerdict(t, b, s, gradertest.Scores(0, "larger than 8 MiB"))
}

func TestFileOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "file", []gradertest.OptionCase{
		{"well", "must_exist: [a/../b]", "", nil},
		{"nothing", "must_exist: []", "checks-nothing: nothing to check", nil},
		{"nothing in a file", "content_patterns: [{path: a}]", "checks-nothing: content_patterns[0] has nothing to check", nil},
		{"no path", "content_patterns: [{must_match: [a]}]", "missing-field: path", nil},
		{"escapes", "must_exist: [../x]", "escaping-path: leads out of the workspace", nil},
		{"absolute", "must_not_exist: [/etc/passwd]", "escaping-path: leads out of the workspace", nil},
		{"escapes in the middle", "content_patterns: [{path: a/../../b, must_match: [x]}]", "escaping-path: leads out", nil},
		{"empty", `must_exist: [""]`, "invalid-value: must_exist[0] is empty", nil},
		{"bad regex", "content_patterns: [{path: a, must_not_match: ['[']}]", "bad-regex: must_not_match[0]", nil},
	})
}

// A pattern of paths with content: one file has to match, and none may match a forbidden one.
func TestFileContentByPattern(t *testing.T) {
	t.Parallel()
	tree := func(change ...func(*grader.Subject)) *grader.Subject {
		files := map[string]string{"a.md": "alpha", "b.md": "beta", "src/x/c.md": "gamma", "[id].md": "delta", "big.md.txt": "x"}
		return gradertest.Subject("", append([]func(*grader.Subject){gradertest.Workspace(t, files)}, change...)...)
	}
	gradertest.RunCases(t, "file", []gradertest.Case{
		{"one matches", "content_patterns: [{path: '*.md', must_match: [beta]}]", nil, tree(), gradertest.Passes()},
		{"different files match", "content_patterns: [{path: '?.md', must_match: [alpha, beta]}]", nil, tree(), gradertest.Passes()},
		{"none matches", "content_patterns: [{path: '*.md', must_match: [gamma]}]", nil, tree(),
			gradertest.Scores(0, "b.md does not match /gamma/")},
		{"below", "content_patterns: [{path: '**/*.md', must_match: [gamma]}]", nil, tree(), gradertest.Passes()},
		{"a name that equals the pattern", "content_patterns: [{path: '[id].md', must_match: [delta]}]", nil, tree(), gradertest.Passes()},
		{"no file", "content_patterns: [{path: '*.go', must_match: [x], must_not_match: [y]}]", nil, tree(),
			gradertest.Scores(0.5, "no file matches *.go")},
		{"none has it", "content_patterns: [{path: '**/*.md', must_not_match: [epsilon]}]", nil, tree(), gradertest.Passes()},
		{"one has it", "content_patterns: [{path: '**/*.md', must_not_match: [gamma]}]", nil, tree(),
			gradertest.Scores(0, `src/x/c.md matches /gamma/, which is forbidden: "gamma"`)},
		{"directories do not count", "content_patterns: [{path: 'sr*', must_match: ['']}]", nil, tree(),
			gradertest.Scores(0, "no file matches sr*")},
		{"links out of the workspace prove nothing", "content_patterns: [{path: 'pass*', must_match: [root], must_not_match: [zzz]}]", nil,
			tree(linked(map[string]string{"passwd": "/etc/passwd"})), gradertest.Scores(0.5, "no file matches pass*")},
		{"javascript", "{syntax: javascript, content_patterns: [{path: '*.md', must_match: ['(?i)(?<=AL)PHA']}]}", nil, tree(),
			gradertest.Passes()},
	})
	_, ds := gradertest.Load(t, "file", "content_patterns: [{path: '[a', must_match: [x]}]", nil)
	require.Contains(t, ds.Errors()[0].Message, `content_patterns[0].path: malformed pattern "[a"`)
}

// With created, only files count that the agent did not start with.
func TestFileCreated(t *testing.T) {
	t.Parallel()
	tree := func(change ...func(*grader.Subject)) *grader.Subject {
		files := map[string]string{"given.md": "old", "new.md": "new", "dir/new.go": "new"}
		return gradertest.Subject("", append([]func(*grader.Subject){
			gradertest.Workspace(t, files), linked(map[string]string{"link.txt": "given.md"}),
			func(s *grader.Subject) {
				s.Given = func() (func(string) bool, error) { return func(path string) bool { return path == "given.md" }, nil }
			},
		}, change...)...)
	}
	lost := func(s *grader.Subject) {
		s.Given = func() (func(string) bool, error) { return nil, errors.New("nobody knows") }
	}
	gradertest.RunCases(t, "file", []gradertest.Case{
		{"created", "{created: true, must_exist: ['*.md', new.md, '**/*.go']}", nil, tree(), gradertest.Passes()},
		{"given", "{created: true, must_exist: [given.md, 'g*', ./given.md]}", nil, tree(),
			gradertest.Scores(0, "the agent created no file given.md", "the agent created no file g*")},
		{"a directory", "{created: true, must_exist: [dir]}", nil, tree(), gradertest.Scores(0, "the agent created no file dir")},
		{"a link", "{created: true, must_exist: ['*.txt']}", nil, tree(), gradertest.Scores(0, "the agent created no file")},
		{"nothing forbidden", "{created: true, must_not_exist: [given.md, 'g*.md']}", nil, tree(), gradertest.Passes()},
		{"forbidden", "{created: true, must_not_exist: ['*.md']}", nil, tree(), gradertest.Scores(0, "new.md exists")},
		{"content", "{created: true, content_patterns: [{path: '*.md', must_match: [new], must_not_match: [old]}]}", nil, tree(),
			gradertest.Passes()},
		{"content of a given file", "{created: true, content_patterns: [{path: given.md, must_match: [old]}]}", nil, tree(),
			gradertest.Scores(0, "the agent did not create given.md")},
		{"unknown", "{created: true, must_exist: [new.md]}", nil, tree(lost), gradertest.Errors("nobody knows")},
	})
}
