//go:build linux

package runner_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A process that an agent leaves in a new session, with closed output and cleared environment,
// outlived its trial and its run. It is killed with its trial; that of another running trial is
// not.
func TestCrashEscapedProcesses(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	rounds := 50
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		rounds = 1
	case "ci":
		rounds = 10
	}
	for name, escape := range map[string]string{
		"session":        `setsid sh -c 'echo $$ > "$0"; exec sleep 1000' "$PIDS/$id" </dev/null >/dev/null 2>&1 3>&- &`,
		"no environment": `setsid env -i sh -c 'echo $$ > "$0"; exec sleep 1000' "$PIDS/$id" </dev/null >/dev/null 2>&1 3>&- &`,
		"double fork":    `setsid env -i sh -c 'sh -c "echo \$\$ > $0; exec sleep 1000" &' "$PIDS/$id" </dev/null >/dev/null 2>&1 3>&- &`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range rounds {
				escapeFromTrials(t, escape)
			}
		})
	}
}

func escapeFromTrials(t *testing.T, escape string) {
	t.Helper()
	pids := t.TempDir()
	files := fmt.Sprintf(`
-- eval.yaml --
name: escapes
config: {executor: command, command: [sh, agent.sh], env: {PIDS: %s}, parallel: true, workers: 2, sandbox: off}
tasks: [{id: short, prompt: x}, {id: long, prompt: x}]
-- agent.sh --
cat > /dev/null
id=$WAZA_TASK_ID
%s
until [ -s "$PIDS/short" ] && [ -s "$PIDS/long" ]; do sleep 0.01; done
[ $id = short ] || until [ -e "$PIDS/go" ]; do sleep 0.01; done
`, pids, escape)
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	live := runnertest.Start(t, r, files, record.Request{})
	sub := live.Subscribe(1)
	for ended := false; !ended; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			ended = ended || e.Type == record.TrialComplete && e.TaskID == "short"
		}
	}
	require.False(t, runs(t, pids, "short"))
	require.True(t, runs(t, pids, "long"))
	require.NoError(t, os.WriteFile(filepath.Join(pids, "go"), nil, 0o600))
	<-live.Done()
	require.False(t, runs(t, pids, "long"))
}

// runs reports whether the process whose id is in a file exists. A killed process that has not
// been reaped does not count.
func runs(t *testing.T, dir, name string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	if unix.Kill(pid, 0) != nil {
		return false
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(bytes.TrimSpace(args)) > 0
}
