package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
	"waza/runner/replay"
)

type startInput struct {
	Path       string `json:"path" jsonschema:"suite file, or a directory that holds one suite"`
	Model      string `json:"model,omitempty" jsonschema:"model to use instead of the suite's"`
	JudgeModel string `json:"judge_model,omitempty" jsonschema:"judge model to use instead of the suite's"`
}

type startedRun struct {
	RunID    string   `json:"run_id"`
	Status   string   `json:"status" jsonschema:"always running"`
	Warnings []string `json:"warnings,omitempty" jsonschema:"requirements of the run that this machine lacks"`
}

func (s runTools) startRun(ctx context.Context, _ *sdk.CallToolRequest, in startInput) (*startedRun, error) {
	run, err := s.start(ctx, runInput{Path: in.Path, Model: in.Model, JudgeModel: in.JudgeModel})
	if err != nil {
		return nil, err
	}
	return &startedRun{run.RunID, string(run.Status), s.sentences(run.Diagnostics)}, nil
}

type runInput struct {
	Path           string       `json:"path" jsonschema:"suite file, or a directory that holds one suite"`
	Tasks          []string     `json:"tasks,omitempty" jsonschema:"run only tasks whose id or name matches one of these globs"`
	Tags           []string     `json:"tags,omitempty" jsonschema:"run only tasks with a tag that matches one of these globs"`
	Trials         int          `json:"trials,omitempty" jsonschema:"number of trials per task instead of the suite's"`
	Agent          string       `json:"agent,omitempty" jsonschema:"agent to use instead of the suite's"`
	Executor       string       `json:"executor,omitempty" jsonschema:"executor to use instead of the suite's"`
	Model          string       `json:"model,omitempty" jsonschema:"model to use instead of the suite's"`
	JudgeModel     string       `json:"judge_model,omitempty" jsonschema:"judge model to use instead of the suite's"`
	Sandbox        any          `json:"sandbox,omitempty" jsonschema:"sandbox instead of the suite's: off, auto, strict, container, or an object with some of the keys of config.sandbox"`
	TimeoutSeconds float64      `json:"timeout_seconds,omitempty" jsonschema:"timeout of one attempt at a trial in seconds, instead of the suite's and the tasks' timeouts"`
	Cache          bool         `json:"cache,omitempty" jsonschema:"reuse unchanged trials of earlier runs; if only graders changed, grade the recorded trials again"`
	FailFast       bool         `json:"fail_fast,omitempty" jsonschema:"stop after the first task that failed"`
	Decide         *decideInput `json:"decide,omitempty" jsonschema:"answer whether side b is better than side a with as few trials as possible; the result has the decision"`
	WaitSeconds    *float64     `json:"wait_seconds,omitempty" jsonschema:"seconds to wait for the end, from 0. After that the run continues, and waza_run_result returns its result. When absent: until the run ends for clients that ask for progress, else 50"`
}

// decideInput has the parameters of decide in eval.run.
type decideInput struct {
	A         string   `json:"a" jsonschema:"the side to compare with: a model, a cell of the suite's matrix, a git revision of the skills, or none for the agent without skills"`
	B         string   `json:"b" jsonschema:"the side that may be better: a model or a cell, or . for the skills as they are"`
	BetterBy  float64  `json:"better_by" jsonschema:"the least gain worth having, in points of the pass rate, more than 0 and at most 100"`
	Risk      *float64 `json:"risk,omitempty" jsonschema:"the greatest chance of a wrong answer, more than 0 and less than 0.5; 0.05 when absent"`
	MaxCost   *float64 `json:"max_cost,omitempty" jsonschema:"the most that the run can cost, in US dollars; give this or max_trials"`
	MaxTrials *int     `json:"max_trials,omitempty" jsonschema:"the most trials that the run can execute; 0 runs nothing and uses recorded trials"`
	Pairs     *int     `json:"pairs,omitempty" jsonschema:"the most pairs of trials of each task; 100 when absent"`
	Seed      *int     `json:"seed,omitempty" jsonschema:"order of the tasks, from 1; when absent, that of the newest run with the same sides, or a random one"`
	Fresh     bool     `json:"fresh,omitempty" jsonschema:"reuse no trials of earlier runs"`
}

type started struct {
	RunID       string
	Status      record.Status
	Diagnostics decode.Diagnostics
}

// start starts a run. eval.run has the same parameters, except for the wait.
func (s runTools) start(ctx context.Context, in runInput) (*started, error) {
	path, err := s.within("path", in.Path)
	if err != nil {
		return nil, err
	}
	in.Path, in.WaitSeconds = path, nil
	r := &started{}
	// Without this, cancelling the call could leave a run that nobody knows about.
	if err := s.daemon.call(context.WithoutCancel(ctx), "eval.run", in, r); err != nil {
		return nil, err
	}
	return r, nil
}

// usualWait is how long a call waits for a run if the client gets no sign that the server is
// alive: clients limit calls to a minute.
const usualWait = 50 * time.Second

// waitOf returns how long to wait for a run; 0 means to its end.
func waitOf(req *sdk.CallToolRequest, seconds *float64) (wait time.Duration, ends bool, err error) {
	const most = 24 * time.Hour
	switch {
	case seconds == nil && req.Params.GetProgressToken() != nil:
		return 0, false, nil
	case seconds == nil:
		return usualWait, true, nil
	case !(*seconds >= 0 && *seconds <= most.Seconds()): // also false for NaN
		return 0, false, fmt.Errorf("wait_seconds must be between 0 and %v, got %v", most.Seconds(), *seconds)
	}
	return time.Duration(*seconds * float64(time.Second)), true, nil
}

func (s runTools) run(ctx context.Context, req *sdk.CallToolRequest, in runInput) (*runDigest, error) {
	wait, bounded, err := waitOf(req, in.WaitSeconds)
	if err != nil {
		return nil, err
	}
	run, err := s.start(ctx, in)
	if err != nil {
		return nil, err
	}
	h, err := s.runner.Catalog().Run(run.RunID)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, req, h, wait, bounded); err != nil {
		if ctx.Err() != nil { // the client cancelled the call
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			_ = s.daemon.call(limit, "run.cancel", map[string]any{"runId": run.RunID}, nil)
		}
		return nil, err
	}
	d, err := s.digest(h, digestOptions{})
	if err == nil {
		d.Warnings = s.sentences(run.Diagnostics)
	}
	return d, err
}

// errClientLeft means that a call ended because its client left.
var errClientLeft = errors.New("the client disconnected; its runs are cancelled")

// await waits until a run or the wait ends, and reports progress to clients that ask for it. The
// error is the cause of ctx, or errClientLeft.
func (s runTools) await(ctx context.Context, req *sdk.CallToolRequest, h record.Handle, wait time.Duration, bounded bool) error {
	limit, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if bounded {
		defer time.AfterFunc(wait, cancel).Stop()
	}
	p := newProgress(req, h.Record())
	defer p.close()
	sub := h.Subscribe(1)
	for {
		events, err := sub.Next(limit)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.life.Err() != nil:
			return errClientLeft
		case limit.Err() != nil: // the wait ended, but not the run
			return nil
		case err != nil:
			return err
		}
		for _, e := range events {
			if e.Type == record.End {
				return nil
			}
			p.add(e)
		}
	}
}

// find returns the run for an agent's reference: its id, the start of it, latest for the newest
// run of the server's project, or latest~1 for the run before that.
func (s *server) find(ref string) (record.Handle, error) {
	h, err := s.runner.Catalog().Find(s.dir, cmp.Or(ref, catalog.LatestRun))
	if errors.Is(err, record.ErrRunNotFound) {
		return nil, fmt.Errorf("run %q not found; waza_results_runs lists runs", shorten(ref, 200))
	}
	return h, err
}

// damageOf describes the damage to the record of a run; empty without damage. The daemon still
// writes the record of a run of its own.
func damageOf(h record.Handle) (string, error) {
	if _, live := h.(*runner.Run); live {
		return "", nil
	}
	d, err := h.Damage()
	return damageText(d), err
}

func damageText(d *record.Damage) string {
	if d == nil {
		return ""
	}
	return shorten(d.String(), maxSentence)
}

type runIDInput struct {
	RunID string `json:"run_id" jsonschema:"id of the run, or latest for the newest of this project"`
}

type runState struct {
	ID          string `json:"id"`
	Status      string `json:"status" jsonschema:"running, completed, failed or canceled"`
	Error       string `json:"error,omitempty" jsonschema:"why the run failed or ended early"`
	Damage      string `json:"damage,omitempty" jsonschema:"parts of the record that are lost, changed or not verifiable"`
	TrialsDone  int    `json:"trials_done"`
	TrialsTotal int    `json:"trials_total" jsonschema:"planned trials; a run that decides a question needs few of them"`
	Deciding    string `json:"deciding,omitempty" jsonschema:"how far the run is with its question: pairs, gain with its interval, and budget"`
}

func (s runTools) runStatus(ctx context.Context, _ *sdk.CallToolRequest, in runIDInput) (*runState, error) {
	h, err := s.find(in.RunID)
	if err != nil {
		return nil, err
	}
	var status struct {
		Status record.Status
		Error  string
		Damage *record.Damage
	}
	if err := s.daemon.call(ctx, "run.status", map[string]any{"runId": h.ID()}, &status); err != nil {
		return nil, err
	}
	p, err := h.Progress()
	if err != nil {
		return nil, err
	}
	r := &runState{
		ID: h.ID(), Status: foreignStatus(status.Status), Error: shorten(status.Error, maxSentence),
		Damage: damageText(status.Damage), TrialsDone: p.Trials.Done(),
	}
	if p.Deciding != nil {
		r.Deciding = shorten(p.Deciding.Text, maxSentence)
	}
	for _, t := range h.Record().Tasks {
		if t.Role == record.RoleTask {
			r.TrialsTotal += t.Trials
		}
	}
	return r, nil
}

// foreignStatus returns the word of microsoft/waza for a status.
func foreignStatus(s record.Status) string {
	switch s {
	case record.StatusCancelled:
		return "canceled"
	case record.StatusInterrupted:
		return "failed"
	}
	return string(s)
}

type cancelledRun struct {
	Canceled bool   `json:"canceled" jsonschema:"whether the run was canceled; false if it was already over"`
	Status   string `json:"status" jsonschema:"current status of the run"`
}

func (s runTools) cancelRun(ctx context.Context, _ *sdk.CallToolRequest, in runIDInput) (*cancelledRun, error) {
	h, err := s.find(in.RunID)
	if err != nil {
		return nil, err
	}
	var state struct{ Status record.Status }
	if err := s.daemon.call(ctx, "run.cancel", map[string]any{"runId": h.ID()}, &state); err != nil {
		return nil, err
	}
	return &cancelledRun{state.Status == record.StatusCancelled, foreignStatus(state.Status)}, nil
}

// progress reports the progress of a run to a client. The SDK's session sends it, in a goroutine
// that ends with close. A client that does not read delays neither the run nor its events.
type progress struct {
	news chan sdk.ProgressNotificationParams // the newest unsent progress
	over chan struct{}
	sent chan struct{} // closed when the goroutine has ended

	token any
	state *replay.Follower
	asks  bool // the run decides a question
	done  int  // never decreases, unlike the number of ended trials of a run that is resumed
}

const (
	beat = 10 * time.Second       // longest time without progress
	pace = 200 * time.Millisecond // shortest time between two reports
)

// newProgress returns nil for clients that do not ask for progress.
func newProgress(req *sdk.CallToolRequest, rec *record.Run) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	p := &progress{
		news: make(chan sdk.ProgressNotificationParams, 1), over: make(chan struct{}), sent: make(chan struct{}),
		token: token, state: replay.NewFollower(rec, nil), asks: rec.Question != nil,
	}
	go p.send(req.Session)
	p.notify("run " + rec.RunID + " started")
	return p
}

func (p *progress) close() {
	if p != nil {
		close(p.over)
		<-p.sent
	}
}

// add handles the next event of the run.
func (p *progress) add(e *record.Event) {
	if p == nil {
		return
	}
	p.state.Apply(e)
	if e.Type == record.DecideProgress && e.Deciding != nil {
		p.notify(shorten(e.Deciding.Text, maxSentence))
		return
	}
	ended := p.state.Ended()
	if ended <= p.done {
		return
	}
	p.done = ended
	if e.Trial == nil { // the run was resumed
		return
	}
	if p.asks {
		if e.Verdict != record.Skipped { // the question needs only some of the trials
			p.notify(fmt.Sprintf("%s done; %s trial %d: %s", text.Count(p.done, "trial", "trials"), shorten(e.TaskID, 100), e.TrialNum, e.Verdict))
		}
		return
	}
	p.notify(fmt.Sprintf("%d of %s done; %s trial %d: %s", p.done,
		text.Count(p.state.AllTrials().Total, "trial", "trials"), shorten(e.TaskID, 100), e.TrialNum, e.Verdict))
}

// notify replaces the unsent progress.
func (p *progress) notify(message string) {
	news := sdk.ProgressNotificationParams{ProgressToken: p.token, Progress: float64(p.done), Message: message}
	if !p.asks { // otherwise the total is unknown
		news.Total = float64(max(p.state.AllTrials().Total, p.done))
	}
	select {
	case <-p.news:
	default:
	}
	p.news <- news // never blocks: no other goroutine sends
}

// send sends new progress, at most once per pace. At each beat it also sends a small increase,
// so that clients do not consider the server dead during a long trial.
func (p *progress) send(session *sdk.ServerSession) {
	defer close(p.sent)
	ctx := context.Background() // if the client is gone, the broken output ends this
	beats := time.NewTicker(beat)
	defer beats.Stop()
	var last sdk.ProgressNotificationParams
	quiet := 0.0
	for {
		select {
		case last = <-p.news:
			quiet = 0
		case <-beats.C:
			quiet++
		case <-p.over:
			select {
			case last = <-p.news:
				_ = session.NotifyProgress(ctx, &last)
			default:
			}
			return
		}
		next := last
		next.Progress += quiet / (quiet + 1)
		if session.NotifyProgress(ctx, &next) != nil {
			return
		}
		select {
		case <-time.After(pace):
		case <-p.over:
		}
	}
}
