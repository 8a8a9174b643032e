package replay_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A worker started its next trial while the previous one was not recorded yet. When the process
// was killed then, trials that had ended and were paid for were lost.
func TestAttackTrialsAreRecordedBeforeTheNext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := strings.Repeat("0123456789abcdef", 1<<16)
	var done atomic.Int64
	r := runnertest.AgentRunner(t, dir, func(_ context.Context, tr *executor.Trial) (string, error) {
		files, err := os.ReadDir(dir + "/runs")
		if err != nil {
			return "", err
		}
		b, err := os.ReadFile(journalFile(dir, files[0].Name()))
		if err != nil {
			return "", err
		}
		if n := bytes.Count(b, []byte(`"type":"trial_complete"`)); int64(n) == done.Load() {
			done.Add(1)
		}
		return large[tr.Num:], nil
	})
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: large
config: {executor: agent, trials_per_task: 40, workers: 1}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	<-live.Done()
	require.EqualValues(t, 40, done.Load(), "the first trials found those before them in the journal")
}
