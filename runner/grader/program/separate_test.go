package program

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

// A separate verifier finds the artifacts of the agent at their paths, and nothing else of its workspace.
func TestSeparate(t *testing.T) {
	t.Parallel()
	const reward = "echo 1 >/logs/verifier/reward.txt"
	for name, c := range map[string]struct {
		script, config string
		want           gradertest.Verdict
	}{
		"file":     {"[ $(cat /app/out.txt) = right ] && [ ! -e /app/other ] && [ $PWD = /tests ] && " + reward, "separate: {workdir: /tests, artifacts: [{source: /app/out.txt}]}", gradertest.Passes()},
		"folder":   {"[ -e /app/out.txt ] && [ -e /app/deep/kept ] && [ $PWD = / ] && [ ! -e /app/deep/a.tmp ] && [ ! -e /app/.git ] && " + reward, "separate: {artifacts: [{source: /app, exclude: [.git, '*.tmp']}]}", gradertest.Passes()},
		"overlap":  {"[ -e /app/deep/a.tmp ] && " + reward, "separate: {artifacts: [{source: /app/deep/}, {source: /app}]}", gradertest.Passes()},
		"missing":  {"[ -e /app/gone ] || echo 0 >/logs/verifier/reward.txt", "separate: {artifacts: [{source: /app/gone}]}", gradertest.Scores(0, "the reward is 0")},
		"no parts": {"[ -e /app/out.txt ] || echo 0 >/logs/verifier/reward.txt", "separate: {}", gradertest.Scores(0, "the reward is 0")},
		"collected": {"[ $(cat /logs/artifacts/made) = right ] && [ ! -e /app/left ] && " + reward,
			"{separate: {artifacts: [{source: /logs/artifacts}]}, collect: [{command: 'exit 1'}, {command: 'touch left; cp /app/out.txt /logs/artifacts/made'}]}", gradertest.Passes()},
		"limited": {"[ ! -e /logs/artifacts/made ] && " + reward,
			"{separate: {artifacts: [{source: /logs/artifacts}]}, collect: [{command: 'exec sleep 600', timeout: 0.1}]}", gradertest.Passes()},
		"linked":         {"[ $(cat /app/link) = right ] && " + reward, "separate: {artifacts: [{source: /app/link}]}", gradertest.Passes()},
		"shared":         {"[ $(cat /logs/artifacts/made) = right ] && [ -e /app/other ] && " + reward, "collect: [{command: 'cp /app/out.txt /logs/artifacts/made'}]", gradertest.Passes()},
		"needs an image": {reward, "separate: {image: verifier:1}", gradertest.Errors("the verifier has an image of its own, and the sandbox here is \"namespaces\"")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := "{tests: [tests], workdir: /app, " + trimmed(c.config) + "}"
			b, env := gradertest.Bind(t, "reward", config, map[string]string{"tests/test.sh": "#!/bin/sh\n" + c.script + "\n"})
			openSandboxes(t, env)
			files := gradertest.Workspace(t, map[string]string{
				"out.txt": "right\n", "other": "", "deep/kept": "", "deep/a.tmp": "", ".git/HEAD": "", ".outside/logs/artifacts/given": "",
			})
			s := gradertest.Subject("", files, func(s *grader.Subject) {
				dir, err := s.Dir()
				require.NoError(t, err)
				require.NoError(t, os.Symlink("out.txt", filepath.Join(dir, "link")))
				s.Temp = t.TempDir()
				s.Env = append(os.Environ(), "HOME="+filepath.Join(s.Temp, "home"))
				s.Task.Sandbox = surroundings.TaskSandbox{Paths: map[string]string{"/app": ".", "/logs/artifacts": ".outside/logs/artifacts"}}
			})
			gradertest.RequireVerdict(t, b, s, c.want)
		})
	}
}

// trimmed returns the options of a map without its braces.
func trimmed(config string) string {
	if config[0] == '{' {
		return config[1 : len(config)-1]
	}
	return config
}

// Excluded patterns match paths and their ends, as with tar.
func TestTarPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.tmp", "a/b.tmp", true}, {"*.tmp", "a/b.tmpx", false}, {".git", "x/.git", true}, {".git", "x.git", false},
		{"./build/", "build", true}, {"a/*", "a/b/c", true}, {"a?c", "abc", true}, {"a+", "aa", false},
	} {
		require.Equal(t, c.want, tarPattern(c.pattern).MatchString(c.path), "%s %s", c.pattern, c.path)
	}
}
