package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// scene is a run of an agent that is interrupted and resumed, with the trials that the agent
// executed.
type scene struct {
	t     *testing.T
	state string
	r     *runner.Runner
	suite string // its file
	id    string
	pairs bool // tasks run with skills and without

	mu  sync.Mutex // guards the fields below
	did []string
	// fail contains trials in error, hang those that run until they are cancelled.
	fail, hang map[string]bool
	hangs      chan struct{} // one value per hanging trial
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, state: t.TempDir(), fail: map[string]bool{}, hang: map[string]bool{}, hangs: make(chan struct{}, 100)}
	s.r = runnertest.AgentRunner(t, s.state, s.do)
	return s
}

func (s *scene) do(ctx context.Context, t *executor.Trial) (string, error) {
	name := fmt.Sprintf("%s/%d", t.Task.ID, t.Num)
	if !runnertest.Skilled(t) && s.pairs {
		name = fmt.Sprintf("%s#baseline/%d", t.Task.ID, t.Num)
	}
	s.mu.Lock()
	s.did = append(s.did, name)
	fail, hang := s.fail[name], s.hang[name]
	s.mu.Unlock()
	switch {
	case fail:
		return "", executor.Permanent(errors.New("the network is down"))
	case hang:
		s.hangs <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}
	return runnertest.Says(ctx, t)
}

// done returns the trials that were executed since its last call.
func (s *scene) done() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.did)
	list := strings.Join(s.did, " ")
	s.did = nil
	return list
}

// set sets the trials that fail or hang from now on.
func (s *scene) set(trials map[string]bool, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(trials)
	for _, n := range names {
		trials[n] = true
	}
}

// start runs a suite.
func (s *scene) start(files string, req record.Request) *runner.Run {
	s.t.Helper()
	run := runnertest.Start(s.t, s.r, files, req)
	s.id, s.suite = run.ID(), run.Record().Suite.Path
	return run
}

// run runs a suite to its end. If a trial hangs, it cancels the run.
func (s *scene) run(files string) (runnertest.Result, string) {
	s.t.Helper()
	run := s.start(files, record.Request{})
	if len(s.hang) > 0 {
		s.cancelHanging(run)
	}
	<-run.Done()
	return runnertest.ResultOf(s.t, run), s.done()
}

// cancelHanging cancels a run as soon as all hanging trials have started.
func (s *scene) cancelHanging(run *runner.Run) {
	s.t.Helper()
	for range len(s.hang) { // a trial is announced before its agent starts
		select {
		case <-s.hangs:
		case <-run.Done():
		}
	}
	run.Cancel()
}

// edit replaces text in the suite's file, which must contain it.
func (s *scene) edit(old, text string) {
	s.t.Helper()
	b, err := os.ReadFile(s.suite)
	require.NoError(s.t, err)
	require.Contains(s.t, string(b), old)
	require.NoError(s.t, os.WriteFile(s.suite, []byte(strings.ReplaceAll(string(b), old, text)), 0o600))
}

// resume resumes the run and waits for its end.
func (s *scene) resume() (runnertest.Result, []*record.Event, string) {
	s.t.Helper()
	s.done()
	res, events := runnertest.Resumed(s.t, s.r, s.id)
	return res, events, s.done()
}

const threeTasks = `
-- eval.yaml --
name: three
config: {executor: agent, trials_per_task: 2}
tasks:
  - {id: a, prompt: x, graders: [{name: out, type: text, config: {contains: [OUT]}}]}
  - {id: b, prompt: x, graders: [{name: out, type: text, config: {contains: [OUT]}}]}
  - {id: c, prompt: x, graders: [{name: out, type: text, config: {contains: [OUT]}}]}
`

// A cancelled run continues where it was. Replayed from the start, it is one run with one end.
func TestResumeCancelled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "b/2")
	before, _ := s.run(threeTasks)
	require.Equal(t, record.StatusCancelled, before.Status)
	s.set(s.hang)
	require.NoError(t, os.WriteFile(filepath.Join(s.state, "runs", s.id, "cancel.request"), nil, 0o600)) // the request came too late
	res, events, did := s.resume()
	require.Equal(t, "b/2 c/1 c/2", did)
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Equal(t, 6, res.Summary.Trials.Passed)
	require.Equal(t, 6, res.Summary.Trials.Total)
	require.Contains(t, events[0].Message, "3 of 6 trials kept; 3 run again")
	require.GreaterOrEqual(t, res.Summary.DurationMS, before.Summary.DurationMS)

	all := runnertest.Follow(t, runnertest.Reopened(t, s.r, s.id), 1)
	for i, e := range all {
		require.EqualValues(t, i+1, e.Seq)
	}
	require.Equal(t, 1, strings.Count(runnertest.Outline(all), "run_complete"))
	require.True(t, strings.HasSuffix(runnertest.Outline(all), "run_complete completed\nend completed\n"))
	require.Contains(t, runnertest.Logs(all), "the run ended here (cancelled) and was resumed later")
}

// Trials in error run again, even in a run that completed. Nothing is left to run after that.
func TestResumeErrors(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.fail, "a/1", "c/2")
	before, _ := s.run(threeTasks)
	require.Equal(t, record.StatusCompleted, before.Status)
	require.Equal(t, 2, before.Summary.Trials.Errors)
	s.set(s.fail, "c/2")
	res, _, did := s.resume()
	require.Equal(t, "a/1 c/2", did)
	require.Equal(t, 1, res.Summary.Trials.Errors)
	require.Equal(t, 5, res.Summary.Trials.Passed)
	s.set(s.fail)
	res, events, did := s.resume()
	require.Equal(t, "c/2", did)
	require.Equal(t, 6, res.Summary.Trials.Passed)
	require.Equal(t, "run_resumed\ntask_start c\ntrial_start c 2/2\ntrial_complete c 2/2 passed\ntask_complete c "+
		"passed\nrun_complete completed\nend completed\n",
		runnertest.Outline(events))
	_, err := runnertest.Resume(t, s.r, s.id)
	require.EqualError(t, err, "run "+s.id+" has nothing left to run: its status is completed")
	require.Equal(t, record.StatusCompleted, runnertest.ResultOf(t, runnertest.Reopened(t, s.r, s.id)).Status, "and it is as it was")
}

// Changed tasks run again, new ones are added, removed ones are skipped, and the log reports it.
// Reordered tasks are the same tasks.
func TestResumeChangedSuite(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "c/1")
	s.run(threeTasks)
	s.set(s.hang)
	s.edit("  - {id: a, prompt: x", "  - {id: new, prompt: x}\n  - {id: c, prompt: x}\n  - {id: a, prompt: y")
	s.edit("  - {id: c, prompt: x, graders: [{name: out, type: text, config: {contains: [OUT]}}]}\n", "")
	s.edit("  - {id: b, prompt: x, graders: [{name: out, type: text, config: {contains: [OUT]}}]}\n", "")
	res, events, did := s.resume()
	require.Equal(t, "a/1 a/2 c/1 c/2 new/1 new/2", did)
	require.Contains(t, events[0].Message, "0 of 6 trials kept; 2 run again because their task changed; 2 run again")
	require.Contains(t, runnertest.Logs(events), "warning no longer in the suite (skipped): b\nwarning new in the suite: new\n")
	require.Equal(t, 3, res.Summary.Total)
	require.Equal(t, 6, res.Summary.Trials.Total)
	require.Equal(t, []string{"new", "c", "a"}, recordtest.IDs(res.Tasks)[:3])
	for _, task := range res.Tasks {
		require.Len(t, task.Trials, 2)
	}
	p, err := runnertest.Reopened(t, s.r, s.id).Progress()
	require.NoError(t, err)
	require.Equal(t, 6, p.Trials.Passed)
	require.Equal(t, 6, p.Trials.Total)
}

// The hash of a trial covers neither the threshold nor the number of trials. Verdicts of tasks
// change without execution.
func TestResumeThresholdAndTrials(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "c/2")
	before, _ := s.run(strings.Replace(threeTasks, "contains: [OUT]", "contains: [a-1]", 1))
	require.Equal(t, record.Failed, before.Task(t, "a").Verdict, "one of two passed")
	s.set(s.hang)
	s.edit("  - {id: a,", "  - {id: a, pass_threshold: 0.5,")
	res, events, did := s.resume()
	require.Equal(t, "c/2", did)
	require.Equal(t, record.Passed, res.Task(t, "a").Verdict)
	require.Equal(t, 3, res.Summary.Passed)
	require.Contains(t, runnertest.Outline(events), "task_complete a passed")
	require.NotContains(t, runnertest.Outline(events), "task_complete b")

	runnertest.CutRun(t, filepath.Join(s.state, "runs", s.id), before2(`"run_complete"`))
	s.edit("trials_per_task: 2", "trials_per_task: 1")
	res, events, did = s.resume()
	require.Empty(t, did)
	require.Equal(t, 3, res.Summary.Trials.Total)
	require.Len(t, res.Task(t, "c").Trials, 1)
	require.Equal(t, 3, strings.Count(runnertest.Outline(events), "task_complete"), "each is reported again")

	runnertest.CutRun(t, filepath.Join(s.state, "runs", s.id), before2(`"run_complete"`))
	s.edit("trials_per_task: 1", "trials_per_task: 3")
	res, _, did = s.resume()
	require.Equal(t, "a/2 a/3 b/2 b/3 c/2 c/3", did, "those that were left out are forgotten")
	require.Equal(t, 9, res.Summary.Trials.Total)
	require.Equal(t, record.Failed, res.Task(t, "a").Verdict, "one of three passed")
}

// before2 removes the last line that contains the text, and all lines after it.
func before2(text string) func(string) bool {
	resumed := false
	return func(line string) bool {
		resumed = resumed || strings.Contains(line, `"run_resumed"`)
		return !resumed || !strings.Contains(line, text)
	}
}

// Tasks that fail_fast stopped remain stopped while the failed task is kept. Tasks before it in
// the suite run.
func TestResumeFailFast(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.fail, "a/2")
	files := strings.Replace(threeTasks, "trials_per_task: 2", "trials_per_task: 2, fail_fast: true", 1)
	files = strings.Replace(files,
		"{id: b, prompt: x, graders: [{name: out, type: text, config: {contains: [OUT]}}]}",
		"{id: b, prompt: x, graders: [{name: out, type: text, config: {contains: [b-1]}}]}", 1)
	before, did := s.run(files)
	require.Equal(t, "a/1 a/2 b/1 b/2", did)
	require.Equal(t, record.Skipped, before.Task(t, "c").Verdict)
	s.set(s.fail)
	res, _, did := s.resume()
	require.Equal(t, "a/2", did)
	require.Equal(t, record.Passed, res.Task(t, "a").Verdict)
	require.Equal(t, record.Skipped, res.Task(t, "c").Verdict)
	require.Equal(t, 2, res.Summary.Trials.Skipped)
	require.Contains(t, res.Trial(t, "c", 1).Error, "fail_fast is on")
	_, err := runnertest.Resume(t, s.r, s.id)
	var nothing *runner.NothingLeftError
	require.ErrorAs(t, err, &nothing)
	s.edit("contains: [b-1]", "contains: [OUT]")
	res, _, did = s.resume()
	require.Equal(t, "b/1 b/2 c/1 c/2", did)
	require.Equal(t, 3, res.Summary.Passed)
}

// Hooks run only for executed trials: those of the run, and those of tasks with executed
// trials.
func TestResumeHooks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "b/2")
	s.run(strings.Replace(threeTasks, "tasks:", `hooks:
  before_run: [{command: echo before run >> log}]
  before_task: [{command: 'echo before $WAZA_TASK_ID >> log'}]
  after_task: [{command: 'echo after $WAZA_TASK_ID >> log'}]
  after_run: [{command: echo after run >> log}]
tasks:`, 1))
	log := filepath.Join(filepath.Dir(s.suite), "log")
	require.NoError(t, os.Remove(log))
	s.set(s.hang)
	s.resume()
	b, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "before run\nbefore b\nafter b\nbefore c\nafter c\nafter run\n", string(b))
}

// A trial is compared with the result of its baseline from the previous session. If the baseline
// runs again, the trial was compared with something else and runs again, too.
func TestResumePairwise(t *testing.T) {
	t.Parallel()
	for _, hooks := range []string{"", "hooks: {before_task: [{command: 'true'}]}\n"} {
		j := &runnertest.PairJudge{}
		s := newScene(t)
		s.pairs = true
		files := "\n-- eval.yaml --\nname: pairs\nbaseline: true\nconfig: {executor: agent, skill_directories: " +
			"[skills], trials_per_task: 2}\n" + hooks +
			"graders: [" + j.Grader(t) + "]\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n" + runnertest.Skill
		want, _ := s.run(files)
		require.Equal(t, 2, want.Summary.Passed)
		s.set(s.hang, "b/1")
		s.run(files)
		s.set(s.hang)
		res, _, did := s.resume()
		require.Equal(t, "b/1 b/2", did)
		runnertest.EqualResults(t, want, res)
		require.Empty(t, j.Strange)
	}
}

// An amendment remains, complete or not. A run that was graded while it was interrupted is still
// one run.
func TestResumeAmended(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "c/1")
	s.run(threeTasks)
	runnertest.Flip(t, s.r, s.id, 0, 2)
	require.Error(t, s.r.Amender().Amend(t.Context(), s.id, func(_ context.Context, a *regrade.Amendment) error {
		return errors.Join(runnertest.FlipIn(a, 1, 1), os.Remove(filepath.Join(s.state, "none")))
	}))
	s.set(s.hang)
	res, _, did := s.resume()
	require.Equal(t, "c/1 c/2", did)
	require.Equal(t, record.Failed, res.Trial(t, "a", 2).Verdict)
	require.Equal(t, 2, res.Summary.Trials.Failed)
	require.Equal(t, 4, res.Summary.Trials.Passed)
	require.Equal(t, 6, res.Summary.Trials.Total)
	runnertest.Flip(t, s.r, s.id, 2, 1)
	h := runnertest.Reopened(t, s.r, s.id)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, 3, p.Trials.Failed)
	require.NotNil(t, p.AmendedAt)
	all := runnertest.Follow(t, h, 1)
	for i, e := range all {
		require.EqualValues(t, i+1, e.Seq)
	}
	require.Equal(t, 1, strings.Count(runnertest.Outline(all), "\nend "))
}

// The cost of earlier sessions counts, because the budget covers the whole run.
func TestResumeBudget(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.set(s.hang, "b/2")
	s.run(strings.Replace(threeTasks, "trials_per_task: 2", "trials_per_task: 2, max_tokens: 6", 1))
	s.set(s.hang)
	res, _, did := s.resume()
	require.Equal(t, "b/2 c/1", did, "each takes a token, and four were taken, one of them in vain")
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Contains(t, res.Error, "config.max_tokens of 6")
	res, _, did = s.resume()
	require.Empty(t, did)
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Equal(t, 5, res.Summary.Trials.Passed)
	s.edit("max_tokens: 6", "max_tokens: 60")
	res, _, did = s.resume()
	require.Equal(t, "c/2", did)
	require.Equal(t, record.StatusCompleted, res.Status)
}

// The duration of a run is the sum of its sessions, without the time between them.
func TestResumeDuration(t *testing.T) {
	t.Parallel()
	want, s, id := wholeRun(t)
	var lines []string
	long := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	half := strings.SplitAfter(string(s.journal), "\n")
	sealed := regexp.MustCompile(`,"mac":"[0-9a-f]{48}","crc":"[0-9a-f]{8}"}\n$`)
	for i, line := range half[:len(half)/2] {
		line = sealed.ReplaceAllString(line, "}\n") // in the format from before checksums and digests
		var e map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		at, err := json.Marshal(long.Add(time.Duration(i) * time.Second))
		require.NoError(t, err)
		line = strings.Replace(line, `,"crc":`+string(e["crc"]), "", 1) // like in older journals
		lines = append(lines, strings.Replace(line, string(e["time"]), string(at), 1))
	}
	request := regexp.MustCompile(`,"recordKey":"[0-9a-f]+","mac":"[0-9a-f]+","crc":"[0-9a-f]+"}\n$`).ReplaceAll(s.record, []byte("}\n"))
	left := state{request, []byte(strings.Join(lines, "")), nil, nil}
	again := left.takesUp(t, id, want)
	var res runnertest.Result
	require.NoError(t, json.Unmarshal(again.result, &res))
	before := int64(len(lines)-1) * 1000
	require.GreaterOrEqual(t, res.Summary.DurationMS, before)
	require.Less(t, res.Summary.DurationMS, before+int64(time.Hour/time.Millisecond))
}

// The newest unfinished run is found, of one suite or of any.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id, err := s.r.Catalog().Unfinished("", "")
	require.NoError(t, err)
	require.Empty(t, id)
	s.run(threeTasks)
	id, err = s.r.Catalog().Unfinished("", "")
	require.NoError(t, err)
	require.Empty(t, id)
	s.set(s.hang, "a/1")
	s.run(threeTasks)
	first, suite := s.id, s.suite
	s.run(threeTasks)
	id, err = s.r.Catalog().Unfinished("", "")
	require.NoError(t, err)
	require.Equal(t, s.id, id)
	id, err = s.r.Catalog().Unfinished("", suite)
	require.NoError(t, err)
	require.Equal(t, first, id)
	id, err = s.r.Catalog().Unfinished("", "/no/such/suite")
	require.NoError(t, err)
	require.Empty(t, id)
}
