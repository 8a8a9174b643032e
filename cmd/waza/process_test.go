//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/cmd/waza/exit"
	"waza/runner/proc/proctest"
)

// held is a suite whose trials block: each opens the fifo "alive", writes a line to it, and
// waits, together with a child, until it can read a line from the fifo "go". So a test can see
// when trials run and, at the end of "alive", that none of their processes is left.
type held struct {
	t     *testing.T
	suite string
	alive *bufio.Reader
	goOn  string
	// keeper keeps "alive" open between two trials, until gone closes it.
	keeper *os.File
}

func holdingSuite(t *testing.T, config string) *held {
	t.Helper()
	dir := t.TempDir()
	alive, goOn := filepath.Join(dir, "alive"), filepath.Join(dir, "go")
	require.NoError(t, unix.Mkfifo(alive, 0o600))
	require.NoError(t, unix.Mkfifo(goOn, 0o600))
	suite := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: held
config:
  executor: command
  sandbox: off
  command: 'exec 9>"$ALIVE"; echo started >&9; sleep 1000 & read line <"$GO"; kill $!; echo "$line"'
`+config+`
graders: [{type: text, name: says, config: {contains: [go]}}]
tasks:
  - {id: first, inputs: {prompt: "1"}}
  - {id: second, inputs: {prompt: "2"}}
`), 0o600))
	// cat rather than this process, because a test can wait for it: opening a fifo blocks until
	// there is a writer.
	cat := exec.Command("cat", alive)
	out, err := cat.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cat.Start())
	var keeper *os.File
	within(t, "cat does not open the fifo", func() { keeper, err = os.OpenFile(alive, os.O_WRONLY, 0) })
	require.NoError(t, err)
	// A test that waits in vain fails instead of blocking all others.
	require.NoError(t, out.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	h := &held{t: t, suite: suite, alive: bufio.NewReader(out), goOn: goOn, keeper: keeper}
	t.Cleanup(func() {
		keeper.Close()
		_ = cat.Process.Kill()
		_ = cat.Wait()
	})
	return h
}

func (h *held) env() []string {
	return environment(h.t, "PWD="+filepath.Dir(h.suite), "ALIVE="+filepath.Join(filepath.Dir(h.suite), "alive"), "GO="+h.goOn)
}

// started waits until that many trials run.
func (h *held) started(n int) {
	h.t.Helper()
	for range n {
		line, err := h.alive.ReadString('\n')
		require.NoError(h.t, err)
		require.Equal(h.t, "started\n", line)
	}
}

// release lets one trial continue.
func (h *held) release() {
	h.t.Helper()
	// Open it for reading as well, because opening a fifo only for writing waits for a reader.
	f, err := os.OpenFile(h.goOn, os.O_RDWR, 0)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { f.Close() })
	_, err = f.WriteString("go\n")
	require.NoError(h.t, err)
}

// gone waits until no process of a trial is left.
func (h *held) gone() {
	h.t.Helper()
	h.keeper.Close()
	rest, err := io.ReadAll(h.alive)
	require.NoError(h.t, err)
	require.Empty(h.t, string(rest))
}

// command starts waza, whose stderr can be read while it runs.
type command struct {
	*exec.Cmd
	out    bytes.Buffer
	stderr *bufio.Reader
}

// startWaza starts waza in the directory PWD of the environment. References such as latest mean
// runs of the project of that directory.
func startWaza(t *testing.T, env []string, args ...string) *command {
	t.Helper()
	return startWazaAt(t, wazaPath(t), env, args...)
}

// startWazaAt starts a copy of waza like startWaza.
func startWazaAt(t *testing.T, program string, env []string, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.Command(program, args...)}
	c.Env, c.Dir = env, variable(env, "PWD")
	c.Stdout = &c.out
	pipe, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, pipe.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	c.stderr = bufio.NewReader(pipe)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// says waits for a line of stderr that holds the text, and returns it.
func (c *command) says(t *testing.T, text string) string {
	t.Helper()
	for {
		line, err := c.stderr.ReadString('\n')
		require.NoError(t, err, "stderr ended without %q", text)
		if strings.Contains(line, text) {
			return line
		}
	}
}

func (c *command) exitCode(t *testing.T) int {
	t.Helper()
	_, err := io.Copy(io.Discard, c.stderr)
	require.NoError(t, err)
	within(t, "waza does not end", func() { _ = c.Wait() })
	return c.ProcessState.ExitCode()
}

func reportAt(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestFirstInterruptWaitsForWhatRuns(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	out := filepath.Join(t.TempDir(), "out.xml")
	c := startWaza(t, h.env(), "run", h.suite, "--report", out)
	h.started(1)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	c.says(t, "interrupted: waiting for 1 trial, at most ")
	h.release()
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	h.gone()
	require.Regexp(t, `name="first \(trial 1\)" time="[0-9.]+">\s+<system-out>go`, reportAt(t, out), "finished tasks are reported")
	require.Contains(t, reportAt(t, out), `<skipped message="skipped: `)
	require.Contains(t, reportAt(t, out), "the run did not complete: its status is cancelled")
	require.Regexp(t, `(?m)^first +passed +1/1`, c.out.String())
	require.Regexp(t, `(?m)^second +skipped +0/0, 1 skipped`, c.out.String())
	require.Contains(t, c.out.String(), "The run was interrupted")
	require.Contains(t, c.out.String(), "recorded in")
}

func TestSecondInterruptCancels(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "  parallel: true")
	out := filepath.Join(t.TempDir(), "out.xml")
	c := startWaza(t, h.env(), "run", h.suite, "--report", out)
	h.started(2)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	c.says(t, "interrupted: waiting for 2 trials, at most ")
	require.NoError(t, c.Process.Signal(os.Interrupt))
	c.says(t, "cancelling running trials")
	h.gone()
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.Equal(t, 2, strings.Count(reportAt(t, out), `<skipped message="cancelled: `))
	require.Contains(t, reportAt(t, out), "the run did not complete: its status is cancelled")
	require.Regexp(t, `(?m)^first +cancelled`, c.out.String())
	require.Contains(t, c.out.String(), "0 of 2 tasks passed, 2 cancelled")
}

func TestThirdInterruptLeavesAtOnceAndNothingBehind(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, `hooks: {after_run: [{command: 'exec 9>"$ALIVE"; echo started >&9; sleep 1000'}]}`)
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(1)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM)) // counts as two
	c.says(t, "cancelling running trials")
	h.started(1) // the hook after the run, for which the run would wait
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.NotContains(t, c.out.String(), "passed")
	h.gone()
}

// After an interrupt, no further suite of the list starts, and JSON is still printed.
func TestInterruptEndsTheList(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	c := startWaza(t, h.env(), "run", "--json", h.suite, h.suite+"2")
	h.started(1)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.Equal(t, 1, strings.Count(c.out.String(), "\n"))
	require.Contains(t, c.out.String(), `"status":"cancelled"`)
}

// Showing an active run of another process does not wait for its end.
func TestShowOfARunThatGoesOn(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	env := h.env()
	c := startWaza(t, env, "run", h.suite)
	h.started(1)
	look := func(args ...string) string {
		cmd := exec.Command(wazaPath(t), args...)
		cmd.Env = env
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}
	list := look("runs")
	require.Regexp(t, `held +running .* 0/2`, list)
	_, id, _ := strings.Cut(list, "\n")
	id, _, _ = strings.Cut(id, " ")
	require.Regexp(t, `(?m)^first +not finished`, look("runs", "show", id))
	require.Contains(t, look("runs", "show", "--json", id), `"status":"running"`)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.Regexp(t, `(?m)^first +cancelled`, look("runs", "show", id))
}

func TestKilledWazaLeavesNoProcess(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "  parallel: true\n  trials_per_task: 10\n  workers: 20")
	c := startWaza(t, h.env(), "run", h.suite)
	h.started(20)
	require.NoError(t, c.Process.Kill())
	h.gone()
	_ = c.Wait()
}

// The guard also gets the signals of a terminal's process group, and must ignore them.
func TestGuardOutlivesSignals(t *testing.T) {
	t.Parallel()
	guard := exec.Command(wazaPath(t), "guard")
	in, err := guard.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, guard.Start())
	victim := exec.Command("sleep", "1000")
	victim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, victim.Start())
	pgid := victim.Process.Pid
	// The guard reads line by line, and starts after it has disabled signals. A write of more
	// than the pipe holds returns only when the guard reads.
	_, err = io.WriteString(in, strings.Repeat("-1\n", 64<<10))
	require.NoError(t, err)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, guard.Process.Signal(sig))
	}
	_, err = io.WriteString(in, "+"+strconv.Itoa(pgid)+"\n")
	require.NoError(t, err)
	require.NoError(t, in.Close())
	within(t, "the guard does not end", func() { err = guard.Wait() })
	require.NoError(t, err)
	within(t, "the guard has not ended the group", func() { err = victim.Wait() })
	require.ErrorContains(t, err, "killed")
}

// On a signal, the daemon cancels its runs and leaves nothing behind.
func TestDaemonEndsOnSignal(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "  parallel: true")
	c := &command{Cmd: exec.Command(wazaPath(t), "jsonrpc")}
	c.Env = h.env()
	c.Stdout = &c.out
	in, err := c.StdinPipe()
	require.NoError(t, err)
	pipe, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, pipe.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	c.stderr = bufio.NewReader(pipe)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"`+h.suite+`"}}`+"\n")
	require.NoError(t, err)
	h.started(2)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	h.gone()
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.Contains(t, c.out.String(), `"method":"eval.complete"`)
}

func TestDaemonListens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(proctest.ShortDir(t), "s")
	c := startWaza(t, environment(t), "jsonrpc", "--tcp", "localhost:0", "--socket", path)
	c.says(t, "network=tcp")
	c.says(t, "network=unix")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Equal(t, exit.Passed, c.exitCode(t), "it was idle")
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script := `eval "$(waza completion bash)"
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _waza; echo "${COMPREPLY[*]}"; }
try waza va
try waza run --fail
try waza run --executor = mo
try waza run --executor ""
try waza run ""
complete -p waza`
	cmd := exec.Command(bash, "--norc", "-c", script)
	cmd.Env = environment(t, "LC_ALL=C") // bash warns about locales that the machine lacks
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, `validate
--fail-fast --fail-on
mock
mock command acp copilot-sdk claude-cli codex openai anthropic http remote browser router

complete -o bashdefault -o default -F _waza waza
`, string(out))
}

// When the reader of the output is gone, waza prints nothing and stops.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	r.Close() // so that the first write fails
	cmd := exec.Command(wazaPath(t), "schema")
	cmd.Env = environment(t)
	cmd.Stdout = w
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run()
	w.Close()
	require.Equal(t, exit.Pipe, cmd.ProcessState.ExitCode())
	require.Empty(t, stderr.String())
}
