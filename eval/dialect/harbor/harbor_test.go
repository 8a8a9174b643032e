package harbor_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/surroundings"
)

// load loads a task with the usual files, of which some can be replaced.
func load(t *testing.T, toml string, more map[string]string) (*eval.Suite, decode.Diagnostics) {
	t.Helper()
	all := map[string]string{
		"task.toml": toml, "instruction.md": "Write {{x}} into /app/x.\n", "tests/test.sh": "#!/bin/sh\necho 1 >/logs/verifier/reward.txt\n",
		"environment/Dockerfile": "FROM ubuntu:24.04\nWORKDIR /app\n", "solution/solve.sh": "echo x >/app/x\n",
	}
	maps.Copy(all, more)
	dir := t.TempDir()
	for name, content := range all {
		path := filepath.Join(dir, "hello", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	suite, found, err := eval.Load(filepath.Join(dir, "hello", "task.toml"), eval.Options{Agent: "x"})
	require.NoError(t, err)
	return suite, found
}

const head = "schema_version = \"1.3\"\n[task]\nname = \"org/greet\"\nkeywords = [\"k\"]\n[metadata]\ntags = [\"t\", \"k\"]\nfree = 1\n"

func TestTask(t *testing.T) {
	t.Parallel()
	suite, found := load(t, head+`[agent]
timeout_sec = 60.5
[verifier]
timeout_sec = 30
[environment]
network_mode = "allowlist"
allowed_hosts = ["a.example.com"]
[environment.env]
A = "${WAZA_NO_SUCH_VARIABLE:-b}"
[unknown]
key = 1
`, map[string]string{"environment/Dockerfile": "FROM ubuntu:24.04\nRUN apt-get update && \\\n  apt-get install -y python3\nWORKDIR /work\nCOPY data.txt data/\nCOPY data.txt /srv/in.txt\n", "environment/data.txt": "data"})
	require.Empty(t, found.Errors())
	require.Equal(t, "harbor", suite.Format)
	require.Equal(t, "greet", suite.Name)
	require.Len(t, suite.Tasks, 1)
	task := suite.Tasks[0]
	require.Equal(t, "greet", task.ID)
	require.Equal(t, []string{"k", "t"}, task.Tags)
	require.Equal(t, "Write {{x}} into /app/x.\n", task.Inputs.Prompt)
	require.True(t, task.Literal)
	require.InDelta(t, 90.5, task.TimeoutSeconds, 0)
	require.Equal(t, map[string]string{"A": "b"}, task.Inputs.Environment)
	require.Equal(t, []string{"a.example.com"}, task.Sandbox.Network.Hosts)
	require.Equal(t, map[string]string{"/work": ".", "/srv": ".outside/srv", "/app": ".outside/app"}, task.Sandbox.Paths)
	require.Equal(t, "data/data.txt", task.Inputs.Files[0].Path)
	require.Equal(t, ".outside/srv/in.txt", task.Inputs.Files[1].Path)
	require.Equal(t, "solution/solve.sh", task.Solution.Script)
	require.Empty(t, task.Blocked)
	require.Equal(t, "reward", task.Effective[0].Type)
}

// Each key that waza cannot honor is an error, blocks the task or is a warning.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ toml, fault, blocked, warning string }{
		{toml: "[environment]\nnetwork_mode = \"lan\"", fault: `must be public, no-network or allowlist, got "lan"`},
		{toml: "[environment]\nnetwork_mode = \"allowlist\"", fault: "needs allowed_hosts"},
		{toml: "[environment]\nallowed_hosts = [\"a\"]", fault: "needs network_mode"},
		{toml: "[environment]\nmemory = \"2G\"\nmemory_mb = 1024", fault: "environment.memory and environment.memory_mb differ"},
		{toml: "[environment]\nmemory = \"2G\"\nmemory_mb = 2048", warning: "environment.memory has no effect"},
		{toml: "[verifier]\nenvironment_mode = \"shared\"\n[verifier.environment]\ncpus = 1", fault: "there must be no verifier.environment"},
		{toml: "[verifier]\nenvironment_mode = \"separate\"", blocked: "an environment of its own"},
		{toml: "[agent]\ntimeout_sec = -1", fault: "agent.timeout_sec must be a number of seconds"},
		{toml: "[environment]\nos = \"windows\"", blocked: "needs the system windows"},
		{toml: "[environment]\ngpus = 2", blocked: "needs 2 GPUs"},
		{toml: "[environment]\nskills_dir = \"/skills\"", blocked: "copies no folder of the task to /skills"},
		{toml: "[environment.env]\nA = \"${WAZA_NO_SUCH_VARIABLE}\"", blocked: "WAZA_NO_SUCH_VARIABLE is not set"},
		{toml: "[environment.healthcheck]\ninterval_sec = 1", fault: "healthcheck.command is missing"},
		{toml: "[environment.healthcheck]\ncommand = \"true\"\nretries = 0", fault: "healthcheck.retries must be between 1 and 1000"},
		{toml: "[environment]\ntpu = {type = \"v4\"}", blocked: "needs a TPU"},
		{toml: "[verifier]\nenvironment_mode = \"own\"", fault: "must be shared or separate, got \"own\""},
		{toml: "[solution.env]\nA = \"b\"", warning: "solution.env has no effect"},
		{toml: "[verification]\ntype = \"script\"", warning: "verification is no key of Harbor"},
		{toml: "[environment]\nsetup_scripts = [\"a\"]", warning: "environment.setup_scripts is no key of Harbor"},
		{toml: "[agent]\nuser = \"ada\"", warning: "agent.user has no effect"},
		{toml: "[[steps]]\nname = \"a\"", blocked: "steps/a/instruction.md is missing"},
	} {
		suite, found := load(t, head+c.toml, nil)
		text := strings.Join(messages(found.Errors()), "\n")
		if c.fault == "" {
			require.Empty(t, text, c.toml)
		}
		require.Contains(t, text, c.fault, c.toml)
		require.Contains(t, suite.Tasks[0].Blocked, c.blocked, c.toml)
		require.Contains(t, strings.Join(messages(found), "\n"), c.warning, c.toml)
	}
	suite, _ := load(t, head+"[environment]\nallow_internet = false", nil)
	require.NotNil(t, suite.Tasks[0].Sandbox.Network)
	require.False(t, suite.Tasks[0].Sandbox.Network.Open)
	suite, _ = load(t, head+"[environment]\nallow_internet = false\nnetwork_mode = \"public\"", nil)
	require.Nil(t, suite.Tasks[0].Sandbox.Network)
}

// A Dockerfile that only copies files and makes directories needs no container.
func TestImages(t *testing.T) {
	t.Parallel()
	for file, contained := range map[string]bool{
		"FROM ubuntu\nRUN pip install x\n":                          true,
		"FROM ubuntu\nFROM debian\n":                                true,
		"FROM ubuntu\nCOPY --from=b /x /y\n":                        true,
		"FROM ubuntu\nCOPY *.txt /y\n":                              true,
		"FROM ubuntu\nUSER ada\n":                                   true,
		"FROM ubuntu\nENTRYPOINT [\"x\"]\n":                         true,
		"FROM ubuntu\nRUN\tpip install x\n":                         true,
		"from ubuntu\nrun pip install x\n":                          true,
		"FROM ubuntu\nRUN mkdir -p \\ \r\n # x\n /app | sh\n":       true,
		"FROM swebench/django:latest\nWORKDIR /testbed\n":           true,
		"ARG X\nFROM $X\n":                                          true,
		"FROM ubuntu\nCOPY <<EOF /app/a.txt\nhello\nEOF\n":          true,
		"FROM ubuntu\nADD src.tar.gz /app/\n":                       true,
		"FROM ubuntu\nENV H=/srv\nWORKDIR $H\n":                     true,
		"FROM ubuntu\nCOPY none /app/\nRUN pip install x\n":         true,
		"FROM ubuntu\nWORKDIR /usr/src/app\n":                       true,
		"FROM ubuntu\nCOPY a.txt /etc/\n":                           true,
		"FROM docker.io/library/python:3.12-slim\n":                 false,
		"FROM --platform=linux/amd64 debian@sha256:1 AS b\n":        false,
		"FROM ubuntu\nCOPY\t--chmod=755 a.txt /app/\n":              false,
		"FROM ubuntu\nRUN mkdir -p /app && apt-get install -y bash": false,
	} {
		suite, found := load(t, head, map[string]string{"environment/Dockerfile": file, "environment/a.txt": ""})
		require.Empty(t, found.Errors(), file)
		require.Empty(t, suite.Tasks[0].Blocked, file)
		require.Equal(t, contained, suite.Config.Sandbox.Mode == surroundings.SandboxContainer, file)
		require.Equal(t, contained, suite.Tasks[0].Sandbox.ImageWorkdir, file)
		require.Equal(t, contained, suite.Tasks[0].Sandbox.Dockerfile == "environment/Dockerfile", file)
	}
	for file, want := range map[string]string{
		"FROM ubuntu\nCOPY none /app\n": "copies none, which does not exist",
		"FROM ubuntu\nWORKDIR /\n":      "the work folder / is not a folder below /",
	} {
		suite, _ := load(t, head, map[string]string{"environment/Dockerfile": file})
		require.Contains(t, suite.Tasks[0].Blocked, want, file)
	}
	suite, _ := load(t, head, map[string]string{"environment/docker-compose.yaml": "x"})
	require.Contains(t, suite.Tasks[0].Blocked, "needs several containers")

	suite, _ = load(t, head, map[string]string{"environment/Dockerfile": "FROM ubuntu\nWORKDIR /srv\nWORKDIR sub\nCOPY a.txt .\n", "environment/a.txt": ""})
	require.Equal(t, map[string]string{"/srv/sub": ".", "/app": ".outside/app"}, suite.Tasks[0].Sandbox.Paths)
	require.Equal(t, "a.txt", suite.Tasks[0].Inputs.Files[0].Path)
	_, found := load(t, head, map[string]string{"environment/Dockerfile": "FROM ubuntu\nENTRYPOINT [\"x\"]\n"})
	require.Contains(t, strings.Join(messages(found), "\n"), "ENTRYPOINT does not run")
	suite, found = load(t, head+"[environment]\nworkdir = \"/usr/src/app\"\n", nil)
	require.Empty(t, found.Errors())
	require.Equal(t, map[string]string{"/usr/src/app": "."}, suite.Tasks[0].Sandbox.Paths)
}

// A prebuilt image contains no files of the task, which are put into its work folder.
func TestPrebuiltImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"task.toml": head + "[environment]\ndocker_image = \"a\"\n[environment.healthcheck]\ncommand = \"true\"\ninterval_sec = 0\n", "instruction.md": "x",
		"tests/test.sh": "", "environment/a.txt": "", "environment/data/b.txt": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	suite, found, err := eval.Load(filepath.Join(dir, "task.toml"), eval.Options{Agent: "x"})
	require.NoError(t, err)
	require.Empty(t, found.Errors())
	var names []string
	for _, f := range suite.Tasks[0].Inputs.Files {
		names = append(names, f.Path)
	}
	require.Equal(t, []string{"a.txt", "data/b.txt"}, names)
}

func messages(found decode.Diagnostics) []string {
	var list []string
	for _, d := range found {
		list = append(list, d.Message)
	}
	return list
}

// No task.toml and no Dockerfile make the loader fail.
func FuzzTranslate(f *testing.F) {
	f.Add(head, "FROM a\nCOPY a b\n")
	f.Add("[environment]\nenv = 3\nmcp_servers = [{name = 'a'}, 4]\n[agent]\n", "WORKDIR ..\nRUN ;")
	f.Add("[verifier]\ntimeout_sec = 'x'\nenv = {A = [1]}\n[task]\nname = 7", "COPY \\\n")
	f.Add("version = '1'\n[[steps]]\nname = 'a'\nmin_reward = {a = 1}\n[[steps]]\nname = '..'\nhealthcheck = {command = 'x'}", "COPY / /\nCOPY .. .")
	f.Fuzz(func(t *testing.T, toml, dockerfile string) {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "environment"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "task.toml"), []byte(toml), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "environment", "Dockerfile"), []byte(dockerfile), 0o644))
		suite, found, err := eval.Load(filepath.Join(dir, "task.toml"), eval.Options{Agent: "x"})
		require.NoError(t, err)
		if suite != nil && suite.Format == "harbor" && !found.HasErrors() {
			require.Len(t, suite.Tasks, 1)
		}
	})
}
