//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/terminal"
	"waza/runner/report"
)

// console is a program that runs on its own terminal.
type console struct {
	*exec.Cmd
	master *os.File

	mu   sync.Mutex // guards seen
	seen strings.Builder
	more chan struct{} // gets a token when there is more
	done chan struct{} // closed at the end of the output
}

func onTerminal(t *testing.T, env []string, columns, rows int, args ...string) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer slave.Close()
	// Ctrl-C sends the signal first and then discards unread output, which would include the
	// program's reaction.
	settings, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	require.NoError(t, err)
	settings.Lflag |= unix.NOFLSH
	require.NoError(t, unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, settings))
	term := &console{Cmd: exec.Command(wazaPath(t), args...), master: master, more: make(chan struct{}, 1), done: make(chan struct{})}
	term.resize(t, columns, rows)
	term.Env, term.Dir = env, variable(env, "PWD")
	term.Stdin, term.Stdout, term.Stderr = slave, slave, slave
	term.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, term.Start())
	t.Cleanup(func() { _ = term.Process.Kill() })
	go term.read()
	return term
}

func (s *console) read() {
	defer close(s.done)
	b := make([]byte, 4096)
	for {
		n, err := s.master.Read(b) // an error after the last program has closed the terminal
		s.mu.Lock()
		s.seen.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *console) resize(t *testing.T, columns, rows int) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}))
}

// shows waits until the program has printed the text, and returns all it has.
func (s *console) shows(t *testing.T, text string) string {
	t.Helper()
	for {
		s.mu.Lock()
		seen := s.seen.String()
		s.mu.Unlock()
		if strings.Contains(seen, text) {
			return seen
		}
		select {
		case <-s.more:
		case <-time.After(patience):
			require.Contains(t, seen, text, "the program does not print it")
		case <-s.done:
			require.Contains(t, s.seen.String(), text, "the program ended without")
			return s.seen.String()
		}
	}
}

func (s *console) types(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(s.master, text)
	require.NoError(t, err)
}

func (s *console) end(t *testing.T) (output string, code int) {
	t.Helper()
	within(t, "the program does not end", func() {
		_ = s.Wait()
		<-s.done
	})
	return s.seen.String(), s.ProcessState.ExitCode()
}

func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	term := onTerminal(t, h.env(), 80, 24, "run", h.suite)
	h.started(1)
	seen := term.shows(t, "trial 1 of 1")
	require.Contains(t, seen, terminal.HideCursor)
	require.Contains(t, seen, "0/2 trials")
	require.Contains(t, seen, "\x1b[2m")

	term.resize(t, 20, 10) // a block for 80 columns would wrap here
	term.shows(t, "trials  ")
	h.release()
	h.started(1)
	h.release()
	out, code := term.end(t)
	require.Equal(t, exit.Passed, code)
	after := out[strings.LastIndex(out, terminal.ShowCursor)+len(terminal.ShowCursor):]
	require.True(t, strings.HasPrefix(after, "\x1b[1mTask"), "the table follows the block at once: %q", after[:min(len(after), 60)])
	require.Contains(t, after, "2 of 2 tasks passed")
	require.NotContains(t, after, "\x1b[?")
}

func TestCtrlCOnATerminal(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	term := onTerminal(t, h.env(), 200, 24, "run", h.suite)
	h.started(1)
	term.shows(t, "trial 1 of 1")
	term.types(t, "\x03")
	term.shows(t, "waiting for 1 trial, at most ")
	term.types(t, "\x03")
	h.gone()
	out, code := term.end(t)
	require.Equal(t, exit.Interrupted, code)
	require.Greater(t, strings.LastIndex(out, terminal.ShowCursor), strings.LastIndex(out, terminal.HideCursor), "the cursor is back")
	require.Contains(t, out, "cancelled")
	require.Contains(t, out, "0 of 2 tasks passed")
}

func TestLeavingBringsTheCursorBack(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, `hooks: {after_run: [{command: 'exec 9>"$ALIVE"; echo started >&9; sleep 1000'}]}`)
	term := onTerminal(t, h.env(), 80, 24, "run", h.suite)
	h.started(1)
	term.shows(t, "trial 1 of 1")
	for _, text := range []string{"waiting for 1 trial", "cancelling running trials"} {
		term.types(t, "\x03")
		term.shows(t, text)
	}
	h.started(1)
	term.types(t, "\x03")
	out, code := term.end(t)
	require.Equal(t, exit.Interrupted, code)
	require.Greater(t, strings.LastIndex(out, terminal.ShowCursor), strings.LastIndex(out, terminal.HideCursor))
	h.gone()
}

// Without colors, the block is still drawn. A terminal that cannot move the cursor gets lines.
func TestTerminalsThatWantLess(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	term := onTerminal(t, append(h.env(), "NO_COLOR=1"), 80, 24, "run", h.suite, "--task", "first")
	h.started(1)
	term.shows(t, terminal.HideCursor)
	h.release()
	out, code := term.end(t)
	require.Equal(t, exit.Passed, code)
	require.NotRegexp(t, `\x1b\[\d+m`, out)

	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: demo
tasks: [{id: one, inputs: {prompt: hi}, graders: [{type: text, config: {contains: [Mock]}}]}]
`), 0o600))
	out, code = onTerminal(t, environment(t, "TERM=dumb"), 80, 24, "run", suite).end(t)
	require.Equal(t, exit.Passed, code)
	require.NotContains(t, out, "\x1b")
	require.Contains(t, out, "passed     1/1  one")
}

// On a terminal of 40 columns, lines of help are not longer, except commands for copying.
func TestHelpOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"run", "--help"}, {"compare", "--help"}} {
		out, code := onTerminal(t, environment(t), 40, 24, args...).end(t)
		require.Equal(t, exit.Passed, code)
		wide, code := onTerminal(t, environment(t), 200, 24, args...).end(t)
		require.Equal(t, exit.Passed, code)
		require.Equal(t, strings.Fields(wide), strings.Fields(out), "all words are printed")
		for line := range strings.Lines(out) {
			line = strings.TrimRight(line, "\r\n")
			if !strings.HasPrefix(line, "  waza ") {
				require.LessOrEqual(t, report.Columns(line), 40, line)
			}
		}
		for line := range strings.Lines(wide) {
			require.LessOrEqual(t, report.Columns(strings.TrimRight(line, "\r\n")), 100, line)
		}
	}
}

// A list contains the whole path of a suite, however narrow the terminal is.
func TestListOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(strings.Repeat("a-long-name/", 5), "eval.yaml")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, path),
		[]byte("name: demo\nconfig: {executor: mock}\ntasks: [{id: a, prompt: hi}]\n"), 0o644))
	out, code := onTerminal(t, environment(t), 40, 24, "list", dir).end(t)
	require.Equal(t, exit.Passed, code)
	require.Contains(t, out, path+"\r\n")
	require.Contains(t, out, "\x1b[1mExecutor\x1b[0m  mock\r\n")
}
