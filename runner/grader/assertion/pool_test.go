package assertion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Main()
	goleak.VerifyTestMain(m)
}

// patience is the time limit of an assertion that should end by itself. It is long because
// machines are busy.
const patience = 3 * time.Minute

// languages returns the languages that this machine can test, each with a true assertion and
// some that never end.
func languages(t testing.TB) map[string]testLanguage {
	t.Helper()
	all := map[string]testLanguage{"JavaScript": {JavaScript(), "true", "for (;;);"}}
	if _, err := FindPython(""); err != nil {
		t.Log(err)
		return all
	}
	all["Python"] = testLanguage{Python(""), "True", "any(iter(int, 1))"}
	return all
}

type testLanguage struct {
	*Language
	good, endless string
}

// each runs a test in every language.
func each(t *testing.T, test func(t *testing.T, l testLanguage)) {
	t.Helper()
	for name, l := range languages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

func newPool(t testing.TB, l *Language, size int) *Pool {
	t.Helper()
	p := NewPool(l, size)
	t.Cleanup(p.Close)
	return p
}

func grade(p *Pool, timeout time.Duration, assertions ...string) ([]string, error) {
	return p.Grade(context.Background(), json.RawMessage(`{"output": "x"}`), assertions, timeout)
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// No worker outlives its pool, not even one that is evaluating.
func TestWorkersEndWithPool(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l testLanguage) {
		p := newPool(t, l.Language, 2)
		w, err := p.acquire(t.Context())
		require.NoError(t, err)
		idle, err := p.acquire(t.Context())
		require.NoError(t, err)
		p.release(idle)
		p.Close()
		require.False(t, alive(idle.process.Pid()))
		require.True(t, alive(w.process.Pid()))
		p.release(w)
		require.False(t, alive(w.process.Pid()))
		_, err = p.acquire(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		p.Close()
	})
}

// Workers stay between assertions, and their number never exceeds the slots.
func TestWorkersStay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l testLanguage) {
		p := newPool(t, l.Language, 1)
		var pids []int
		for range 3 {
			complaints, err := grade(p, patience, l.good, l.good)
			require.NoError(t, err)
			require.Equal(t, []string{"", ""}, complaints)
			require.Len(t, p.idle, 1)
			pids = append(pids, p.idle[0].process.Pid())
		}
		require.Equal(t, []int{pids[0], pids[0], pids[0]}, pids)
	})
}

// A worker that waza kills during one assertion is replaced for the next.
func TestWorkersAreReplaced(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l testLanguage) {
		p := newPool(t, l.Language, 1)
		_, err := grade(p, patience, l.good)
		require.NoError(t, err)
		first := p.idle[0].process.Pid()
		// A busy machine can need long for the other assertions, too.
		var complaints []string
		for _, timeout := range []time.Duration{300 * time.Millisecond, 3 * time.Second, time.Minute} {
			complaints, err = grade(p, timeout, l.good, l.endless, l.good)
			require.NoError(t, err)
			require.Equal(t, "timed out after "+timeout.String(), complaints[1])
			if complaints[0]+complaints[2] == "" {
				break
			}
		}
		require.Empty(t, complaints[0]+complaints[2])
		require.False(t, alive(first))
		require.NotEqual(t, first, p.idle[0].process.Pid())
	})
}

// When somebody else killed a worker, its assertion failed, or the next trial kept waiting. Now
// Grade returns an error.
func TestWorkerKilledByOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l testLanguage) {
		p := newPool(t, l.Language, 1)
		_, err := grade(p, patience, l.good)
		require.NoError(t, err)
		idle := p.idle[0]
		require.NoError(t, syscall.Kill(idle.process.Pid(), syscall.SIGKILL))
		<-idle.process.Done()
		complaints, err := grade(p, patience, l.good)
		require.NoError(t, err)
		require.Equal(t, []string{""}, complaints)

		w, err := p.acquire(t.Context())
		require.NoError(t, err)
		defer p.discard(w)
		require.NoError(t, syscall.Kill(w.process.Pid(), syscall.SIGKILL))
		failed := w.grade(t.Context(), json.RawMessage(`{}`), []string{l.endless}, patience, func(string) {})
		_, err = w.explainExit(t.Context(), failed, patience)
		require.EqualError(t, err, "the "+l.name+" interpreter was ended by signal SIGKILL, not by waza")
	})
}

func TestGradeCancelled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l testLanguage) {
		p := newPool(t, l.Language, 1)
		stopped := errors.New("stopped by the test")
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(50*time.Millisecond, func() { cancel(stopped) })
		defer timer.Stop()
		_, err := p.Grade(ctx, json.RawMessage(`{}`), []string{l.endless}, patience)
		require.ErrorIs(t, err, stopped)
	})
}

// Workers inherited everything from waza: variables that hold keys, and open file descriptors.
func TestAttackWorkersInheritNothing(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("this system does not show what a process inherited")
	}
	t.Setenv("WAZA_TEST_API_KEY", "sk-of-nobodys-business")
	t.Setenv(markPrefix+"TEST", "1")
	open := filepath.Join(t.TempDir(), "open")
	fd, err := unix.Open(open, unix.O_CREAT|unix.O_RDWR, 0o600) // stays open over exec
	require.NoError(t, err)
	defer unix.Close(fd)
	for name, l := range languages(t) {
		p := newPool(t, l.Language, 1)
		_, err := grade(p, patience, l.good)
		require.NoError(t, err)
		proc := fmt.Sprintf("/proc/%d/", p.idle[0].process.Pid())
		environ, err := os.ReadFile(proc + "environ")
		require.NoError(t, err)
		require.NotContains(t, string(environ), "sk-of-nobodys-business", name)
		require.Contains(t, string(environ), markPrefix+"TEST=1", "the caller of waza must find leftover processes")
		fds, err := os.ReadDir(proc + "fd")
		require.NoError(t, err)
		for _, e := range fds {
			target, _ := os.Readlink(proc + "fd/" + e.Name())
			require.NotEqual(t, open, target, name)
		}
		limits, err := os.ReadFile(proc + "limits")
		require.NoError(t, err)
		require.Regexp(t, `Max core file size +0 `, string(limits), name)
		require.Regexp(t, `Max file size +0 `, string(limits), name)
		require.Regexp(t, `Max cpu time +\d+ `, string(limits), name)
		if name == "Python" || !raceDetector {
			require.Regexp(t, `Max (data size|address space) +\d{9,10} `, string(limits), name)
		}
	}
}

// Grade handles a request that the process cannot read, and one that is larger than any pipe.
func TestSubjects(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l testLanguage) {
		p := newPool(t, l.Language, 1)
		ctx := t.Context()
		large := json.RawMessage(`{"output": "` + strings.Repeat("é", 500_000) + `"}`)
		complaints, err := p.Grade(ctx, large, []string{l.good, "output > ''"}, patience)
		require.NoError(t, err)
		require.Equal(t, []string{"", ""}, complaints)
		deep := json.RawMessage(`{"output": ` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`)
		_, err = p.Grade(ctx, deep, []string{"output"}, patience)
		require.ErrorContains(t, err, "cannot read the trial: ")
		_, err = p.Grade(ctx, json.RawMessage(`{}`), []string{l.good}, patience)
		require.NoError(t, err)
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l testLanguage) {
		p := newPool(t, l.Language, 1)
		faults, err := p.Check(t.Context(), []string{l.good, "f(x", "\n\n)"})
		require.NoError(t, err)
		require.Len(t, faults, 3)
		require.Nil(t, faults[0])
		require.Equal(t, 1, faults[1].Line)
		require.Equal(t, 3, faults[2].Line)
	})
}
