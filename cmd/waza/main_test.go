package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"waza/runner/grader/assertion"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect, and the generated documents")

// TestMain makes waza a command of scripts and of tests that start it: this
// binary, under that name, is the program.
func TestMain(m *testing.M) {
	assertion.Main()
	os.Setenv("GORACE", raceOptions(os.Getenv("GORACE")))
	testscript.Main(m, map[string]func(){"waza": main})
}

// raceOptions keeps programs that were built with the race detector from
// sleeping for a second before they exit, which added up to minutes.
func raceOptions(given string) string {
	if strings.Contains(given, "atexit_sleep_ms") {
		return given
	}
	return strings.TrimSpace(given + " atexit_sleep_ms=0")
}

// patience is how long a test waits for what must come. It is long because
// machines are busy, and there at all so that a test which waits in vain says so
// and does not keep all others until the time is up.
const patience = 3 * time.Minute

// within bounds waiting for something that must come: it fails the test when
// wait does not return in time.
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

// TestScript runs the scripts of testdata/script. Beside the usual commands
// they have:
//
//	code N program args...    the program must end with that exit code
//	jsonline N path value     what stands at a path of the nth JSON document of stdout
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("WAZA_STATE", e.WorkDir+"/.state")
			e.Setenv("TERM", "xterm")
			e.Setenv("GORACE", os.Getenv("GORACE"))
			for _, name := range []string{"NO_COLOR", "CLICOLOR_FORCE"} {
				e.Setenv(name, "")
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     exitCodeCmd,
			"jsonline": jsonLineCmd,
			"lines":    linesCmd,
		},
	})
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

// linesCmd checks how many lines a file has: what a program appends a line to
// tells how often it ran.
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

// wazaPath is the program, as TestMain has put it on PATH.
func wazaPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("waza")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is this process's, with the given variables and a state
// directory of the test's own.
func environment(t *testing.T, more ...string) []string {
	t.Helper()
	env := append(os.Environ(), "WAZA_STATE="+t.TempDir(), "TERM=xterm", "NO_COLOR=", "CLICOLOR_FORCE=")
	return append(env, more...)
}

// freeAddress is a loopback address that was free a moment ago: a server that is
// started again needs the one it had. Systems give ports from 32768 on to clients, which
// could take one while no server has it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err == nil {
			l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}
