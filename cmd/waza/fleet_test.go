package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A run that workers do leaves the same results and files as a local run, and can be graded
// again.
func TestFleetRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"eval.yaml": `name: away
config: {executor: command, sandbox: off, command: [sh, agent.sh], trials_per_task: 3}
graders:
  - {name: says, type: text, config: {contains: [checked]}}
  - {name: left, type: file, config: {must_exist: [out/made.txt], content_patterns: [{path: out/made.txt, must_match: [fixture]}]}}
tasks:
  - {id: a, prompt: check, inputs: {files: [{path: given.txt}]}}
`,
		"agent.sh":           "mkdir out && cat given.txt > out/made.txt && . \"$WAZA_SUITE_DIR/lib.sh\" && say\n",
		"lib.sh":             "say() { echo checked $(cat given.txt); }\n",
		"fixtures/given.txt": "fixture text\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	state := t.TempDir()
	env := environment(t, "WAZA_STATE="+state)
	worker := exec.Command("waza", "worker", "--fleet", "embedded", "--json")
	worker.Env = env
	worker.Dir = t.TempDir() // it finds the files by itself
	stdout, err := worker.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	t.Cleanup(func() { _ = worker.Process.Kill() }) // gone already unless the test fails
	lines := json.NewDecoder(stdout)
	var started struct{ Worker, Team string }
	require.NoError(t, lines.Decode(&started))
	require.Equal(t, "waza", started.Team)

	out, code := waza(t, env, "run", "--fleet", "embedded?slots=0", "--json", filepath.Join(dir, "eval.yaml"))
	require.Zero(t, code, out)
	local, code := waza(t, env, "run", "--json", filepath.Join(dir, "eval.yaml"))
	require.Zero(t, code, local)
	require.Equal(t, awayResult(t, local), awayResult(t, out))
	out, code = waza(t, append(env, "PWD="+dir), "grade", "latest~1", "--suite", filepath.Join(dir, "eval.yaml"))
	require.Zero(t, code, out)

	require.NoError(t, worker.Process.Signal(os.Interrupt))
	var ended struct{ Trials int }
	require.NoError(t, lines.Decode(&ended))
	require.NoError(t, worker.Wait())
	require.Equal(t, 3, ended.Trials)
}

// awayResult returns the trials of a result, without times.
func awayResult(t *testing.T, result string) any {
	t.Helper()
	var r struct {
		Tasks []struct {
			Trials []struct {
				Verdict, Output string
				Score           float64
				Workspace       struct {
					Entries []struct {
						Path, Given string
						Blob        *struct {
							Hash string
							Size int64
						}
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(result), &r))
	require.NotEmpty(t, r.Tasks)
	require.Len(t, r.Tasks[0].Trials[0].Workspace.Entries, 3)
	return r
}

// waza serve runs the embedded server, so that workers find it before the first run.
func TestServeHostsFleet(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	env := environment(t, "WAZA_STATE="+state, "WAZA_FLEET=")
	server, _, _ := startServer(t, env)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(state, "fleet", "server.json"))
		return err == nil
	}, patience, 5*time.Millisecond)
	out, code := waza(t, env, "fleet", "status", "--fleet", "embedded", "--json")
	require.Zero(t, code, out)
	require.NoError(t, server.Process.Signal(os.Interrupt))
	require.NoError(t, server.Wait())
	_, err := os.Stat(filepath.Join(state, "fleet", "server.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
