package router_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/router"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/routing"
	"waza/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// described is a suite with a client for each kind of answer; %s is replaced by its tasks.
const described = `
-- eval.yaml --
name: s
config:
  executor: router
  %s
  router:
    %s
    clients:
      - name: notebook
        description: I take notes and keep lists.
        version: 1.0.0
        capabilities: [shopping]
        answers: [{match: secret, reject: ""}, {match: milk, notify: {body: saved}}, {match: eggs, notify: {title: Eggs, priority: high}}]
      - name: Calendar
        description: I manage appointments and meetings.
        answers: [{match: ^lunch, reject: I do not eat}]
      - name: radio
        description: I play music.
        answers: [{silent: true}]
tasks:
%s
`

func run(t *testing.T, config, router, tasks string) runnertest.Result {
	t.Helper()
	res, _ := runnertest.Run(t, fmt.Sprintf(described, config, router, tasks), record.Request{})
	return res
}

// outline returns a transcript with a line per entry.
func outline(trial *record.Trial) []string {
	var lines []string
	for _, e := range trial.Transcript {
		line := string(e.Type) + " " + e.Role + ": " + strings.ReplaceAll(e.Text, "\n", " | ")
		if e.Tool != nil {
			line = fmt.Sprintf("%s %s %s %s %s", e.Type, e.Tool.Name, e.Tool.Status, e.Tool.Arguments, e.Tool.Result)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	res := run(t, "", "max_reroutes: 3", `
  - {id: a, prompt: "lunch meeting, and a list of it", expected: {recipients: [notebook]}}
`)
	trial := res.Tasks[0].Trials[0]
	require.Equal(t, record.Passed, trial.Verdict, trial.Error)
	require.Equal(t, []string{
		"message user: lunch meeting, and a list of it",
		"thought router: Words chose Calendar: Its description shares words with the message: meeting",
		`tool_call Calendar failed {"directRouted":false,"inputMethod":"text","routingReason":"Its description shares ` +
			`words with the message: meeting"} {"answer":"rejected","reason":"I do not eat"}`,
		"thought router: Words chose notebook: Its description shares words with the message: list",
		`tool_call notebook completed {"directRouted":false,"inputMethod":"text","routingReason":"Its description ` +
			`shares words with the message: list"} {"answer":"acknowledged"}`,
		"skill : notebook",
		"message assistant: Taken by notebook. | Words chose Calendar: Its description shares words with the message: " +
			"meeting | Calendar rejected it: I do not eat | Words chose notebook: Its description shares words with the " +
			"message: list | notebook acknowledged it.",
	}, outline(&trial))
	require.Equal(t, &record.Routing{
		Expected: []string{"notebook"}, Took: []string{"notebook"}, Rejected: []string{"Calendar"}, Reroutes: 1,
		Reason: "Its description shares words with the message: list",
	}, trial.Routing)
	require.Equal(t, 1, res.Summary.Routing.Rerouted)
	require.Nil(t, trial.Usage, "words cost nothing")
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	res := run(t, "", "voice: 0.9", `
  - {id: silent, prompt: play music, expected: {recipients: []}}
  - {id: no reason, prompt: a secret note, expected: {recipients: []}}
  - {id: direct, prompt: "RADIO, or notebook: milk", expected: {recipients: [NOTEBOOK]}}
  - {id: notified, prompt: "notebook: eggs", voice: 0.5, expected: {recipients: [Notebook]}, graders: [{type: skill_invocation, config: {required_skills: [notebook]}}, {type: tool_calls, config: {required: [{tool: notebook, arguments: {confidence: 0.5, directRouted: true}}]}}]}
  - {id: nobody, prompt: the weather, expected: {recipients: []}}
  - {id: wrong, prompt: a meeting, expected: {recipients: [notebook, radio]}}
  - {id: twice, prompt: a meeting, follow_up_prompts: ["a note"], expected: {recipients: [notebook, calendar]}}
`)
	outputs := map[string]string{}
	for _, task := range res.Tasks {
		outputs[task.ID] = string(task.Trials[0].Verdict) + "\n" + task.Trials[0].Output
	}
	require.Equal(t, map[string]string{
		"silent": "passed\nNobody took the message: all clients that got it rejected it.\nWords chose radio: Its " +
			"description shares words with the message: music, play\nradio rejected it: Response timeout\nWords chose " +
			"nobody: no word of the message is in the description of a client",
		"no reason": "passed\nNobody took the message: all clients that got it rejected it.\nWords chose notebook: " +
			"Its description shares words with the message: note\nnotebook rejected it.\nWords chose nobody: no word of " +
			"the message is in the description of a client",
		"direct": "passed\nTaken by notebook.\nThe message names radio.\nradio rejected it: Response " +
			"timeout\nWords chose notebook: Its description shares words with the message: notebook\nnotebook " +
			"acknowledged it.\nnotebook notified the user: notebook: saved",
		"notified": "passed\nTaken by notebook.\nThe message names notebook.\nnotebook acknowledged it.\nnotebook notified the user: Eggs",
		"nobody": "passed\nNobody took the message: no word of the message is in the description of a " +
			"client.\nWords chose nobody: no word of the message is in the description of a client",
		"wrong": "failed\nTaken by Calendar.\nWords chose Calendar: Its description shares words with the " +
			"message: meeting\nCalendar acknowledged it.",
		"twice": "passed\nTaken by Calendar.\nWords chose Calendar: Its description shares words with the " +
			"message: meeting\nCalendar acknowledged it.\n\nTaken by notebook.\nWords chose notebook: Its description " +
			"shares words with the message: note\nnotebook acknowledged it.",
	}, outputs)
	wrong := res.Tasks[5].Trials[0]
	require.Equal(t, "taken by Calendar, expected notebook, radio", wrong.Graders[0].Feedback)
	require.Zero(t, *wrong.Score)
	require.Contains(t, string(wrong.Transcript[2].Tool.Arguments), `"confidence":0.9`)
	require.Contains(t, string(wrong.Transcript[2].Tool.Arguments), `"inputMethod":"voice"`)
	r := res.Summary.Routing
	require.Equal(t, []int{7, 7, 0, 0}, []int{r.Tasks, r.Trials, r.Errors, r.Timeouts})
	require.InDelta(t, 6.0/7, *r.Accuracy, 1e-12)
	require.Len(t, r.Misroutes, 1)
	require.Equal(t, []string{"notebook", "radio"}, r.Misroutes[0].Expected)
}

func TestOutputForGraders(t *testing.T) {
	t.Parallel()
	res := run(t, "", "output: json", `
  - id: a
    prompt: "notebook: milk"
    graders: [{type: json_schema, config: {schema: {type: object, properties: {recipients: {const: [notebook]}}, required: [recipients, messages]}}}]
`)
	trial := res.Tasks[0].Trials[0]
	require.Equal(t, record.Passed, trial.Verdict, trial.Error)
	require.JSONEq(t, `{"recipients":["notebook"],"messages":[{"text":"notebook: milk","status":"taken","choices":[{"by":"prefix","clients":["notebook"]}],
		"recipients":[{"client":"notebook","answer":"acknowledged"}],"notifications":[{"client":"notebook","title":"notebook","body":"saved","priority":"normal"}]}]}`,
		trial.Output)
	require.Nil(t, trial.Routing.Expected)
	require.Nil(t, res.Summary.Routing, "no task expects recipients")
}

// modelSuite runs the suite described with a model at the address of m.
func modelSuite(t *testing.T, m *runnertest.Model, more, tasks string) runnertest.Result {
	t.Helper()
	return run(t, "model: m\n  base_url: "+m.URL+"\n  api_key_command: echo key-of-the-model\n  prices: {m: {input: 1, output: 10}}\n"+more,
		"max_reroutes: 3", tasks)
}

// TestModelChooses checks that the model sees rejections and that its cost is charged to the
// run.
func TestModelChooses(t *testing.T) {
	t.Parallel()
	m := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		clients := []string{"Calendar"}
		if strings.Contains(a.Prompt, "I do not eat") {
			clients = []string{"notebook", "radio"}
		}
		return runnertest.Answer{
			Tool:      "route_message",
			Arguments: map[string]any{"clients": clients, "reason": "it fits key-of-the-model"}, InputTokens: 100,
			OutputTokens: 10,
		}
	})
	res := modelSuite(t, m, "  params: {temperature: 0.5}\n", `
  - {id: a, prompt: lunch at noon, expected: {recipients: [notebook]}}
  - {id: b, prompt: "radio: play", expected: {recipients: [calendar]}}
`)
	require.Equal(t, `Taken by notebook.
The model chose Calendar: it fits [redacted]
Calendar rejected it: I do not eat
The model chose notebook and radio: it fits [redacted]
notebook acknowledged it.
radio rejected it: Response timeout`, res.Tasks[0].Trials[0].Output)
	require.Equal(t, record.Usage{InputTokens: 200, OutputTokens: 20, CostUSD: 0.0004}, *res.Tasks[0].Trials[0].Usage)
	require.Equal(t, record.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: 0.0002},
		*res.Tasks[1].Trials[0].Usage, "who else takes what the radio did not")
	require.InDelta(t, 0.0006, res.Summary.Usage.CostUSD, 1e-12)
	require.InDelta(t, 1, *res.Summary.Routing.Accuracy, 0)
	for _, asked := range m.Requests() {
		require.InDelta(t, 0.5, *asked.Temperature, 0)
		require.Equal(t, []string{"route_message"}, asked.Tools)
		require.Contains(t, asked.Prompt, `"description": "I take notes and keep lists."`)
	}
}

// TestModelFaults checks that nobody is chosen by words if the model fails.
func TestModelFaults(t *testing.T) {
	t.Parallel()
	m := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		switch {
		case strings.Contains(a.Prompt, "unusable"):
			return runnertest.Answer{Tool: "route_message", Arguments: map[string]any{"clients": []string{"diary"}, "reason": "x"}, InputTokens: 100}
		case strings.Contains(a.Prompt, "broken"):
			return runnertest.Answer{Status: 400}
		}
		return runnertest.Answer{
			Tool: "route_message", Arguments: map[string]any{"clients": []string{}, "reason": "nobody does that"},
			InputTokens: 100,
		}
	})
	res := modelSuite(t, m, "", `
  - {id: unusable, prompt: unusable meeting, expected: {recipients: [calendar]}}
  - {id: broken, prompt: broken meeting, expected: {recipients: [calendar]}}
  - {id: nobody, prompt: a meeting, expected: {recipients: [calendar]}}
`)
	trials := []record.Trial{res.Tasks[0].Trials[0], res.Tasks[1].Trials[0], res.Tasks[2].Trials[0]}
	require.Equal(t, []record.Verdict{record.Errored, record.Errored, record.Failed},
		[]record.Verdict{trials[0].Verdict, trials[1].Verdict, trials[2].Verdict})
	require.Contains(t, trials[0].Error, `the model gave no usable answer, asked twice: there is no client "diary"`)
	require.EqualValues(t, 200, trials[0].Usage.InputTokens, "what came to nothing costs, too")
	require.Contains(t, trials[1].Error, "Bad Request")
	require.Equal(t, "Nobody took the message: nobody does that.\nThe model chose nobody: nobody does that", trials[2].Output)
	r := res.Summary.Routing
	require.Equal(t, []int{1, 1, 2}, []int{r.Tasks, r.Trials, r.Errors})
	require.InDelta(t, 0, *r.Accuracy, 0)
}

// TestTimeouts checks that a slow model ends the trial in timeout, which counts as wrong.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	m := runnertest.NewModel(t, func(runnertest.Asked) runnertest.Answer { <-ended; return runnertest.Answer{} })
	t.Cleanup(func() { close(ended) })
	res := modelSuite(t, m, "  timeout_seconds: 0.05\n", "\n  - {id: a, prompt: a meeting, expected: {recipients: [calendar]}}\n")
	require.Equal(t, record.TimedOut, res.Tasks[0].Trials[0].Verdict)
	r := res.Summary.Routing
	require.Equal(t, []int{1, 0, 1}, []int{r.Trials, r.Errors, r.Timeouts})
}

// TestTriggerTests checks prompts that should or should not reach a client, like trigger tests
// of skills.
func TestTriggerTests(t *testing.T) {
	t.Parallel()
	res := run(t, "trials_per_task: 2", "max_reroutes: 0", `
  - {id: a, prompt: a note, expected: {should_trigger: true}}
-- trigger_tests.yaml --
skill: notebook
should_trigger_prompts: [a list of things, "notebook: anything", jot it down]
should_not_trigger_prompts: [the next meeting, music]
`)
	tr := res.Summary.Triggers
	require.True(t, tr.Measured, tr.Note)
	require.Equal(t, record.Confusion{TruePositives: 2, TrueNegatives: 2, FalseNegatives: 1}, tr.Confusion)
	require.InDelta(t, 0.8, *tr.Accuracy, 1e-12)
	require.Equal(t, record.Passed, res.Tasks[0].Verdict)
	require.Nil(t, res.Summary.Routing)
}

// TestDescriptionsOfAMatrix compares descriptions: each cell of a matrix has its own numbers.
func TestDescriptionsOfAMatrix(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: s
config:
  executor: router
  matrix: {notes: [I take notes., "I take notes and keep shopping lists, such as what to buy."]}
  router:
    clients:
      - {name: notebook, description: "{{notes}}"}
      - {name: calendar, description: I manage appointments and meetings.}
tasks:
  - {id: buy, prompt: buy milk, expected: {recipients: [notebook]}}
  - {id: meet, prompt: the next meeting, expected: {recipients: [calendar]}}
`, record.Request{})
	var got []float64
	for _, g := range res.Summary.Groups {
		got = append(got, *g.Routing.Accuracy, *g.Routing.Recall, *g.Routing.Precision)
	}
	require.Equal(t, []float64{0.5, 0.5, 1, 1, 1, 1}, got)
	require.Len(t, res.Summary.Routing.Misroutes, 1)
}

func TestDescriptionThatGrowsTooLong(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: s
inputs: {long: `+strings.Repeat("x", 1100)+`}
config: {executor: router, router: {clients: [{name: a, description: "{{long}}"}]}}
tasks: [{id: a, prompt: x, expected: {recipients: []}}]
`, record.Request{})
	require.Equal(t, record.Errored, res.Tasks[0].Trials[0].Verdict)
	require.Equal(t, "client a: description must have at most 1024 characters, got 1100", res.Tasks[0].Trials[0].Error)
}

func TestChecks(t *testing.T) {
	t.Parallel()
	clients := func(list string) string { return "router: {clients: [" + list + "]}" }
	for _, c := range []struct{ config, task, want string }{
		{"", "", `router.clients is empty; describe at least one client, or set live: true`},
		{clients(`{name: a}`), "", `description`},
		{clients(`{name: 1a, description: x}`), "", `invalid client name "1a"`},
		{clients(`{name: ` + strings.Repeat("a", 65) + `, description: x}`), "", `invalid client name`},
		{
			clients(`{name: a, description: x}, {name: A, description: x}`), "",
			`duplicate client name "A"; names must be unique regardless of case`,
		},
		{clients(`{name: a, description: "  "}`), "", `description is empty`},
		{clients(`{name: a, description: ` + strings.Repeat("ä", 1025) + `}`), "", `at most 1024 characters, got 1025`},
		{clients(`{name: a, description: ` + strings.Repeat("ä", 1024) + `}`), "", ``},
		{clients(strings.Repeat(`{name: a, description: x}, `, 101)), "", `must have at most 100 clients, got 101`},
		{clients(`{name: a, description: x, answers: [{match: "("}]}`), "", `invalid regular expression`},
		{clients(`{name: a, description: x, answers: [{silent: true, reject: no}]}`), "", `silent excludes reject and notify`},
		{clients(`{name: a, description: x, answers: [{notify: {}, reject: no}]}`), "", `reject excludes notify`},
		{clients(`{name: a, description: x, answers: [{reject: no}, {match: x}]}`), "", `matches every message, so later answers have no effect`},
		{`router: {voice: 2, clients: [{name: a, description: x}]}`, "", `voice`},
		{
			`router: {live: true, clients: [{name: a, description: x}]}`, "",
			`router.clients must be empty if router.live is set, because messages go to connected clients`,
		},
		{`router: {live: true, by: words}`, "", `router.by has no effect: the server chooses the clients (router.live)`},
		{`router: {live: true}`, "expected: {recipients: [everybody]}", ``},
		{`router: {by: magic, clients: [{name: a, description: x}]}`, "", `magic`},
		{
			`router: {by: words, clients: [{name: a, description: x}]}, base_url: "http://127.0.0.1:1/v1"`, "",
			`base_url has no effect: words choose the clients`,
		},
		{
			clients(`{name: a, description: x}`) + ", first_event_timeout_seconds: 3", "",
			`first_event_timeout_seconds has no effect: clients get only messages`,
		},
		{
			clients(`{name: notebook, description: x}`), "expected: {recipients: [notebok]}",
			`recipients[0]: unknown client "notebok"; config.router.clients has notebook`,
		},
		{
			clients(`{name: notebook, description: x}`), "expected: {recipients: [NoteBook, notebook]}",
			`recipients[1] has no effect: "notebook" is already in the list`,
		},
		{clients(`{name: notebook, description: x}`), `expected: {recipients: [" "]}`, `recipients[0] is empty`},
		{clients(`{name: a, description: x}`), "expected: {recipients: [A]}", ``},
		{clients(`{name: a, description: x}`), "voice: 0.5, expected: {recipients: []}", ``},
	} {
		task := "{id: a, prompt: x, " + cmp.Or(c.task, "expected: {recipients: []}") + "}"
		found := findings(t, "executor: router, "+c.config, task)
		if c.want == "" {
			require.Empty(t, found)
			continue
		}
		require.Contains(t, found, c.want, "%s", c.config)
	}
	require.Contains(t, findings(t, "executor: mock", "{id: a, inputs: {prompt: x, voice: 0.5}, expected: {recipients: [x]}}"),
		"voice has no effect with executor mock")
	require.Contains(t, findings(t, "executor: mock", "{id: a, prompt: x, expected: {recipients: [x]}}"),
		"recipients has no effect with executor mock: it has no clients")
}

func findings(t *testing.T, config, task string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: s\nconfig: {"+config+"}\ntasks: ["+task+"]\n"), 0o600))
	_, ds, err := eval.Load(file, eval.Options{Vocabulary: runnertest.NewRunner(t).Planner().Vocabulary()})
	require.NoError(t, err)
	var b strings.Builder
	for _, d := range ds {
		b.WriteString(d.Message + "\n")
	}
	return b.String()
}

// TestModelWithoutAName checks that a missing model name is reported before the run.
func TestModelWithoutAName(t *testing.T) {
	t.Parallel()
	k := router.New(nil)
	o := k.Options().(*router.Options)
	o.Router.By = "model"
	require.Len(t, k.Preflight(t.Context(), executor.Settings{Options: o}), 1)
	require.Empty(t, k.Preflight(t.Context(), executor.Settings{Options: o, Model: "m"}))
	require.True(t, k.Can(executor.Settings{Options: o}).Metered)
	o.Router.By = ""
	require.Empty(t, k.Preflight(t.Context(), executor.Settings{Options: o}))
	require.Equal(t, executor.Capabilities{Skills: true, Clients: true}, k.Can(executor.Settings{Options: o}))
}

// TestExpectedLater checks that a changed expectation applies to recorded messages when a run is
// graded again, and in runs that reuse its trials. Nothing is routed again.
func TestExpectedLater(t *testing.T) {
	t.Parallel()
	suite := fmt.Sprintf(described, "trials_per_task: 2", "max_reroutes: 3", `
  - {id: a, prompt: a note, expected: {recipients: [calendar]}}
  - {id: b, prompt: a meeting, expected: {recipients: [calendar]}}
`)
	edited := runnertest.Replace(t, suite, "prompt: a note, expected: {recipients: [calendar]}",
		"prompt: a note, expected: {recipients: [notebook]}")
	r, id, _ := runnertest.FinishedRun(t, suite)
	before := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Summary.Routing
	require.InDelta(t, 0.5, *before.Accuracy, 0)
	require.Len(t, before.Misroutes, 2)

	_, res := runnertest.GradeAgain(t, r, id, suite, regrade.GradeOptions{})
	require.Equal(t, before, res.Summary.Routing)
	_, res = runnertest.GradeAgain(t, r, id, edited, regrade.GradeOptions{})
	require.InDelta(t, 1, *res.Summary.Routing.Accuracy, 0)
	require.Empty(t, res.Summary.Routing.Misroutes)
	require.Equal(t, []string{"notebook"}, res.Tasks[0].Trials[0].Routing.Expected)

	live := runnertest.Start(t, r, suite, record.Request{Cache: true})
	<-live.Done()
	res = runnertest.ResultOf(t, live)
	require.Equal(t, 4, res.Summary.TrialsCached)
	require.Equal(t, before, res.Summary.Routing)

	res = run(t, "trials_per_task: 2", "max_reroutes: 3", "\n  - {id: a, prompt: a note}\n")
	require.Nil(t, res.Summary.Routing)
}

// TestStopping checks that tasks that expect recipients execute all trials.
func TestStopping(t *testing.T) {
	t.Parallel()
	res := run(t, "trials_per_task: 20\n  stopping: true", "max_reroutes: 3",
		"\n  - {id: a, prompt: a note, expected: {recipients: [notebook]}}\n  - {id: b, prompt: a note, expected: {should_trigger: true}}\n")
	require.Equal(t, 20, res.Tasks[0].Trials[19].TrialNum)
	require.Equal(t, 20, res.Summary.Routing.Trials)
	require.Positive(t, res.Summary.TrialsSaved, "the other task is not")
}

// TestResumed checks that an interrupted run ends with the same numbers and does not route
// messages again.
func TestResumed(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.FinishedRun(t, fmt.Sprintf(described, "trials_per_task: 3", "max_reroutes: 3", `
  - {id: a, prompt: "lunch meeting, and a list of it", expected: {recipients: [calendar]}}
  - {id: b, prompt: a meeting, expected: {recipients: [calendar]}}
`))
	whole := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	require.Equal(t, []int{2, 6, 3}, []int{whole.Summary.Routing.Tasks, whole.Summary.Routing.Trials, whole.Summary.Routing.Rerouted})
	runnertest.CutRun(t, dir, runnertest.Before(`"taskNum":2,"totalTasks":2,"trialNum":2`))
	got, events := runnertest.Resumed(t, r, id)
	runnertest.EqualResults(t, whole, got)
	require.Equal(t, 4, events[0].KeptTrials)
}

// sender sends messages to a client that accepts only notes.
type sender struct {
	sent []*routing.Message
	err  error
}

func (o *sender) Send(_ context.Context, m *routing.Message) (*routing.Routed, error) {
	o.sent = append(o.sent, m)
	if o.err != nil {
		return nil, o.err
	}
	r := &routing.Routed{
		Message: *m, Status: routing.Taken,
		Choices: []routing.Chosen{{By: routing.ByModel, Clients: []string{"Notebook"}, Reason: "it fits", At: m.Timestamp}},
	}
	if strings.Contains(m.Text, "note") {
		r.Recipients = []routing.Recipient{{Client: "Notebook", State: routing.Acknowledged, At: m.Timestamp}}
	} else {
		r.Status, r.Reason = routing.Refused, "all clients that got it rejected it"
		r.Recipients = []routing.Recipient{{Client: "Notebook", State: routing.Rejected, Reason: "no note", At: m.Timestamp}}
	}
	return r, nil
}

// TestLive sends messages to the clients of a server.
func TestLive(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
name: s
config: {executor: router, router: {live: true, voice: 0.7}}
tasks:
  - {id: a, prompt: a note, follow_up_prompts: [another note], expected: {recipients: [notebook]}}
  - {id: b, prompt: music, expected: {recipients: []}}
`
	do := func(o router.Sender) runnertest.Result {
		r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: plan.Executors.With(router.New(o))})
		require.NoError(t, err)
		live := runnertest.Start(t, r, suite, record.Request{})
		<-live.Done()
		return runnertest.ResultOf(t, live)
	}
	o := &sender{}
	res := do(o)
	require.Len(t, o.sent, 3)
	require.Equal(t, routing.Voice, o.sent[0].InputMethod)
	require.InDelta(t, 0.7, *o.sent[0].Confidence, 0)
	require.InDelta(t, 1, *res.Summary.Routing.Accuracy, 0)
	trial := res.Tasks[0].Trials[0]
	require.Equal(t, []string{"Notebook"}, trial.Routing.Expected, "as the client calls itself")
	require.Equal(t, "Nobody took the message: all clients that got it rejected it.\nThe model chose Notebook: it "+
		"fits\nNotebook rejected it: no note",
		res.Tasks[1].Trials[0].Output)
	require.Nil(t, trial.Usage, "the server pays")

	res = do(&sender{err: routing.ErrNoServer})
	trial = res.Tasks[0].Trials[0]
	require.Equal(t, record.Errored, trial.Verdict)
	require.Equal(t, "no waza server is running; start one with waza serve", trial.Error)
	require.Equal(t, 2, res.Summary.Routing.Errors)

	res = do(nil)
	require.Equal(t, "executor router: this program has no connection to a waza server, so it cannot reach connected clients", res.Error)
}
