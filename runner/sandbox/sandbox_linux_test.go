package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// patience limits how long a test waits for an event.
const patience = time.Minute

// each calls a test for the tiers of Linux.
func each(t *testing.T, test func(t *testing.T, tier record.Tier)) {
	t.Helper()
	for _, tier := range []record.Tier{record.TierNamespaces, record.TierLandlock} {
		t.Run(string(tier), func(t *testing.T) {
			t.Parallel()
			test(t, tier)
		})
	}
}

// A program can change its workspace, and neither read nor change anything beside it.
func TestFiles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		dir := outside(t)
		work := filepath.Join(dir, "work")
		write(t, "hello\n", work, "a")
		write(t, "secret\n", dir, "state", "secret")
		write(t, "model\n", dir, "models", "m")
		require.NoError(t, os.Symlink(filepath.Join(dir, "state", "secret"), filepath.Join(work, "link")))
		s := open(t, tier, sandbox.Policy{Read: []string{filepath.Join(dir, "models")}, Hidden: []string{filepath.Join(dir, "state")}})
		out := shell(t, s, work, `
exec 2>/dev/null
try() { if eval "$1"; then echo "yes: $1"; else echo "no: $1"; fi }
try 'cat a'
try 'echo b > b'
try 'cat ../models/m'
try 'echo x > ../models/m'
try 'cat ../state/secret'
try 'cat link'
try 'echo x > link'
try 'echo x > ../state/secret'
try 'echo x > ../new'
try 'echo x > /usr/waza-test'
try 'echo x > /etc/waza-test'
try 'echo x > /waza-test'
try 'echo x > /proc/sys/kernel/hostname'
try 'echo x > /sys/kernel/mm/ksm/run'
try 'echo x > /dev/null'
try 'head -c 1 /dev/urandom > b'
`)
		require.Equal(t, `hello
yes: cat a
yes: echo b > b
model
yes: cat ../models/m
no: echo x > ../models/m
no: cat ../state/secret
no: cat link
no: echo x > link
no: echo x > ../state/secret
no: echo x > ../new
no: echo x > /usr/waza-test
no: echo x > /etc/waza-test
no: echo x > /waza-test
no: echo x > /proc/sys/kernel/hostname
no: echo x > /sys/kernel/mm/ksm/run
yes: echo x > /dev/null
yes: head -c 1 /dev/urandom > b
`, out)
		text, err := os.ReadFile(filepath.Join(dir, "state", "secret"))
		require.NoError(t, err)
		require.Equal(t, "secret\n", string(text))
	})
}

// The root of a program contains only its view.
func TestRoot(t *testing.T) {
	t.Parallel()
	s := open(t, record.TierNamespaces, sandbox.Policy{})
	dir := outside(t)
	out := shell(t, s, dir, `ls -A /var; ls -A /tmp; echo x > "$HOME/x" && echo home; echo x > /tmp/x && echo tmp
ls /proc | grep -c '^[0-9]'; wc -c < /etc/shadow; cat /proc/1/environ 2>&1 | wc -c`)
	for _, name := range []string{"home", "tmp"} {
		require.Contains(t, out, "\n"+name+"\n")
	}
	require.NotContains(t, out, "\nx\n")
	require.Contains(t, out, "\n0\n", "of shadow")
	require.NoFileExists(t, "/tmp/x")
	require.NoFileExists(t, filepath.Join(dir, "home", "x"))
	require.Contains(t, shell(t, s, dir, `ls -A /tmp; echo end`), "end", "")
	require.NotContains(t, shell(t, s, dir, `ls -A /tmp`), "x", "of an earlier program")
}

// A copy takes changes that vanish.
func TestCopy(t *testing.T) {
	t.Parallel()
	s := open(t, record.TierNamespaces, sandbox.Policy{})
	dir := outside(t)
	file := write(t, "a\n", dir, "work", "a")
	v := sandbox.View{Copy: []string{filepath.Dir(file)}}
	out, err := run(t, s, v, filepath.Dir(file), "sh", "-c", `echo b >> a && cat a && rm a && touch c && ls`)
	require.NoError(t, err)
	require.Equal(t, "a\nb\nc\n", out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a\n", string(text))
	require.NoFileExists(t, filepath.Join(dir, "work", "c"))
}

// A program has no capability, gets none, and has a filter of system calls.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		s := open(t, tier, sandbox.Policy{})
		dir := outside(t)
		out := shell(t, s, dir, `cat /proc/self/status`)
		require.Contains(t, out, "NoNewPrivs:\t1\n")
		require.Contains(t, out, "Seccomp:\t2\n")
		if tier == record.TierNamespaces {
			for _, set := range []string{"Inh", "Prm", "Eff", "Bnd", "Amb"} {
				require.Contains(t, out, "Cap"+set+":\t0000000000000000\n")
			}
		}
	})
}

// System calls that programs do not need are refused, also with bits that the kernel ignores.
func TestCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		s := open(t, tier, sandbox.Policy{})
		dir := outside(t)
		out, err := run(t, s, sandbox.View{Write: []string{dir}}, dir, os.Args[0], probeArgument, "calls")
		require.NoError(t, err, out)
		for line := range strings.Lines(out) {
			want := "EPERM"
			if strings.HasPrefix(line, "clone3: ") {
				want = "ENOSYS"
			}
			require.True(t, strings.HasSuffix(line, ": "+want+"\n"), line)
		}
		require.Greater(t, strings.Count(out, "\n"), 20)
	})
}

// A program has its streams, the files that it is given, and no other.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		s := open(t, tier, sandbox.Policy{})
		dir := outside(t)
		script := `for f in /proc/$$/fd/*; do if [ -e "$f" ]; then printf '%s ' "${f##*/}"; fi; done`
		require.Equal(t, "0 1 2 ", shell(t, s, dir, script))
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer r.Close()
		out := &proc.Limited{Max: 1 << 20}
		err = proc.Run(t.Context(), proc.Command{
			Args: []string{"sh", "-c", script + "; echo result >&3"}, Dir: dir, Stdout: out, Sandbox: s.For(sandbox.View{Read: []string{dir}}), ExtraFiles: []*os.File{w},
		})
		w.Close()
		require.NoError(t, err)
		require.Equal(t, "0 1 2 3 ", out.String())
		text := make([]byte, 20)
		n, err := r.Read(text)
		require.NoError(t, err)
		require.Equal(t, "result\n", string(text[:n]))
	})
}

// A directory for temporary files that a program does not see is replaced.
func TestTemporaryDirectory(t *testing.T) {
	t.Parallel()
	s := open(t, record.TierNamespaces, sandbox.Policy{})
	dir := outside(t)
	for given, want := range map[string]string{"TMPDIR=/nowhere": "/tmp", "TMPDIR=" + dir: dir, "X=": ""} {
		out, err := run(t, s, sandbox.View{Write: []string{dir}, Env: []string{given, "PATH=/usr/bin:/bin"}}, dir, "sh", "-c", `printf '%s' "$TMPDIR"`)
		require.NoError(t, err)
		require.Equal(t, want, out, given)
	}
}

// Limits hold for a program with its descendants.
func TestLimits(t *testing.T) {
	t.Parallel()
	limited := func(t *testing.T, l sandbox.Limits, args ...string) (string, error) {
		t.Helper()
		s := open(t, record.TierNamespaces, sandbox.Policy{Limits: l})
		dir := outside(t)
		return run(t, s, sandbox.View{Write: []string{dir}}, dir, args...)
	}
	t.Run("processes", func(t *testing.T) {
		t.Parallel()
		out, err := limited(t, sandbox.Limits{Processes: 20}, "sh", "-c", `i=0; while [ $i -lt 50 ]; do sleep 1000 & i=$((i+1)); done; sleep 1000; echo all`)
		require.Error(t, err)
		require.NotContains(t, out, "all")
	})
	t.Run("bomb", func(t *testing.T) {
		t.Parallel()
		out, err := limited(t, sandbox.Limits{Processes: 20}, "cat", "/proc/sys/kernel/pid_max")
		require.NoError(t, err)
		if os.Geteuid() == 0 && out != "420\n" {
			t.Skip("before Linux 6.14, only a look every 100 ms restricts root")
		}
		// One that takes all process ids does not end its keeper, which could need another thread.
		for range 8 {
			_, err = limited(t, sandbox.Limits{Processes: 20}, "sh", "-c", `f() { f | f & }; f; f; sleep 1; exit 1`)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "unexpectedly")
		}
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		out, err := limited(t, sandbox.Limits{Files: 30}, "sh", "-c", `ulimit -n; ulimit -n 31`)
		require.Error(t, err, out)
		require.Contains(t, out, "30\n")
	})
	t.Run("size of a file", func(t *testing.T) {
		t.Parallel()
		dir := outside(t) // other than the workspace, which has a limit of its own
		s := open(t, record.TierNamespaces, sandbox.Policy{Limits: sandbox.Limits{Disk: 1 << 20}, Write: []string{dir}})
		out, err := run(t, s, sandbox.View{}, dir, "sh", "-c", `head -c 2000000 /dev/zero > a; echo $?; ls -l a; exit 3`)
		require.Equal(t, &proc.ExitError{Code: 3}, err, out)
		require.Contains(t, out, " 1048576 ")
	})
	for name, script := range map[string]string{
		"workspace":     `for i in 1 2 3; do head -c 600000 /dev/zero > $i; done; sleep 1000`,
		"deleted files": `exec 3> a 4> b; rm a b; head -c 900000 /dev/zero >&3; head -c 900000 /dev/zero >&4; sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := limited(t, sandbox.Limits{Disk: 1 << 20}, "sh", "-c", script)
			require.ErrorContains(t, err, "its workspace contains more than 1048576 bytes, its limit (config.sandbox.limits.disk)")
		})
	}
	t.Run("directories in memory", func(t *testing.T) {
		t.Parallel()
		out, err := limited(t, sandbox.Limits{Disk: 1 << 20}, "sh", "-c", `for i in 1 2 3; do head -c 600000 /dev/zero > /tmp/$i || exit 4; done`)
		require.Equal(t, &proc.ExitError{Code: 4}, err, out)
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		out, err := limited(t, sandbox.Limits{Memory: 64 << 20}, os.Args[0], probeArgument, "memory")
		require.Error(t, err)
		require.NotContains(t, out, "took it all")
	})
	t.Run("memory of many", func(t *testing.T) {
		t.Parallel()
		_, err := limited(t, sandbox.Limits{Memory: 100 << 20}, "sh", "-c", `for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/zero | tail & done; sleep 1000`)
		var limit *sandbox.LimitError
		require.ErrorAs(t, err, &limit)
		require.ErrorContains(t, err, "config.sandbox.limits.memory")
	})
}

// The last value of a variable counts, as without a sandbox.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		dir := outside(t)
		v := sandbox.View{Env: []string{"A=first", "PATH=/usr/bin:/bin", "TMPDIR=/nowhere", "A=last"}, Read: []string{dir}}
		out, err := run(t, open(t, tier, sandbox.Policy{}), v, dir, "env")
		require.NoError(t, err, out)
		lines := strings.Fields(out)
		require.Contains(t, lines, "A=last")
		require.NotContains(t, lines, "A=first")
		if tier == record.TierNamespaces {
			require.Contains(t, lines, "TMPDIR=/tmp")
			require.NotContains(t, lines, "TMPDIR=/nowhere")
		}
	})
}

// A closed network reaches nothing, an open one everything.
func TestNetwork(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for want, p := range map[string]sandbox.Policy{"connected\n": {}, "no connection\n": {Isolated: true}} {
		s := open(t, record.TierNamespaces, p)
		dir := outside(t)
		for _, isolated := range []bool{false, true} {
			if isolated {
				want = "no connection\n"
			}
			v := sandbox.View{Env: []string{"ADDRESS=" + l.Addr().String(), "PATH=/usr/bin:/bin"}, Isolated: isolated, Read: []string{dir}}
			out, err := run(t, s, v, dir, os.Args[0], probeArgument, "dial")
			require.NoError(t, err, out)
			require.Equal(t, want, out)
		}
	}
}

// A proxy lets programs reach the services that they may, and reports the others.
func TestNetworkByName(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	s := open(t, record.TierNamespaces, sandbox.Policy{Isolated: true})
	dir := outside(t)
	var mu sync.Mutex
	var refused []string
	out, err := run(t, s, sandbox.View{
		Env:   []string{"URLS=" + server.URL + " http://127.0.0.1:9/ http://example.com/", "PATH=/usr/bin:/bin"},
		Read:  []string{dir},
		Reach: []string{strings.TrimPrefix(server.URL, "http://")},
		OnRefused: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, text)
		},
	}, dir, os.Args[0], probeArgument, "get")
	require.NoError(t, err, out)
	lines := strings.SplitN(out, "\n", 3)
	require.Equal(t, "200 hello", lines[0])
	require.Contains(t, lines[1], "403")
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, refused, 2, "%q", refused)
	require.Contains(t, refused[1], "example.com")
}

// Programs end with their exit code or signal. All their descendants end with them.
func TestEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		s := open(t, tier, sandbox.Policy{})
		dir := outside(t)
		for script, want := range map[string]*proc.ExitError{
			"exit 3":                               {Code: 3},
			"kill -TERM $$":                        {Code: -1, Signal: "SIGTERM"},
			"kill -KILL $$":                        {Code: -1, Signal: "SIGKILL"},
			"sh -c 'kill -KILL $PPID'; sleep 1000": {Code: -1, Signal: "SIGKILL"},
		} {
			out, err := run(t, s, sandbox.View{Read: []string{dir}}, dir, "sh", "-c", script)
			require.Equal(t, want, err, "%s: %s", script, out)
		}
		if tier == record.TierLandlock {
			return // the scope of a trial ends what a program leaves
		}
		if _, err := exec.LookPath("setsid"); err != nil {
			t.Skip("setsid is not installed")
		}
		token := "1000." + strconv.FormatInt(time.Now().UnixNano(), 10)
		shell(t, s, dir, `(setsid env -i sleep `+token+` </dev/null >/dev/null 2>&1 &); setsid sh -c 'trap "" TERM HUP; sleep `+token+` & exit' >/dev/null 2>&1`)
		require.Empty(t, with(t, token))
	})
}

// The processes of this machine are no concern of a program.
func TestSignals(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		if tier == record.TierLandlock && len(sandbox.Detect().Missing) > 0 {
			t.Skip(sandbox.Detect().Missing)
		}
		s := open(t, tier, sandbox.Policy{})
		dir := outside(t)
		out := shell(t, s, dir, fmt.Sprintf(`
exec 2>/dev/null
for p in $PPID %d; do kill -0 $p && [ $p != 1 ] && [ $p != 0 ] && [ $p != $$ ] && echo "$p can be ended"; done
cat /proc/%[1]d/environ && echo read; cat /proc/$PPID/environ && echo read
kill -KILL $PPID; kill -STOP 1; true`, os.Getpid()))
		require.NotContains(t, out, "can be ended")
		require.NotContains(t, out, "read")
	})
}

// The end of a context ends a program with its descendants.
func TestContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tier record.Tier) {
		s := open(t, tier, sandbox.Policy{})
		dir := outside(t)
		token := "1000." + strconv.FormatInt(time.Now().UnixNano(), 10)
		ctx, cancel := context.WithCancelCause(t.Context())
		p, err := proc.Start(ctx, proc.Command{
			Args: []string{"sh", "-c", `sleep ` + token + ` & sleep ` + token}, Dir: dir, Sandbox: s.For(sandbox.View{Read: []string{dir}}),
		})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(with(t, token)) >= 2 }, patience, time.Millisecond)
		cancel(context.DeadlineExceeded)
		require.ErrorIs(t, p.Wait(), context.DeadlineExceeded)
		require.Eventually(t, func() bool { return len(with(t, token)) == 0 }, patience, time.Millisecond)
	})
}

// When a keeper is killed, its program ends with an error that says so, and the next program gets
// another keeper.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	s := open(t, record.TierNamespaces, sandbox.Policy{})
	dir := outside(t)
	token := "1000." + strconv.FormatInt(time.Now().UnixNano(), 10)
	p, err := proc.Start(t.Context(), proc.Command{Args: []string{"sleep", token}, Dir: dir, Sandbox: s.For(sandbox.View{Read: []string{dir}})})
	require.NoError(t, err)
	var pids []int
	require.Eventually(t, func() bool { pids = with(t, token); return len(pids) == 1 }, patience, time.Millisecond)
	require.NoError(t, unix.Kill(parentOf(t, pids[0]), unix.SIGKILL))
	require.ErrorContains(t, p.Wait(), "the sandbox ended unexpectedly; its program was killed")
	require.Eventually(t, func() bool { return len(with(t, token)) == 0 }, patience, time.Millisecond)
	require.Equal(t, "again\n", shell(t, s, dir, "echo again"))
}

// A program that the sandbox does not show is named, with the remedy.
func TestNotVisible(t *testing.T) {
	t.Parallel()
	s := open(t, record.TierNamespaces, sandbox.Policy{})
	dir := outside(t)
	script := write(t, "#!"+write(t, "", dir, "interpreter")+"\n", dir, "work", "script")
	_, err := run(t, s, sandbox.View{Write: []string{filepath.Dir(script)}}, filepath.Dir(script), script)
	require.ErrorContains(t, err, "config.sandbox.read")
	_, err = run(t, s, sandbox.View{}, dir, "true")
	require.ErrorContains(t, err, "its working directory is not visible in the sandbox: "+dir)
}

// Many programs at a time have a sandbox each.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	s := open(t, record.TierNamespaces, sandbox.Policy{})
	var work sync.WaitGroup
	for i := range 30 {
		dir := outside(t)
		work.Go(func() {
			out := &proc.Limited{Max: 1 << 10}
			err := proc.Run(t.Context(), proc.Command{
				Args: []string{"sh", "-c", `echo $0 > /tmp/file; cat /tmp/file; ls /proc | grep -c '^[0-9]'`, strconv.Itoa(i)},
				Dir:  dir, Stdout: out, Sandbox: s.For(sandbox.View{Write: []string{dir}}),
			})
			if err != nil || !strings.HasPrefix(out.String(), strconv.Itoa(i)+"\n") {
				t.Errorf("program %d: %v: %s", i, err, out)
			}
		})
	}
	work.Wait()
}

// with lists the processes with an argument, except for those that have ended.
func with(t *testing.T, argument string) (pids []int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range dirs {
		args, err := os.ReadFile(dir + "/cmdline")
		fields := bytes.Split(args, []byte{0})
		if err != nil || len(fields) < 2 || string(fields[0]) != "sleep" || string(fields[1]) != argument {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	return parent
}
