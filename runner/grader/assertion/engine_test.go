package assertion

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stuck holds assertions that stay within one operation of the engine and take time or memory
// without bound. Nothing can interrupt such an operation.
var stuck = map[string]string{
	"backreference":   `/(x+x+)+\1y/.test("x".repeat(40))`,
	"replace":         `"x".repeat(1 << 24).replace(/x/g, "y".repeat(1 << 24)).length`,
	"replace at once": `"x".repeat(1 << 24).replaceAll("x", "y".repeat(1 << 24)).length`,
	"join":            `new Array(1 << 24).join("y".repeat(1 << 24)).length`,
	"sort":            `(() => { const a = Array.from({length: 1 << 24}); for (;;) a.sort(() => 1) })()`,
	"growing array":   `(() => { const a = [], block = "y".repeat(1 << 20); for (;;) a.push(block + a.length) })()`,
	"growing text":    `(() => { let s = "y"; for (;;) s += s + "é" })()`,
	"endless jobs":    `(async () => { for (;;) await null })()`,
	"large text":      `"x".repeat(1e9).length`,
	"large buffer":    `new ArrayBuffer(1e12)`,
	"large array":     `new Array(4e9).fill(0).length`,
	"deep recursion":  `JSON.stringify((() => { let a = []; for (let i = 0; i < 1e7; i++) a = [a]; return a })())`,
}

// An assertion that was stuck in one operation used a processor, and gigabytes of memory, long
// after its time was up, because it ran in the process of waza. Now waza kills its worker and
// evaluates the next assertions in another one.
func TestAttackStuckInOneOperation(t *testing.T) {
	t.Parallel()
	timeout := 20 * time.Second // they take as much memory as they can get
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		timeout = 300 * time.Millisecond
	case "ci":
		timeout = 3 * time.Second
	}
	for name, source := range stuck {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, JavaScript(), 1)
			w, err := p.acquire(t.Context())
			require.NoError(t, err)
			pid := w.process.Pid()
			p.release(w)
			complaints, err := grade(p, timeout, source)
			require.NoError(t, err)
			require.Regexp(t, "^(timed out after |it crashed the interpreter: |the engine failed: )", complaints[0])
			if !strings.HasPrefix(complaints[0], "the engine failed") {
				require.False(t, alive(pid), "%s is still running", complaints[0])
			}
			complaints, err = grade(p, patience, "output === 'x'")
			require.NoError(t, err)
			require.Equal(t, []string{""}, complaints)
		})
	}
}

// An assertion that takes too much memory ends before its time is up.
func TestAttackMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"growing array", "large text", "large buffer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complaints, err := grade(newPool(t, JavaScript(), 1), patience, stuck[name], "true")
			require.NoError(t, err)
			// A process dies in many ways when the system refuses it memory.
			require.Regexp(t, "^it crashed the interpreter: .+", complaints[0])
			require.Empty(t, complaints[1])
		})
	}
}

// A worker reaches its limit of processor time and ends even after its waza was killed and
// nobody watches the time.
func TestAttackProcessorTimeLimit(t *testing.T) {
	t.Parallel()
	if os.Getenv("WAZA_TEST_CRASH") == "" {
		t.Skip("takes seconds of processor time; set WAZA_TEST_CRASH=1")
	}
	for name, l := range languages(t) {
		p := newPool(t, l.Language, 1)
		_, err := grade(p, patience, l.good) // finds the program
		require.NoError(t, err)
		cmd := exec.Command(p.program)
		cmd.Args, cmd.Env = l.args(p.program), l.env()
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, json.NewEncoder(in).Encode(request{Subject: map[string]any{}, Assertions: []string{l.endless}, CPUSeconds: 1}))
		in.Close()
		err = cmd.Wait()
		require.Error(t, err, name)
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		require.True(t, status.Exited() || status.Signal() == syscall.SIGXCPU, "%s: %v", name, err)
	}
}

// A program that embeds the runner and does not call Main would run again with its usual effects
// if waza started it as a worker.
func TestProgramThatCannotBeWorker(t *testing.T) {
	mainCalled.Store(false)
	defer mainCalled.Store(true)
	_, err := grade(newPool(t, JavaScript(), 1), patience, "true")
	require.ErrorContains(t, err, "call assertion.Main at the start of main")
	var unavailable *UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.EqualError(t, JavaScriptUnavailable(), err.Error())
}

// CheckJavaScript never crashes the process of waza: for any text it returns nil or a fault
// within the text.
func FuzzCheckJavaScript(f *testing.F) {
	for _, source := range []string{
		"true", "", "(", "output.length >", "\n\n)", "/[/", "`${", "(?!", "a => {", "\xff",
		strings.Repeat("(a=>(", 100), "1;" + strings.Repeat("[", 200),
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		fault := CheckJavaScript(source)
		if fault == nil {
			return
		}
		require.NotEmpty(t, fault.Message)
		require.LessOrEqual(t, fault.Line,
			strings.Count(source, "\n")+strings.Count(source, "\r")+strings.Count(source, "\u2028")+strings.Count(source, "\u2029")+1)
	})
}
