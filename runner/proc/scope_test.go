//go:build linux

package proc_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner/proc"
)

// escapes are ways to escape from the running program. Each prints the id of the escaped
// process.
var escapes = map[string]string{
	"session":        `setsid sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"double fork":    `setsid sh -c 'sh -c "echo \$\$ >&3; exec 3>&- sleep 1000" & ' </dev/null >/dev/null 2>&1 &`,
	"no environment": `setsid env -i sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"all of it":      `setsid env -i sh -c 'sh -c "echo \$\$ >&3; exec 3>&- env -i sleep 1000" &' </dev/null >/dev/null 2>&1 &`,
	"no limit":       `prlimit --locks=5: setsid sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"no marks":       `setsid env -i prlimit --locks=5: sh -c 'echo $$ >&3; exec 3>&- sleep 1000' </dev/null >/dev/null 2>&1 &`,
	"a bomb that hides": `setsid env -i sh -c 'echo $$ >&3; exec 3>&-; while :; do setsid env -i sleep 1000 & ` +
		`n=$((n+1)); [ $n -gt 20 ] && exec sleep 1000; done' </dev/null >/dev/null 2>&1 &`,
}

// A process that created a new session and closed its output outlived its trial, and one that
// cleared its environment outlived its run.
func TestAttackScopeEndsWhatGotAway(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	for search, prepare := range map[string]func(*proc.Scope){
		"recent ids": (*proc.Scope).SearchRecentIDs, "all processes": (*proc.Scope).SearchAllProcesses,
	} {
		for name, script := range escapes {
			t.Run(search+"/"+name, func(t *testing.T) {
				t.Parallel()
				if name == "no marks" && !proc.HasCgroups() {
					t.Skip("needs a delegated control group")
				}
				mine, scope := proc.WithScope(t.Context())
				theirs, other := proc.WithScope(t.Context())
				gone, _ := escaped(t, mine, script)
				stays, _ := escaped(t, theirs, script)
				prepare(scope)
				require.GreaterOrEqual(t, scope.End(), 1)
				requireGone(t, gone)
				requireAlive(t, stays)
				prepare(other)
				require.GreaterOrEqual(t, other.End(), 1)
				requireGone(t, stays)
				require.Zero(t, scope.End())
			})
		}
	}
}

// A process that moves itself out of the control group of its trial, also into the group of
// another trial, ends with its own trial. It also has a new session and init as its parent, and
// lost one of its two marks.
func TestAttackLeftControlGroup(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"setsid", "prlimit"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program + " from util-linux")
		}
	}
	grouped := proc.HasCgroups()
	for setup, withScope := range map[string]func(context.Context) (context.Context, *proc.Scope){
		"with control groups":    proc.WithScope,
		"without control groups": proc.WithoutCgroup,
	} {
		for _, target := range []string{"own group of waza", "group of all trials", "group of another trial", "new group"} {
			for lost, clear := range map[string]string{"environment": "env -i", "limit": "prlimit --locks=5:"} {
				t.Run(setup+"/"+target+"/lost "+lost, func(t *testing.T) {
					t.Parallel()
					if setup == "with control groups" && !grouped {
						t.Skip("needs a delegated control group")
					}
					mine, scope := withScope(t.Context())
					theirs, other := proc.WithScope(t.Context())
					stays, _ := escaped(t, theirs, escapes["session"])
					var dir string
					switch own, home := proc.OuterCgroups(); target {
					case "own group of waza":
						dir = own
					case "group of all trials":
						dir = home
					case "group of another trial":
						dir = other.Cgroup()
					case "new group":
						dir = filepath.Join(own, "waza-left-"+rand.Text())
						defer os.Remove(dir)
					}
					// Without a control group to write to, the rest of the attack remains.
					gone, _ := escaped(t, mine, fmt.Sprintf(`setsid %s sh -c 'mkdir -p %[2]s; echo $$ >%[2]s/cgroup.procs; `+
						`sh -c "echo \$\$ >&3; exec 3>&- sleep 1000" &' </dev/null >/dev/null 2>&1 &`, clear, dir))
					if grouped {
						require.Equal(t, dir, cgroupOf(t, gone))
					}
					require.GreaterOrEqual(t, scope.End(), 1)
					requireGone(t, gone)
					requireAlive(t, stays)
					require.GreaterOrEqual(t, other.End(), 1)
					requireGone(t, stays)
				})
			}
		}
	}
}

// A program that removes the control group of its trial does not take it away from later programs.
func TestAttackRemovedControlGroup(t *testing.T) {
	t.Parallel()
	if !proc.HasCgroups() {
		t.Skip("needs a delegated control group")
	}
	for _, program := range []string{"setsid", "prlimit"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program + " from util-linux")
		}
	}
	ctx, scope := proc.WithScope(t.Context())
	require.NoError(t, proc.Run(ctx, proc.Command{Args: sh("true")}))
	own, _ := proc.OuterCgroups()
	remove := fmt.Sprintf("echo $$ >%s/cgroup.procs; until rmdir %s; do :; done", own, scope.Cgroup())
	require.NoError(t, proc.Run(ctx, proc.Command{Args: sh(remove)}))
	pid, _ := escaped(t, ctx, escapes["no marks"])
	require.GreaterOrEqual(t, scope.End(), 1)
	requireGone(t, pid)
}

// cgroupOf returns the directory of a process's control group.
func cgroupOf(t *testing.T, pid string) string {
	t.Helper()
	groups, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/cgroup")
	require.NoError(t, err)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return proc.CgroupPath(string(groups), string(mounts))
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
	requireDetached(t, detached, p.Pid())
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

// requireDetached waits until a process is no longer below the given ancestor. It says its id
// before the process that started it has ended.
func requireDetached(t *testing.T, pid string, ancestor int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for at := strings.TrimSpace(pid); at != strconv.Itoa(ancestor); {
			stat, err := os.ReadFile("/proc/" + at + "/stat")
			if err != nil {
				return false // it has just ended
			}
			at = strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[1]
			if at == "0" || at == "1" {
				return true
			}
		}
		return false
	}, 3*time.Minute, time.Millisecond, "process %s is still below %d", pid, ancestor)
}

// Threads that a program starts have ids too. They are not processes of their own that lost their
// parent.
func TestEndDetachedSparesThreads(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	in, feed := io.Pipe()
	defer feed.Close()
	out, answer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	p, err := proc.Start(ctx, proc.Command{Args: []string{exe}, Env: append(os.Environ(), "WAZA_TEST_THREADS=20"), Stdin: in, Stdout: answer})
	require.NoError(t, err)
	lines := bufio.NewReader(out)
	next := func() string {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		return line
	}
	require.Equal(t, "ready\n", next())
	begin := tickAfter(t)
	_, err = feed.Write([]byte("\n"))
	require.NoError(t, err)
	require.Equal(t, "threads\n", next())
	require.Zero(t, p.EndDetached(begin))
	requireAlive(t, strconv.Itoa(p.Pid()))
	cancel()
	require.Error(t, p.Wait())
}

// tickAfter waits until the clock of process start times has advanced, and returns the new time.
func tickAfter(t *testing.T) proc.Moment {
	t.Helper()
	now := proc.Now()
	require.NotZero(t, now)
	for {
		if next := proc.Now(); next.Ticks() > now.Ticks()+1 {
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
