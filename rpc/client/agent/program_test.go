package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/client/agent"
	"waza/runner/executor/remote"
)

// doProgram executes an evaluation with a program, and returns its answer as JSON without the
// parts that differ in each run.
func doProgram(
	t *testing.T, shell string, wholeInput bool, e *remote.Evaluation,
) (answer map[string]any, fault *remote.Fault, statuses []string) {
	t.Helper()
	p, err := agent.NewProgram(shell, t.TempDir(), wholeInput)
	require.NoError(t, err)
	res, fault := p.Do(t.Context(), e, func(message string) { statuses = append(statuses, message) })
	if fault != nil {
		return nil, fault, statuses
	}
	b, err := json.Marshal(res)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &answer))
	delete(answer, "executionTime")
	return answer, nil, statuses
}

func TestProgram(t *testing.T) {
	t.Parallel()
	e := &remote.Evaluation{
		ID: "r/a/1/1", Tool: "chat", URL: "https://example.org", Input: json.RawMessage(`{"message":"hi"}`),
		Model: json.RawMessage(`{"main_model":"m"}`),
	}
	answer, fault, statuses := doProgram(t, `read line; echo "got $line"
echo '{"type":"tool_call","name":"bash","arguments":{"c":"ls"},"result":"x","duration_ms":7,"status":"ok"}' >&3
echo '{"type":"log","text":"half way"}' >&3
echo '{"type":"usage","input_tokens":3,"output_tokens":4,"cost_usd":0.5}' >&3
echo $WAZA_TOOL $WAZA_URL $WAZA_MODEL $WAZA_EVALUATION_ID`, false, e)
	require.Nil(t, fault)
	call := answer["toolCalls"].([]any)[0].(map[string]any)
	_, err := time.Parse(time.RFC3339, call["timestamp"].(string))
	require.NoError(t, err)
	delete(call, "timestamp")
	require.Equal(t, map[string]any{
		"status": "success", "output": "got hi\nchat https://example.org m r/a/1/1",
		"usage":     map[string]any{"inputTokens": 3.0, "outputTokens": 4.0, "costUsd": 0.5},
		"toolCalls": []any{map[string]any{"tool": "bash", "args": map[string]any{"c": "ls"}, "result": "x", "duration": 7.0, "status": "ok"}},
	}, answer)
	require.Equal(t, []string{"half way"}, statuses)

	for input, want := range map[string]string{`"text"`: "text", `{"x":1}`: `{"x":1}`, `[1]`: `[1]`, `{"message":7}`: `{"message":7}`} {
		answer, _, _ = doProgram(t, "cat", false, &remote.Evaluation{ID: "a", Input: json.RawMessage(input)})
		require.Equal(t, want, answer["output"])
	}
	answer, _, _ = doProgram(t, "cat", true, e)
	var got remote.Evaluation
	require.NoError(t, json.Unmarshal([]byte(answer["output"].(string)), &got))
	require.Equal(t, e.ID, got.ID)
	require.JSONEq(t, string(e.Input), string(got.Input))
}

func TestProgramFails(t *testing.T) {
	t.Parallel()
	_, fault, _ := doProgram(t, "echo oh no >&2; exit 3", false, &remote.Evaluation{ID: "a", Tool: "chat", Input: json.RawMessage(`""`)})
	require.EqualValues(t, remote.CodeToolFailed, fault.Code)
	require.Equal(t, "Tool execution failed", fault.Message)
	var data map[string]string
	require.NoError(t, json.Unmarshal(fault.Data, &data))
	require.Equal(t, "chat", data["tool"])
	require.Contains(t, data["error"], "exit status 3: oh no")
}

// All processes that a program started end at its timeout.
func TestProgramAndItsChildrenEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := agent.NewProgram(`sleep 1000 & echo $! >pid; wait`, dir, false)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(dir, "pid")
	done := make(chan *remote.Fault, 1)
	go func() {
		_, fault := p.Do(ctx, &remote.Evaluation{ID: "a", Input: json.RawMessage(`""`)}, func(string) {})
		done <- fault
	}()
	var pid string
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(started)
		pid = string(b)
		return err == nil && len(b) > 1 && b[len(b)-1] == '\n'
	}, 30*time.Second, time.Millisecond)
	cancel()
	require.NotNil(t, <-done)
	stat, err := os.ReadFile("/proc/" + pid[:len(pid)-1] + "/stat")
	if err == nil {
		require.Contains(t, string(stat), ") Z ", "process is still running")
	}
}

// A large answer loses the parts that servers would reject.
func TestLargeAnswerFits(t *testing.T) {
	t.Parallel()
	answer, fault, _ := doProgram(t, `i=0; while [ $i -lt 9 ]; do
printf '{"type":"tool_call","name":"t","result":"' >&3; head -c 900000 /dev/zero | tr '\0' x >&3; echo '"}' >&3
i=$((i+1)); done; echo done`, false, &remote.Evaluation{ID: "a", Input: json.RawMessage(`""`)})
	require.Nil(t, fault)
	require.Equal(t, "done", answer["output"])
	calls := answer["toolCalls"].([]any)
	require.Len(t, calls, 9)
	require.NotContains(t, calls[0], "result")
}
