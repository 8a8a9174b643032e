package trial_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// replying returns a suite whose agent asks for a name and a color, and whose user is played by
// a model at an address.
func replying(url, responder string) string {
	return fmt.Sprintf(`
-- eval.yaml --
name: s
config:
  executor: mock
  model: m
  base_url: %s
  judge_model: openai:player
  retry_errors: 2
  mock:
    replies:
      - {match: ^make, output: "What is its name?"}
      - {match: Rex, output: "Which colour?"}
      - {match: blue, output: "Done: Rex, blue."}
tasks:
  - id: t
    inputs:
      prompt: make a {{animal}}
      responder: %s
    graders: [{type: text, config: {contains: [done]}}]
inputs: {animal: dog}
`, url, responder)
}

// player returns a model that plays the user that the instructions of replying describe.
func player(t *testing.T) *runnertest.Model {
	return runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		d := map[string]any{"action": "stop", "message": "", "reason": "it is done"}
		_, talk, _ := strings.Cut(a.Prompt, "The conversation:")
		switch {
		case strings.Contains(talk, "Done:"):
		case strings.Contains(talk, "Which colour?") && strings.Contains(a.Prompt, "blue"):
			d = map[string]any{"action": "reply", "message": "blue", "reason": ""}
		case strings.Contains(talk, "Which colour?"):
			d = map[string]any{"action": "abstain", "message": "", "reason": "no colour is known"}
		default:
			d = map[string]any{"action": "reply", "message": "Rex, please", "reason": "x"}
		}
		return runnertest.Answer{Tool: "submit_reply", Arguments: d, InputTokens: 10, OutputTokens: 2}
	})
}

func said(trial *record.Trial) string {
	var parts []string
	for _, e := range trial.Transcript {
		if e.Type == record.EntryMessage {
			parts = append(parts, e.Role+": "+e.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func TestResponder(t *testing.T) {
	t.Parallel()
	m := player(t)
	res, _ := runnertest.Run(t, replying(m.URL, `{instructions: "Your {{animal}} is Rex, and blue.", max_followups: 5}`), record.Request{})
	trial := res.Trial(t, "t", 1)
	require.Equal(t, record.Passed, trial.Verdict, trial.Error)
	require.Equal(t, "user: make a dog\nassistant: What is its name?\nuser: Rex, please\nassistant: Which "+
		"colour?\nuser: blue\nassistant: Done: Rex, blue.",
		said(trial))
	require.Equal(t, &record.Responded{Replies: 2, Outcome: record.ResponderStopped, Reason: "it is done"}, trial.Responder)
	require.Equal(t, &record.Usage{InputTokens: 30, OutputTokens: 6}, trial.Spent.Responder)
	require.Equal(t, trial.Spent.Responder, res.Summary.UsageByRole.Responder)
	require.EqualValues(t, 36, res.Summary.Usage.Total())
	asked := m.Requests()
	require.Len(t, asked, 3)
	require.Equal(t, "player", asked[0].Model)
	require.Contains(t, asked[0].Prompt, "Your dog is Rex, and blue.")
	require.Contains(t, asked[0].System, "You play the user")
}

// A responder that cannot answer ends the trial in error, without retries. A responder that has
// sent the maximum number of replies leaves the trial to its graders.
func TestResponderEnds(t *testing.T) {
	t.Parallel()
	m := player(t)
	res, _ := runnertest.Run(t, replying(m.URL, `{model: "openai:other", instructions: "Your {{animal}} is Rex.", max_followups: 5}`),
		record.Request{})
	trial := res.Trial(t, "t", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Equal(t, "the responder abstained after turn 2: no colour is known; add the answer to its instructions", trial.Error)
	require.Equal(t, &record.Responded{Replies: 1, Outcome: record.ResponderAbstained, Reason: "no colour is known"}, trial.Responder)
	require.Empty(t, trial.Attempts, "another try would meet the same")
	require.Equal(t, "other", m.Requests()[0].Model)
	require.EqualValues(t, 24, trial.Spent.Responder.Total())

	res, _ = runnertest.Run(t, replying(m.URL, `{instructions: "Your {{animal}} is Rex, and blue.", max_followups: 1}`), record.Request{})
	trial = res.Trial(t, "t", 1)
	require.Equal(t, record.Failed, trial.Verdict)
	require.Equal(t, "Which colour?", trial.Output)
	require.Equal(t, &record.Responded{Replies: 1, Outcome: record.ResponderExhausted}, trial.Responder)
}

// An unreachable responder affects only its task. An exhausted budget affects the run.
func TestResponderFaults(t *testing.T) {
	t.Parallel()
	refuses := runnertest.NewModel(t, func(runnertest.Asked) runnertest.Answer { return runnertest.Answer{Status: 401} })
	files := replying(refuses.URL, `{instructions: x, max_followups: 5}`)
	files = strings.Replace(files, "inputs: {animal",
		"  - {id: other, prompt: make one, graders: [{type: text, config: {contains: [name]}}]}\ninputs: {animal",
		1)
	res, _ := runnertest.Run(t, files, record.Request{})
	require.Contains(t, res.Trial(t, "t", 1).Error, "responder: openai at ")
	require.Empty(t, res.Trial(t, "t", 1).Attempts)
	require.Equal(t, record.Passed, res.Trial(t, "other", 1).Verdict)

	m := player(t)
	files = strings.Replace(replying(m.URL, `{instructions: "Rex, blue", max_followups: 5}`), "  retry_errors: 2",
		"  retry_errors: 2\n  max_tokens: 1", 1)
	res, _ = runnertest.Run(t, files, record.Request{})
	require.Contains(t, res.Trial(t, "t", 1).Error, "max_tokens")
	require.Empty(t, m.Requests())
}

const checked = `
-- eval.yaml --
name: s
config: {executor: command, command: [sh, agent.sh], retry_errors: 0}
graders: [{name: says, type: text, config: {contains: [three]}}]
tasks:
  - id: t
    inputs: {prompt: one, follow_up_prompts: [two, three]}
    checkpoints:
      - after_turn: 1
        graders: [{name: says, type: text, contains: [one]}, {name: left, type: file, config: {must_exist: [one.txt], must_not_exist: [two.txt]}}]
      - after_turn: 2
        graders: [{type: text, contains: [one]}, {type: tool_calls, config: {required_tools: [read], max_calls: 2}}]
-- agent.sh --
read -r what
echo '{"type":"tool_call","name":"read"}' >&3
echo "I did $what"
touch $what.txt
`

func grades(trial *record.Trial) string {
	var lines []string
	for _, g := range trial.Graders {
		lines = append(lines, fmt.Sprintf("%s %d %v %v", g.Name, g.AfterTurn, g.Passed, g.Error))
	}
	return strings.Join(lines, "\n")
}

// Checkpoints see the state after their turn: answer, transcript and workspace. A failed
// checkpoint fails the trial, but the score of the trial is that of its own graders.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	r, id, _ := runnertest.FinishedRun(t, checked)
	trial := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Trial(t, "t", 1)
	const want = "says 0 true \nturn 1: says 1 true \nturn 1: left 1 true \nturn 2: text 2 false \nturn 2: tool_calls 2 true "
	require.Equal(t, want, grades(trial))
	require.Equal(t, record.Failed, trial.Verdict)
	require.Equal(t, 1.0, *trial.Score)
	require.Equal(t, "I did three", trial.Output)
	require.Len(t, trial.Checkpoints, 2)
	require.Equal(t, []bool{true, false}, []bool{trial.Checkpoints[0].Passed, trial.Checkpoints[1].Passed})
	require.False(t, trial.Checkpoints[0].OutputLost)

	// The record contains answers and transcript of each turn, but not the workspace.
	files := runnertest.Replace(t, checked, "contains: [one]}, {type: tool", "contains: [two]}, {type: tool",
		"must_exist: [one.txt]", "must_exist: [never.txt]")
	grading, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	trial = res.Trial(t, "t", 1)
	require.Equal(t, strings.Replace(want, "text 2 false", "text 2 true", 1), grades(trial), "the result of left is that of the run")
	require.Equal(t, record.Passed, trial.Verdict)
	require.Equal(t, 1, grading.Changed)

	// A new grader that needs the workspace cannot work.
	files = runnertest.Replace(t, checked, "name: left", "name: new")
	_, res = runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	trial = res.Trial(t, "t", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Contains(t, trial.Error, "run the task again")
}

// A checkpoint can end the trial: later prompts are not sent, and later graders do not run.
func TestCheckpointStops(t *testing.T) {
	t.Parallel()
	files := strings.Replace(checked, "- after_turn: 2\n", "- after_turn: 2\n        on_failure: stop\n", 1)
	r, id, _ := runnertest.FinishedRun(t, files)
	trial := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Trial(t, "t", 1)
	require.Equal(t, record.Failed, trial.Verdict)
	require.Zero(t, *trial.Score)
	require.Equal(t, `stopped at a checkpoint: grader "turn 2: text" did not pass: the output does not contain "one"`,
		strings.Split(trial.Error, "\n")[0])
	require.Equal(t, "turn 1: says 1 true \nturn 1: left 1 true \nturn 2: text 2 false \nturn 2: tool_calls 2 true ", grades(trial))
	require.True(t, trial.Checkpoints[1].Stopped)
	require.NotContains(t, said(trial), "three")
	grading, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.Equal(t, 1, grading.Kept, "the prompts and graders that would have followed are not known")
	require.Equal(t, record.Failed, res.Trial(t, "t", 1).Verdict)
}

// A checkpoint can end the prompts, and the graders of the task still run. The files of an earlier
// checkpoint are in the workspace from the next prompt on, and are no files that the agent created.
func TestCheckpointFinishes(t *testing.T) {
	t.Parallel()
	files := runnertest.Replace(t, checked, "- after_turn: 1\n", "- after_turn: 1\n        files: [{path: given/two.txt, content: x}, {path: g.sh, source: agent.sh}]\n",
		"- after_turn: 2\n", "- after_turn: 2\n        on_failure: finish\n        files: [{path: never.txt, content: x}]\n",
		"must_not_exist: [two.txt]", "must_not_exist: [two.txt, given]",
		"{type: text, contains: [one]}, {type: tool_calls", "{type: text, contains: [one]}, {type: file, config: {must_exist: [given/two.txt, g.sh]}}, {type: tool_calls",
		"{name: says, type: text, config: {contains: [three]}}", "{name: says, type: text, config: {contains: [two]}}, {name: not, type: file, config: {must_not_exist: [never.txt]}}, {name: given, type: file, config: {created: true, must_not_exist: ['given/*', g.sh]}}")
	r, id, _ := runnertest.FinishedRun(t, files)
	trial := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Trial(t, "t", 1)
	want := "says 0 true \nnot 0 true \ngiven 0 true \nturn 1: says 1 true \nturn 1: left 1 true \nturn 2: text 2 false \nturn 2: file 2 true \nturn 2: tool_calls 2 true "
	require.Equal(t, want, grades(trial))
	require.Equal(t, record.Failed, trial.Verdict)
	require.InDelta(t, 1, *trial.Score, 0)
	require.False(t, trial.Checkpoints[1].Stopped)
	require.NotContains(t, said(trial), "three")
	_, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.Equal(t, want, grades(res.Trial(t, "t", 1)))
}

// The commands of a checkpoint find its files, and one that fails ends the trial in an error. Those after
// the last turn do not run.
func TestCheckpointSetup(t *testing.T) {
	t.Parallel()
	files := runnertest.Replace(t, checked, "- after_turn: 1\n", "- after_turn: 1\n        files: [{path: in, content: x}]\n        setup: ['cat in >out']\n",
		"{type: text, contains: [one]}, {type: tool_calls", "{type: file, config: {must_exist: [out]}}, {type: tool_calls")
	res, _ := runnertest.Run(t, files, record.Request{})
	require.Equal(t, record.Passed, res.Trial(t, "t", 1).Verdict, grades(res.Trial(t, "t", 1)))
	res, _ = runnertest.Run(t, runnertest.Replace(t, files, "cat in >out", "echo no; exit 3"), record.Request{})
	trial := res.Trial(t, "t", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Contains(t, trial.Error, `checkpoint.setup[0] "echo no; exit 3": exit status 3: no`)
	require.NotContains(t, said(trial), "two")
}

// Files that commands of a checkpoint write are no files of the agent, also when the trial is graded again.
func TestCheckpointSetupCreates(t *testing.T) {
	t.Parallel()
	files := runnertest.Replace(t, checked, "- after_turn: 1\n", "- after_turn: 1\n        files: [{path: in, content: x}]\n        setup: ['cat in >out; echo >>one.txt']\n",
		"graders: [{name: says,", "graders: [{name: out, type: file, config: {created: true, must_not_exist: [out, in], must_exist: [one.txt, two.txt]}}, {name: says,")
	r, id, _ := runnertest.FinishedRun(t, files)
	require.Contains(t, grades(runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Trial(t, "t", 1)), "out 0 true ")
	_, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.Contains(t, grades(res.Trial(t, "t", 1)), "out 0 true ")
}

// The files and commands of the checkpoint after the last prompt wait for the end of the agent: neither the agent nor a
// program that it left can replace what grades it.
func TestFinalFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tasks   string
		verdict record.Verdict
		sees    string // files of the workspace after each answer and at the end of the agent
	}{
		"last prompt": {`
    inputs: {prompt: one, follow_up_prompts: [two]}
    checkpoints:
      - {after_turn: 1, files: [{path: first, content: x}]}
      - {after_turn: 2, files: [{path: last, content: x}], setup: ['cat last >made']}
    graders: [{type: file, config: {must_exist: [first, last, made]}}, {name: own, type: file, config: {created: true, must_not_exist: [first, last, made]}}]
`, record.Passed, "1: \n2: first\nend: first"},
		"finished": {`
    inputs: {prompt: one, follow_up_prompts: [two]}
    checkpoints:
      - {after_turn: 1, on_failure: finish, files: [{path: first, content: x}], graders: [{type: text, optional: true, config: {contains: [no]}}]}
      - {after_turn: 2, files: [{path: last, content: x}]}
    graders: [{type: file, config: {must_exist: [last], must_not_exist: [first]}}]
`, record.Passed, "1: \nend: "},
		"finished at the last prompt": {`
    inputs: {prompt: one}
    checkpoints: [{after_turn: 1, on_failure: finish, files: [{path: last, content: x}], graders: [{type: text, optional: true, config: {contains: [no]}}]}]
    graders: [{type: file, config: {must_exist: [last]}}]
`, record.Passed, "1: \nend: "},
		"failed command": {`
    inputs: {prompt: one}
    checkpoints: [{after_turn: 1, setup: ['exit 3']}]
    graders: [{type: text, config: {contains: [x]}}]
`, record.Errored, "1: \nend: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []string
			res, _ := runnertest.RunAgent(t, "\n-- eval.yaml --\nname: s\nconfig: {executor: agent, retry_errors: 0}\ntasks:\n  - id: t\n"+strings.TrimPrefix(c.tasks, "\n"),
				record.Request{}, func(ctx context.Context, trial *executor.Trial) (string, error) {
					dir, err := trial.Dir()
					require.NoError(t, err)
					look := func(when string) {
						entries, err := os.ReadDir(dir)
						require.NoError(t, err)
						var names []string
						for _, e := range entries {
							names = append(names, e.Name())
						}
						seen = append(seen, when+": "+strings.Join(names, " "))
					}
					err = trial.Converse(ctx, func(_ context.Context, num int, _ string) (executor.Outcome, error) {
						look(strconv.Itoa(num))
						return executor.Outcome{Output: "x"}, nil
					})
					look("end")
					return "x", err
				})
			trial := res.Trial(t, "t", 1)
			require.Equal(t, c.verdict, trial.Verdict, "%s\n%s", trial.Error, grades(trial))
			require.Equal(t, c.sees, strings.Join(seen, "\n"))
		})
	}
}

// A program that the agent left is dead when waza puts the files of the last checkpoint. Without such files, it lives.
func TestFinalFilesEndPrograms(t *testing.T) {
	t.Parallel()
	files := `
-- eval.yaml --
name: s
config: {executor: command, command: [sh, agent.sh], sandbox: off}
tasks:
  - id: t
    inputs: {prompt: one}
    checkpoints: [{after_turn: 1, files: [{path: last, content: x}]}]
    graders: [{type: program, config: {command: sh, args: [-c, 'grep -q sleep /proc/$(cat "$WAZA_WORKSPACE_DIR/pid")/cmdline']}}]
-- agent.sh --
setsid sh -c 'echo $$ >pid; exec sleep 1000' </dev/null >/dev/null 2>&1 3>&- &
until test -s pid; do :; done
echo done
`
	if runtime.GOOS != "linux" {
		t.Skip("programs in their own sessions are found on Linux only")
	}
	res, _ := runnertest.Run(t, files, record.Request{})
	require.Equal(t, record.Failed, res.Trial(t, "t", 1).Verdict)
	res, _ = runnertest.Run(t, runnertest.Replace(t, files, "files: [{path: last, content: x}]", "graders: [{type: text, config: {contains: [done]}}]"), record.Request{})
	require.Equal(t, record.Passed, res.Trial(t, "t", 1).Verdict, grades(res.Trial(t, "t", 1)))
}

// A trial with only checkpoints is graded by them.
func TestCheckpointsAlone(t *testing.T) {
	t.Parallel()
	files := runnertest.Replace(t, checked, "graders: [{name: says, type: text, config: {contains: [three]}}]\ntasks", "tasks")
	res, _ := runnertest.Run(t, files, record.Request{})
	trial := res.Trial(t, "t", 1)
	require.Equal(t, record.Failed, trial.Verdict)
	require.Zero(t, *trial.Score)
	res, _ = runnertest.Run(t, runnertest.Replace(t, files, "contains: [one]}, {type: tool", "contains: [two]}, {type: tool"),
		record.Request{})
	require.Equal(t, 1.0, *res.Trial(t, "t", 1).Score)
}

// If a grader of a checkpoint fails to do its work, the trial ends in error at once.
func TestCheckpointGraderBreaks(t *testing.T) {
	t.Parallel()
	files := runnertest.Replace(t, checked,
		"{name: left, type: file, config: {must_exist: [one.txt], must_not_exist: [two.txt]}}",
		"{name: left, type: program, config: {command: no-such-program-here}}")
	res, _ := runnertest.Run(t, files, record.Request{})
	trial := res.Trial(t, "t", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Contains(t, trial.Error, `checkpoint: grader "turn 1: left": `)
	require.NotContains(t, said(trial), "two")
}
