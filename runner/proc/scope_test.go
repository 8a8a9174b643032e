//go:build linux

package proc_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner/proc"
)

// escapes are ways to escape from the running program. Each prints the id of the escaped
// process.
var escapes = map[string]string{
	"session":           `setsid sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"double fork":       `setsid sh -c 'sh -c "echo \$\$ >&3; exec 3>&- sleep 1000" & ' </dev/null >/dev/null 2>&1 &`,
	"no environment":    `setsid env -i sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"all of it":         `setsid env -i sh -c 'sh -c "echo \$\$ >&3; exec 3>&- env -i sleep 1000" &' </dev/null >/dev/null 2>&1 &`,
	"no limit":          `prlimit --locks=5: setsid sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"no marks":          `setsid env -i prlimit --locks=5: sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"a bomb that hides": `setsid env -i sh -c 'echo $$ >&3; exec 3>&-; while :; do setsid env -i sleep 1000 & n=$((n+1)); [ $n -gt 20 ] && exec sleep 1000; done' </dev/null >/dev/null 2>&1 &`,
}

// A process that created a new session and closed its output outlived its trial, and one that
// cleared its environment outlived its run.
func TestAttackScopeEndsWhatGotAway(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	for name, script := range escapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "no marks" && !proc.HasCgroups() {
				t.Skip("needs a delegated control group")
			}
			mine, scope := proc.WithScope(t.Context())
			theirs, other := proc.WithScope(t.Context())
			gone, _ := escaped(t, mine, script)
			stays, _ := escaped(t, theirs, script)
			require.GreaterOrEqual(t, scope.End(), 1)
			requireGone(t, gone)
			requireAlive(t, stays)
			require.GreaterOrEqual(t, other.End(), 1)
			requireGone(t, stays)
			require.Zero(t, scope.End())
		})
	}
}

// Processes of a program in a new session outside of a scope remain until Sweep.
func TestProcessSweep(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	pid, p := escaped(t, t.Context(), escapes["all of it"])
	require.GreaterOrEqual(t, p.Sweep(), 1)
	requireGone(t, pid)
}

// EndDetached kills processes that lost their parent since a moment. Children of the program and
// earlier processes remain.
func TestEndDetached(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	p, err := proc.Start(ctx, proc.Command{
		Args:  sh(escapes["all of it"] + ` read line; sleep 1000 3>&- & echo $! >&3; ` + escapes["all of it"] + ` read line`),
		Stdin: in, ExtraFiles: []*os.File{w},
	})
	require.NoError(t, err)
	w.Close()
	lines := bufio.NewReader(r)
	next := func() string {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		return line
	}
	before := next()
	begin := tickAfter(t)
	_, err = feed.Write([]byte("\n"))
	require.NoError(t, err)
	child, detached := next(), next()
	require.GreaterOrEqual(t, p.EndDetached(begin), 1)
	requireGone(t, detached)
	requireAlive(t, before)
	requireAlive(t, child)
	requireAlive(t, strconv.Itoa(p.Pid()))
	cancel()
	require.Error(t, p.Wait())
	requireGone(t, before)
	requireGone(t, child)
}

// tickAfter waits until the clock of process start times has advanced, and returns the new time.
func tickAfter(t *testing.T) proc.Moment {
	t.Helper()
	now := proc.Now()
	require.NotZero(t, now)
	for {
		if next := proc.Now(); next > now+1 {
			return next
		}
	}
}

// escaped runs a script from which a process escapes, and returns the id of that process. The
// program ends once that has happened.
func escaped(t *testing.T, ctx context.Context, script string) (pid string, p *proc.Process) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	in, feed := io.Pipe()
	p, err = proc.Start(ctx, proc.Command{Args: sh(script + " read line"), Stdin: in, ExtraFiles: []*os.File{w}})
	require.NoError(t, err)
	w.Close()
	pid, err = bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	_ = p.Wait()
	requireAlive(t, pid)
	return pid, p
}

func requireAlive(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	require.NoError(t, err)
	require.NoError(t, unix.Kill(n, 0))
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(n) + "/stat")
	require.NoError(t, err)
	require.NotContains(t, string(stat), ") Z ")
}
