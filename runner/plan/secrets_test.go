package plan_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// A program has keys in its environment, from the suite, its task and an MCP server, and prints
// them in every possible way. Only graders see them.
func TestNoKeyOfAProgramLeftBehind(t *testing.T) {
	t.Parallel()
	const suiteKey, taskKey, serverKey, slashed = "sk-suite-0123456789", "hunter2\"<correct>", "srv-9876543210", "/aws/like+key/0123"
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := runnertest.Start(t, r, fmt.Sprintf(`
-- eval.yaml --
name: leaks
config:
  executor: command
  command: [sh, agent.sh]
  env: {SUITE_API_KEY: %s, AWS_SECRET_ACCESS_KEY: %s, PLAIN: visible}
  mcp_servers:
    a: {url: 'http://127.0.0.1:1', headers: {Authorization: Bearer %s}}
graders:
  - {name: sees, type: text, config: {contains: [%s]}}
  - {name: prints, type: program, config: {command: sh, args: [-c, 'echo "task password $DB_PASSWORD"; exit 1']}}
tasks:
  - {id: a, inputs: {prompt: x, environment: {DB_PASSWORD: '%s'}}}
  - {id: b, inputs: {prompt: fail, environment: {DB_PASSWORD: '%s'}}}
-- agent.sh --
quoted=$(printf '%%s' "$DB_PASSWORD" | sed 's/"/\\"/')
echo '{"type":"tool_call","name":"bash","arguments":{"'$SUITE_API_KEY'":["'$SUITE_API_KEY'"]},"result":"{\"k\":\"'$SUITE_API_KEY'\"}"}' >&3
echo '{"type":"thought","text":"I know '$SUITE_API_KEY'"}' >&3
echo '{"type":"error","text":"'"$quoted"'"}' >&3
echo '{"type":"log","text":"log '$SUITE_API_KEY'"}' >&3
echo '{"type":"message","text":"'$(printf %%s "$AWS_SECRET_ACCESS_KEY" | sed 's|/|\\/|g')'"}' >&3
echo "out $SUITE_API_KEY $PLAIN $(printf '%%s' "$SUITE_API_KEY" | base64)"
echo "file $SUITE_API_KEY" > left.txt
ln -s "$SUITE_API_KEY" link
echo "err $SUITE_API_KEY $DB_PASSWORD" >&2
test "$(cat)" != fail
`, suiteKey, slashed, serverKey, suiteKey, taskKey, taskKey), record.Request{})
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	all := runnertest.Recorded(t, state, suiteKey, "hunter2", serverKey, slashed, `\/aws\/like`,
		base64.StdEncoding.EncodeToString([]byte(suiteKey)))
	require.Contains(t, all, "out [redacted] visible [redacted]")
	require.Contains(t, all, "task password [redacted]")
	require.Contains(t, all, "log [redacted]")
	require.Contains(t, all, "exit status 1: err [redacted] [redacted]")
	require.NotContains(t, fmt.Sprintf("%+v", live.Record()), serverKey)
	trials := 0
	for _, e := range events {
		if e.Trial == nil {
			continue
		}
		trials++
		require.NotContains(t, fmt.Sprintf("%+v", *e.Trial), suiteKey)
		if e.TaskID == "a" {
			require.True(t, e.Trial.Graders[0].Passed, "a grader judges what the agent really said")
		}
	}
	require.Equal(t, 2, trials)
}

// When the limit of an output cut a key in two, a part of it was recorded.
func TestAttackNoPartOfAKeyLeftBehind(t *testing.T) {
	t.Parallel()
	const key = "sk-suite-0123456789abcdef"
	for _, left := range []int{6, 12, len(key) - 1} {
		state := t.TempDir()
		r, err := runner.New(runner.Options{StateDir: state})
		require.NoError(t, err)
		live := runnertest.Start(t, r, fmt.Sprintf(`
-- eval.yaml --
name: cut
config: {executor: command, command: 'head -c %d /dev/zero | tr "\0" " "; printf "%%s and more" "$DEPLOY_PASS"', env: {DEPLOY_PASS: %s}}
tasks: [{id: a, prompt: x}]
`, executor.MaxOutputBytes-left, key), record.Request{})
		<-live.Done()
		require.NoError(t, live.Trials(func(_ int, res *record.Trial) error {
			require.Equal(t, "[redacted]", strings.TrimSpace(res.Output))
			require.Positive(t, res.OutputDropped)
			return nil
		}))
		runnertest.Recorded(t, state, key[:left])
	}
}

// Grading again redacted only keys of models, so keys that a grader printed from its environment
// were recorded and shown.
func TestNoKeyOfAGraderLeftBehind(t *testing.T) {
	t.Parallel()
	const taskKey, serverKey = "hunter2-0123456789", "srv-9876543210"
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	files := fmt.Sprintf(`
-- eval.yaml --
name: leaks
config:
  executor: command
  command: cat
  mcp_servers:
    a: {url: 'http://127.0.0.1:1', headers: {Authorization: Bearer %s}}
graders:
  - {name: prints, type: program, config: {command: sh, args: [-c, 'exit 0']}}
tasks:
  - {id: a, inputs: {prompt: x, environment: {DB_PASSWORD: '%s'}}}
`, serverKey, taskKey)
	live := runnertest.Start(t, r, files, record.Request{})
	<-live.Done()
	files = runnertest.Replace(t, files, "exit 0", "echo $DB_PASSWORD "+serverKey+"; exit 1")
	g, _ := runnertest.GradeAgain(t, r, live.ID(), files, regrade.GradeOptions{})
	require.Equal(t, "a 1 passed failed prints: exit code 1: [redacted] [redacted]\n", runnertest.Changes(g))
	require.Contains(t, runnertest.Recorded(t, state, taskKey, serverKey), "[redacted] [redacted]")
	before := runnertest.JournalLines(t, filepath.Join(state, "runs", live.ID()))
	runnertest.GradeAgain(t, r, live.ID(), files, regrade.GradeOptions{})
	require.Len(t, runnertest.JournalLines(t, filepath.Join(state, "runs", live.ID())), len(before), "nothing has changed")
}
