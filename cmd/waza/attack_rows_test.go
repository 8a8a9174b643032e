//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/sandbox"
)

// The suite testdata/hostile has an agent for everything that hostile agents could once do: read
// secrets, change files, graders, modules and the journal, end waza, and leave processes. In
// a sandbox none has an effect, and only the honest task beside them passes, for root and for
// another user.
//
// make test-crash, which sets WAZA_TEST_CRASH, repeats it.
func TestAttackRows(t *testing.T) {
	t.Parallel()
	testRows(t, 1)
}

// The long version of TestAttackRows, with many trials side by side.
func TestCrashRows(t *testing.T) {
	t.Parallel()
	trials := 10
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		t.Skip("TestAttackRows is the short version")
	case "ci":
		trials = 3
	}
	testRows(t, trials)
}

func testRows(t *testing.T, trials int) {
	t.Helper()
	if err := sandbox.Detect().Strict(); err != nil {
		t.Skip(err)
	}
	for _, mode := range []string{"strict", "auto"} {
		for _, user := range []struct {
			name string
			id   int
		}{{"this user", os.Geteuid()}, {"another user", 61234}} {
			t.Run(mode+" as "+user.name, func(t *testing.T) {
				t.Parallel()
				if user.id != os.Geteuid() && os.Geteuid() != 0 {
					t.Skip("only root can become another user")
				}
				r := newRows(t, user.id)
				r.check(r.run(mode, trials))
			})
		}
	}
}

// rows is a suite of hostile agents and what they want.
type rows struct {
	*testing.T
	dir   string
	user  int
	token string // identifies processes of its agents
}

// The user of rows may have no access to the directories of t.
func newRows(t *testing.T, user int) *rows {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "waza-rows-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rows{t, dir, user, strconv.FormatInt(time.Now().UnixNano(), 10)}
	require.NoError(t, os.CopyFS(filepath.Join(dir, "suite"), os.DirFS("../../testdata/hostile")))
	// Its name keeps tests of all suites from running it without a sandbox.
	require.NoError(t, os.Rename(filepath.Join(dir, "suite/suite.yaml"), filepath.Join(dir, "suite/eval.yaml")))
	program, err := os.ReadFile(wazaPath(t))
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"bin/waza": program, "home/.ssh/id": []byte("SECRET-key\n"), "outside/file": []byte("untouched\n"), "state/.keep": nil,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o700))
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, user, user)
	}))
	return r
}

// command returns a call of waza by the user.
func (r *rows) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(r.dir, "bin", "waza"), args...)
	cmd.Dir = filepath.Join(r.dir, "suite")
	cmd.Env = append(environment(r.T), "HOME="+filepath.Join(r.dir, "home"), "WAZA_STATE="+filepath.Join(r.dir, "state"),
		"TMPDIR=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin", "ROWS="+r.dir, "TOKEN="+r.token, "PWD="+cmd.Dir)
	if r.user != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.user), Gid: uint32(r.user)}}
	}
	return cmd
}

// rowsResult is the part of a result that the test reads.
type rowsResult struct {
	Tasks []struct {
		ID     string
		Trials []struct {
			Verdict string
			Output  string
			Graders []struct{ Feedback string }
		}
	}
}

// run runs the suite, and returns its result and everything that waza printed.
func (r *rows) run(mode string, trials int) (rowsResult, string) {
	r.Helper()
	cmd := r.command("run", "--json", "--sandbox", mode, "--trials", strconv.Itoa(trials), "eval.yaml")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	_ = cmd.Run()
	require.Equal(r, exit.Failed, cmd.ProcessState.ExitCode(), "%s\n%s", &errors, &out)
	var result rowsResult
	require.NoError(r, json.Unmarshal(out.Bytes(), &result))
	return result, out.String() + errors.String()
}

func (r *rows) check(result rowsResult, printed string) {
	r.Helper()
	require.Len(r, result.Tasks, 20)
	for _, task := range result.Tasks {
		for _, trial := range task.Trials {
			switch task.ID {
			case "honest":
				require.Equal(r, "passed", trial.Verdict, "%+v", trial)
			case "invent-calls":
				require.Contains(r, trial.Graders[0].Feedback+fmt.Sprint(trial.Graders), "self-reported", "%+v", trial)
			default:
				require.NotEqual(r, "passed", trial.Verdict, "%s: %+v", task.ID, trial)
			}
		}
	}
	require.NotContains(r, printed, "effect: ")
	require.NoError(r, filepath.WalkDir(filepath.Join(r.dir, "state"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotContains(r, string(text), "SECRET", path)
		require.NotContains(r, string(text), "effect: ", path)
		return err
	}))
	for name, want := range map[string]string{"home/.ssh/id": "SECRET-key\n", "outside/file": "untouched\n", "suite/check.sh": "", "suite/answers.txt": ""} {
		if file, ok := strings.CutPrefix(name, "suite/"); ok {
			text, err := os.ReadFile(filepath.Join("../../testdata/hostile", file))
			require.NoError(r, err)
			want = string(text)
		}
		text, err := os.ReadFile(filepath.Join(r.dir, name))
		require.NoError(r, err)
		require.Equal(r, want, string(text), name)
	}
	for _, name := range []string{"outside/new", "suite/new", "state/new", "home/new", "/usr/rows-new", "/etc/rows-new", "/rows-new", "/var/rows-new"} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(r.dir, name)
		}
		require.NoFileExists(r, name)
	}
	require.Empty(r, r.processes())
	left, err := filepath.Glob(filepath.Join(r.dir, "state", "work", "*"))
	require.NoError(r, err)
	require.Empty(r, left)
}

// processes lists the arguments of the processes that the agents left.
func (r *rows) processes() (list []string) {
	r.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(r, err)
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(r.token)) {
			list = append(list, string(text))
		}
	}
	return list
}
