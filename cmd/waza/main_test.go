package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"waza/runner/grader/assertion"
	"waza/runner/mcptools"
	"waza/runner/proc/proctest"
	"waza/runner/sandbox"
	"waza/runner/sandbox/sandboxtest"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect, and the generated documents")

// repositoryRoot is the root of the repository, relative to this package.
const repositoryRoot = "../.."

// TestMain puts waza on PATH for scripts and tests.
func TestMain(m *testing.M) {
	assertion.Main()
	mcptools.Main()
	sandbox.Main()
	syscall.Umask(0o077) // waza warns about a state directory that other users can enter
	os.Exit(proctest.WithWaza(m.Run))
}

// patience limits how long a test waits for an event. It is long because machines can be busy.
// It exists so that a test that waits in vain fails by itself, before the time of all tests is
// up.
const patience = 3 * time.Minute

// within calls wait, and fails the test when wait does not return in time.
func within(t *testing.T, what string, wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
	}
}

// TestScript runs the scripts of testdata/script. They have these additional commands:
//
//	code N program args...    the program must end with that exit code
//	jsonline N path value     the value at a path of the nth JSON document of stdout
//	until REGEXP program args...  repeats the program until its output matches
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata/script"))
}

// TestAttackScript runs the scripts of testdata/attack, which attack waza, like TestScript.
func TestAttackScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata/attack"))
}

// TestPodmanScript runs the scripts of testdata/podman with a real podman, which takes minutes. make test-podman runs it. It
// is skipped where podman does not run.
func TestPodmanScript(t *testing.T) {
	if os.Getenv("WAZA_TEST_PODMAN") == "" {
		t.Skip("skipped: it takes minutes; make test-podman runs it")
	}
	variables, err := sandboxtest.Podman(t.TempDir())
	if err != nil {
		t.Skip("skipped: podman runs no containers here: ", err)
	}
	t.Cleanup(func() { // a failed script can leave containers, whose mounts are in the directory
		cmd := exec.Command("podman", "rm", "--all", "--force")
		cmd.Env = append(os.Environ(), variables...)
		_ = cmd.Run()
	})
	p := scripts("testdata/podman")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Vars = append(e.Vars, variables...)
		return setup(e)
	}
	testscript.Run(t, p)
}

// scripts returns the parameters for scripts in a directory.
func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("WAZA_STATE", e.WorkDir+"/.state")
			e.Setenv("TERM", "xterm")
			engine, err := filepath.Abs("../../runner/sandbox/internal/container/testdata/engine")
			if err != nil {
				return err
			}
			e.Setenv("ENGINE", engine)
			for _, name := range []string{"NO_COLOR", "CLICOLOR_FORCE"} {
				e.Setenv(name, "")
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "sandbox": // the strongest tier
				return sandbox.Detect().Strict() == nil, nil
			case "container": // the stand-in for docker can run programs
				return os.Geteuid() == 0 && exec.Command("unshare", "--mount", "--propagation", "private", "true").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     exitCodeCmd,
			"jsonline": jsonLineCmd,
			"lines":    linesCmd,
			"until":    untilCmd,
		},
	}
}

func exitCodeCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ee *exec.ExitError
		if !errors.As(err, &ee) {
			ts.Fatalf("%v", err)
		}
		got = ee.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// untilCmd repeats a program until its output matches, to wait for background processes.
func untilCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP program args...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("waited in vain for %s; the last answer: %s (%v)", args[0], ts.ReadFile("stdout"), err)
		}
	}
}

// linesCmd checks the number of lines of a file. A program that appends a line per run counts
// its runs this way.
func linesCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: lines FILE N")
	}
	text := ts.ReadFile(args[0])
	if got := fmt.Sprint(strings.Count(text, "\n")); got != args[1] {
		ts.Fatalf("%s has %s lines, not %s:\n%s", args[0], got, args[1], text)
	}
}

func jsonLineCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: jsonline N path value")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var doc any
	for range n {
		doc = nil
		ts.Check(dec.Decode(&doc))
	}
	got := fmt.Sprint(lookup(doc, args[1]))
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %s", args[1], got)
	}
}

// lookup follows a path such as tasks.0.id; len is the length of a list.
func lookup(doc any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch d := doc.(type) {
		case map[string]any:
			v, ok := d[key]
			if !ok {
				return "absent"
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(key)
			switch {
			case key == "len":
				doc = len(d)
			case err != nil || i >= len(d):
				return "absent"
			default:
				doc = d[i]
			}
		default:
			return "absent"
		}
	}
	return doc
}

// wazaPath returns the program that TestMain put on PATH.
func wazaPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("waza")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment returns the environment of a program, see [proctest.Environment].
func environment(t *testing.T, more ...string) []string {
	t.Helper()
	return proctest.Environment(t, more...)
}
