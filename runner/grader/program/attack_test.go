package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/proc/proctest"
)

// Files that an agent left in its workspace ran in the grader's process: modules of Python, and
// programs that the settings of a git repository name.
func TestAttackWorkspaceRunsNothing(t *testing.T) {
	t.Parallel()
	gradertest.NeedPython(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	fake := "import os\nprint('{\"score\": 1, \"passed\": true}', flush=True)\nos._exit(0)\n"
	const steps = `import json, os, subprocess, sys
os.chdir(os.environ["WAZA_WORKSPACE_DIR"])
for args in (["status"], ["diff"], ["log", "-p"]):
    subprocess.run(["git"] + args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
sys.exit(json.loads("1"))
`
	for name, c := range map[string]struct{ config, script string }{
		"script":           {"script: check.py", steps},
		"argument":         {"command: python3\nargs: [check.py]", steps},
		"module search":    {"command: python3\nargs: [-c, 'import json, sys; sys.exit(1)']", ""},
		"in the workspace": {"command: sh\nargs: [-c, 'cd $WAZA_WORKSPACE_DIR && python3 -c \"import json, sys; sys.exit(1)\"']", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(t.TempDir(), "ran")
			workspace := t.TempDir()
			gradertest.WriteFiles(t, workspace, map[string]string{
				"json.py": fake, "sitecustomize.py": fake, "usercustomize.py": fake, "a.txt": "a\n",
				"evil.sh": "#!/bin/sh\ntouch " + ran + "\n", ".gitattributes": "*.txt filter=x diff=y\n",
			})
			evil := filepath.Join(workspace, "evil.sh")
			for _, args := range [][]string{
				{"init", "--quiet"}, {"add", "a.txt"}, {"-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "--quiet", "-m", "a"},
				{"config", "core.fsmonitor", evil}, {"config", "core.hooksPath", workspace}, {"config", "core.pager", evil},
				{"config", "diff.external", evil},
				{"config", "filter.x.clean", evil}, {"config", "filter.x.smudge", evil}, {"config", "diff.y.textconv", evil},
				{"config", "alias.status", "!" + evil},
			} {
				out, err := proctest.Output(exec.Command("git", append([]string{"-C", workspace}, args...)...))
				require.NoError(t, err, string(out))
			}
			gradertest.WriteFiles(t, workspace, map[string]string{"a.txt": "b\n"})
			b, _ := gradertest.Bind(t, "program", c.config, map[string]string{"check.py": c.script})
			score, err := b.Grade(t.Context(), gradertest.Subject("", func(s *grader.Subject) {
				s.Dir = func() (string, error) { return workspace, nil }
				s.Env = append(os.Environ(), "PYTHONPATH=:.:"+workspace, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=n")
			}))
			require.NoError(t, err)
			require.False(t, score.Passed, "%+v", score)
			require.Contains(t, score.Feedback, "exit code 1")
			require.NoFileExists(t, ran)
		})
	}
}

// git ran programs that repositories without a .git at the workspace's top name: a repository in a
// subdirectory, a bare one, settings of one worktree, one above the workspace and one that a link
// leads to.
func TestAttackNestedRepositories(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	git := func(dir string, args ...string) {
		out, err := proctest.Output(exec.Command("git", append([]string{"-C", dir}, args...)...))
		require.NoError(t, err, string(out))
	}
	// repository makes one with a changed file, whose settings start a program.
	repository := func(dir, program string, config ...string) {
		gradertest.WriteFiles(t, dir, map[string]string{"a.txt": "a\n", ".gitattributes": "*.txt diff=y filter=y\n"})
		git(dir, "init", "--quiet")
		git(dir, "add", "a.txt")
		gradertest.WriteFiles(t, dir, map[string]string{"a.txt": "b\n"})
		git(dir, "config", "extensions.worktreeConfig", "true")
		for _, key := range []string{"diff.external", "diff.y.command", "diff.y.textconv", "filter.y.clean", "core.fsmonitor"} {
			git(dir, append(append([]string{"config"}, config...), key, program)...)
		}
	}
	for name, c := range map[string]struct {
		make func(workspace, program string)
		dir  string
	}{
		"nested":       {func(w, p string) { repository(filepath.Join(w, "sub", "deep"), p) }, "sub/deep"},
		"worktree":     {func(w, p string) { repository(w, p, "--worktree") }, "."},
		"above":        {func(w, p string) { repository(filepath.Dir(w), p) }, "."},
		"file as .git": {func(w, p string) { repository(filepath.Join(w, "sub"), p); separate(t, filepath.Join(w, "sub")) }, "sub"},
		"link": {func(w, p string) {
			elsewhere := t.TempDir()
			repository(elsewhere, p)
			require.NoError(t, os.Symlink(elsewhere, filepath.Join(w, "sub")))
		}, "sub"},
		"bare": {func(w, p string) {
			repository(filepath.Join(w, "tree"), p)
			require.NoError(t, os.CopyFS(w, os.DirFS(filepath.Join(w, "tree", ".git"))))
			git(filepath.Join(w, "tree"), "--git-dir="+w, "config", "core.bare", "false")
			git(filepath.Join(w, "tree"), "--git-dir="+w, "config", "core.worktree", filepath.Join(w, "tree"))
			require.NoError(t, os.RemoveAll(filepath.Join(w, "tree", ".git")))
		}, "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workspace := filepath.Join(t.TempDir(), "workspace")
			ran := filepath.Join(t.TempDir(), "ran")
			gradertest.WriteFiles(t, workspace, map[string]string{"evil.sh": "#!/bin/sh\ntouch " + ran + "\n"})
			c.make(workspace, filepath.Join(workspace, "evil.sh"))
			b, _ := gradertest.Bind(t, "program", "command: sh\nargs: [check.sh]", map[string]string{
				"check.sh": "cd \"$WAZA_WORKSPACE_DIR/" + c.dir +
					"\"\nfor what in status diff 'log -p' 'diff --cached'; do git $what >/dev/null 2>&1; done\nexit 0\n",
			})
			trial := gradertest.Subject("", func(s *grader.Subject) { s.Dir = func() (string, error) { return workspace, nil } })
			score, err := b.Grade(t.Context(), trial)
			require.NoError(t, err)
			require.True(t, score.Passed, "%+v", score)
			require.NoFileExists(t, ran)
		})
	}
}

// separate moves the repository of a directory away, so that .git is a file.
func separate(t *testing.T, dir string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "repository")
	require.NoError(t, os.Rename(filepath.Join(dir, ".git"), to))
	gradertest.WriteFiles(t, dir, map[string]string{".git": "gitdir: " + to + "\n"})
}

// A module beside a grader's script had to be the planned one, but Python loaded a compiled
// module that an agent had put there.
func TestAttackCompiledModule(t *testing.T) {
	t.Parallel()
	gradertest.NeedPython(t)
	suite := map[string]string{"check.py": "import rules, sys\nsys.exit(0 if rules.PASSED else 1)\n", "rules.py": "PASSED = False\n"}
	b, env := gradertest.Bind(t, "program", "script: check.py", suite)
	const plant = `import os, py_compile, sys
os.chdir(sys.argv[1])
was = os.stat("rules.py")
text = open("rules.py").read()
open("rules.py", "w").write("PASSED = True \n")
os.utime("rules.py", ns=(was.st_atime_ns, was.st_mtime_ns))
py_compile.compile("rules.py")
open("rules.py", "w").write(text)
os.utime("rules.py", ns=(was.st_atime_ns, was.st_mtime_ns))
`
	out, err := proctest.Output(exec.Command("python3", "-c", plant, env.Suite.Dir))
	require.NoError(t, err, string(out))
	score, err := b.Grade(t.Context(), gradertest.Subject("", gradertest.Workspace(t, nil)))
	require.NoError(t, err)
	require.False(t, score.Passed)
}

// A grader that runs the agent's code says so. Without the key, its failure names the key.
func TestProgramTrustsWorkspace(t *testing.T) {
	t.Parallel()
	gradertest.NeedPython(t)
	trial := gradertest.Subject("",
		gradertest.Workspace(t, map[string]string{"calc.py": "def add(a, b): return a + b\n", "tool/index.js": "module.exports = 1\n"}))
	const test = "command: python3\nargs: [-c, 'import calc; assert calc.add(1, 2) == 3']"
	cases := []gradertest.Case{
		{"trusts", test + "\ntrust_workspace: true", nil, trial, gradertest.Passes()},
		{
			"does not", test, nil, trial,
			gradertest.Scores(0, "No module named 'calc'",
				"the module calc exists in the workspace, but the grader does not import from there",
				"set trust_workspace: true"),
		},
		{
			"other module", "command: python3\nargs: [-c, 'import no_such_module']", nil, trial,
			gradertest.Scores(0, "No module named 'no_such_module'"),
		},
		{
			"script of the agent", "command: python3\nargs: [calc.py]", nil, trial,
			gradertest.Scores(0, "calc.py exists in the workspace", "trust_workspace: true"),
		},
		{
			"beside the script", "script: graders/check.py",
			map[string]string{"graders/check.py": "import helper\n", "graders/helper.py": ""}, trial,
			gradertest.Passes(),
		},
	}
	if _, err := exec.LookPath("node"); err == nil {
		cases = append(cases, gradertest.Case{
			"module of node", "command: node\nargs: [-e, 'require(\"./tool\")']", nil, trial,
			gradertest.Scores(0, "the module ./tool exists in the workspace"),
		})
	}
	gradertest.RunCases(t, "program", cases)
}
