package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/sandbox"
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
		"nested":   {"[ -e /app/deep/kept ] && [ ! -e /app/deep/a.tmp ] && [ -e /app/other ] && " + reward, "separate: {artifacts: [{source: /app/deep/kept}, {source: /app, exclude: [deep]}]}", gradertest.Passes()},
		"merged":   {"[ -e /app/deep/kept ] && [ -e /app/deep/a.tmp ] && [ -e /app/other ] && " + reward, "separate: {artifacts: [{source: /app, exclude: ['*.tmp']}, {source: /app/deep}]}", gradertest.Passes()},
		"set":      {"[ -e /app/out.txt ] && [ ! -e /app/deep/a.tmp ] && " + reward, "separate: {artifacts: [{source: /app, exclude: ['[ab].tmp']}]}", gradertest.Passes()},
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

// An agent that breaks the copy of its artifacts, or leaves commands that do, gets the verdict that its artifacts
// deserve. Such trials were errors, which do not count, or passed with what only the verifier should know.
func TestAttackSeparate(t *testing.T) {
	t.Parallel()
	const (
		verdict = "if [ \"$(cat /app/answer)\" = \"$WANT\" ] && [ ! -p /app/answer ]; then echo 1 >/logs/verifier/reward.txt; else echo 0 >/logs/verifier/reward.txt; fi"
		right   = "echo s3cret >answer"
		find    = "own=$(for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/cmdline; done 2>/dev/null | grep '/start.sh$' | head -n 1); own=${own%/*}\n"
	)
	for name, c := range map[string]struct {
		agent, build, config string
		disk                 int64
		want                 gradertest.Verdict
	}{
		"honest":            {agent: right, want: gradertest.Passes()},
		"reads a variable":  {build: "echo $WANT >answer; env >/logs/artifacts/env; grep -qa s3cret /logs/artifacts/env /proc/*/environ && echo s3cret >answer", want: gradertest.Scores(0)},
		"claims a lack":     {build: find + "echo the disk is full >$own/lacking; echo the disk is full >$WAZA_LACKING", want: gradertest.Scores(0)},
		"removes the mark":  {build: find + "rm $own/started; echo the disk is full >$own/lacking", want: gradertest.Scores(0)},
		"kills the copy":    {build: "kill -9 $(for p in /proc/[0-9]*; do grep -qa start.sh $p/cmdline && echo ${p#/proc/}; done 2>/dev/null)", want: gradertest.Scores(0, "a program ended the copy")},
		"replaces the logs": {build: find + "rm -rf $own/../logs/*; ln -s / $own/../logs/0", want: gradertest.Scores(0)},
		"plants a link":     {build: find + "ln -s /tests/want $own/../logs/0; echo >answer", want: gradertest.Scores(0)},
		"hangs":             {build: "trap '' TERM; while :; do sleep 1; done", config: "collect: [{command: sh build.sh, timeout: 0.1}]", want: gradertest.Scores(0)},
		"bytes":             {agent: "mkdir -p .outside/logs/artifacts/\"$(printf '\\377')\"; " + right, want: gradertest.Passes()},
		"pipe":              {agent: "mkfifo answer .outside/logs/pipe; ln -s /logs/pipe .outside/logs/link", want: gradertest.Scores(0)},
		"locked":            {agent: right + "; mkdir -p .outside/logs/artifacts/a/b; chmod 0 .outside/logs/artifacts/a", want: gradertest.Passes()},
		"locked root":       {agent: "mkdir answer; chmod 0 answer; chmod 0500 .outside/logs/artifacts", want: gradertest.Scores(0)},
		"large link":        {agent: "ln -s /usr answer", disk: 4 << 20, want: gradertest.Scores(0)},
		"large parts":       {agent: "head -c 3000000 /dev/zero >answer; head -c 3000000 /dev/zero >.outside/logs/artifacts/x", disk: 4 << 20, want: gradertest.Scores(0)},
		"slow link":         {agent: "ln -s /proc answer", config: "timeout: 3", want: gradertest.Scores(0)},
		"links rewards":     {agent: right + "; mkdir .outside/logs/x; echo '{\"reward\": 0}' >.outside/logs/x/reward.json; ln -s /logs/x .outside/logs/verifier", want: gradertest.Passes()},
		"links tests":       {agent: "mkdir d; ln -s /tests/want d/answer; ln -s ../../tests/want d/up; ln -s / d/root", config: "separate: {artifacts: [{source: /app}]}", want: gradertest.Scores(0)},
		"nothing":           {agent: "rm -rf /nowhere", config: "separate: {workdir: /app, artifacts: [{source: /app/answer}]}", want: gradertest.Scores(0)},
		"file as a folder":  {agent: "echo x >out", config: "separate: {workdir: /app/out, artifacts: [{source: /app/out}]}", want: gradertest.Scores(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := "env: {WANT: s3cret}\ntests: [tests]\nworkdir: /app\n" + c.config
			if !strings.Contains(c.config, "separate:") {
				config += "\nseparate: {artifacts: [{source: /app/answer}, {source: /logs}]}"
			}
			if c.build != "" && !strings.Contains(c.config, "collect:") {
				config += "\ncollect: [{command: sh build.sh}]"
			}
			b, env := gradertest.Bind(t, "reward", config, map[string]string{
				"tests/test.sh": "#!/bin/sh\nfor f in /app/d/*; do [ \"$(cat $f)\" = \"$WANT\" ] && cp $f /app/answer; done 2>/dev/null\n" + verdict + "\n", "tests/want": "s3cret\n",
			})
			openLimited(t, env, sandbox.Policy{Limits: sandbox.Limits{Disk: c.disk}})
			files := gradertest.Workspace(t, map[string]string{"build.sh": c.build, ".outside/logs/artifacts/given": ""})
			gradertest.RequireVerdict(t, b, gradertest.Subject("", files, func(s *grader.Subject) {
				dir, err := s.Dir()
				require.NoError(t, err)
				agent := exec.Command("sh", "-c", c.agent)
				agent.Dir = dir
				require.NoError(t, agent.Run())
				t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", dir).Run() })
				s.Temp = t.TempDir()
				s.Env = append(os.Environ(), "HOME="+filepath.Join(s.Temp, "home"))
				s.Task.Sandbox = surroundings.TaskSandbox{Paths: map[string]string{"/app": ".", "/logs": ".outside/logs"}}
			}), c.want)
		})
	}
}

// Options name no artifact in the folders of the verifier.
func TestSeparateChecks(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"/tests", "/tests/x", "/logs/verifier/reward.txt", "/logs/../tests"} {
		_, found := gradertest.Load(t, "reward", "tests: [t]\nseparate: {artifacts: [{source: "+source+"}]}", map[string]string{"t/test.sh": ""})
		require.NotEmpty(t, found.Errors(), source)
		require.Contains(t, found.Errors()[0].Message, "separate.artifacts[0].source must", source)
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
		{"[ab].tmp", "x/a.tmp", true}, {"[ab].tmp", "[ab].tmp", false}, {"[!ab]c", "ac", false}, {"[^ab]c", "cc", true}, {"v[0-9]", "v7", true},
		{"[]a]", "]", true}, {"[a", "[a", true}, {"[b-a]", "b", false}, {`\*x`, "*x", true}, {`\*x`, "yx", false}, {`a\`, `a\`, true}, {"é[é]", "éé", true},
	} {
		require.Equal(t, c.want, tarPattern(c.pattern).MatchString(c.path), "%s %s", c.pattern, c.path)
	}
}
