//go:build unix

package acp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// BenchmarkRun runs 50 trials on one agent whose own work takes a known time. The rest of the
// time is the overhead of waza, including agent starts.
func BenchmarkRun(b *testing.B) {
	const trials, workers = 50, 2
	for _, work := range []time.Duration{0, 20 * time.Millisecond} {
		b.Run(fmt.Sprintf("agent=%v", work), func(b *testing.B) {
			var own, took time.Duration
			started := 0
			for b.Loop() {
				res := run(b, setup{config: fmt.Sprintf("  sandbox: off\n  trials_per_task: %d\n  parallel: true\n  workers: %d\n", trials, workers)},
					fmt.Sprintf("tasks: [{id: a, prompt: work %d}]\n", work.Milliseconds()))
				require.Equal(b, trials, res.Summary.Trials.Passed)
				took += time.Duration(res.Summary.DurationMS) * time.Millisecond
				own += ownTime(b, res)
				started += starts(b, res.starts)
			}
			n := float64(b.N * trials)
			trial, agent := float64(took*workers)/n, float64(own)/n
			b.ReportMetric(trial/1e6, "ms/trial")
			b.ReportMetric(agent/1e6, "agent-ms/trial")
			b.ReportMetric((trial-agent)/1e6, "waza-ms/trial")
			b.ReportMetric(float64(started)/float64(b.N), "starts/run")
			b.ReportMetric(0, "ns/op") // the time of a whole run is not meaningful
		})
	}
}

// BenchmarkWarm measures what a trial costs on an agent that runs already and answers at once: the
// difference between a long run and a short one. The floor is the same exchange of lines with the
// same agent: a session, a prompt and the end of the session.
func BenchmarkWarm(b *testing.B) {
	const short, more, workers = 10, 400, 1
	trials := func(n int) (took, spent time.Duration) {
		before := processorTime(b)
		res := run(b, setup{config: fmt.Sprintf("  sandbox: off\n  trials_per_task: %d\n  workers: %d\n", n, workers)}, "tasks: [{id: a, prompt: work 0}]\n")
		require.Equal(b, n, res.Summary.Trials.Passed)
		return time.Duration(res.Summary.DurationMS) * time.Millisecond, processorTime(b) - before
	}
	var took, spent, floor, floorSpent time.Duration
	for b.Loop() {
		t0, s0 := trials(short)
		t1, s1 := trials(short + more)
		took, spent = took+t1-t0, spent+s1-s0
		_, s0 = exchange(b, short)
		t1, s1 = exchange(b, short+more)
		floor, floorSpent = floor+t1*more/(short+more), floorSpent+s1-s0
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(more*b.N) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(took), "ms/trial")
	b.ReportMetric(ms(floor), "ms/exchange")
	b.ReportMetric(ms(took-floor), "waza-ms/trial")
	b.ReportMetric(ms(spent-floorSpent), "waza-cpu-ms/trial")
}

// exchange sends the lines of n trials to a fake agent, each after the answer to the one before.
// It returns the time that this takes, and that of processors, which includes the agent's start.
func exchange(b *testing.B, n int) (took, spent time.Duration) {
	exe, err := os.Executable()
	require.NoError(b, err)
	before := processorTime(b)
	agent := exec.Command(exe)
	agent.Env = append(os.Environ(), "FAKE_AGENT=1")
	in, err := agent.StdinPipe()
	require.NoError(b, err)
	out, err := agent.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, agent.Start())
	lines, id := bufio.NewScanner(out), 0
	ask := func(method, params string) {
		id++
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for lines.Scan() && !bytes.Contains(lines.Bytes(), fmt.Appendf(nil, `"id":%d`, id)) { // updates
		}
	}
	ask("initialize", `{"protocolVersion":1}`)
	start := time.Now()
	for num := 1; num <= n; num++ {
		ask("session/new", `{"cwd":"/","mcpServers":[]}`)
		session := fmt.Sprintf(`"sessionId":"s%d"`, num)
		ask("session/prompt", `{`+session+`,"prompt":[{"type":"text","text":"work 0"}]}`)
		ask("session/close", `{`+session+`}`)
	}
	took = time.Since(start)
	require.NoError(b, in.Close())
	require.NoError(b, agent.Wait())
	return took, processorTime(b) - before
}

// processorTime returns the time that processors have spent for this process and its children that
// have ended.
func processorTime(b *testing.B) time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// ownTime returns the working time that the fake agent reports.
func ownTime(t testing.TB, res *ran) time.Duration {
	var sum time.Duration
	for _, task := range res.Tasks {
		for _, trial := range task.Trials {
			require.Equal(t, record.Passed, trial.Verdict)
			us, err := strconv.Atoi(trial.Output)
			require.NoError(t, err)
			sum += time.Duration(us) * time.Microsecond
		}
	}
	return sum
}
