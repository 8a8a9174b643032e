package board

import (
	"waza/eval"
	"waza/runner/record"
	"waza/runner/replay"
)

// messages creates the additional messages for jobs of a kind. Each value belongs to one session
// of a run. To add a kind, add one file and one line in kinds.
type messages interface {
	// init returns the message at the start of a session. With reconnect, it returns the message
	// for clients that connect later. The board is locked; event may run at the same time.
	init(j *job, reconnect bool) []byte
	// event returns the messages about an event of the run, in order. One goroutine calls it
	// with each event of the session.
	event(e *record.Event) [][]byte
}

// progressing is implemented by kinds with an additional progress message.
type progressing interface {
	// progress returns the message after each job_progress. The board is locked; event may run
	// at the same time.
	progress(j *job) []byte
}

// opening is implemented by kinds with additional messages at the start of a session.
type opening interface {
	// opening returns the messages after the first message of a session. Clients that connect
	// later do not get them.
	opening() [][]byte
}

// session is what the messages of a session are about.
type session struct {
	rec *record.Run
	// state is the state of the run after the last event. It changes before [messages.event] is
	// called, while the board is locked.
	state   *replay.Follower
	answers map[caseKey]answer // of a param_tune, including those of earlier sessions
}

// newSession returns a session of a run that has come as far as st; nil means before its first
// event.
func newSession(rec *record.Run, st *replay.State) *session {
	kind := rec.Suite.KindName()
	return &session{
		rec: rec, state: replay.ContinueFollower(rec, st, kind != eval.Judge && kind != eval.Benchmark), answers: map[caseKey]answer{},
	}
}

// add adds the answer of a trial.
func (s *session) add(task int, t *record.Trial) {
	if a, ok := answerOf(t); ok {
		s.answers[caseKey{task, t.TrialNum}] = a
	}
}

// answer describes an answered trial.
type answer struct {
	took int64            // time of the executor in milliseconds
	call *record.ToolCall // the name of the call that bestCall returns; nil without calls
}

// answerOf returns the answer of a trial; false without one.
func answerOf(t *record.Trial) (a answer, ok bool) {
	if !isAnswered(t.Verdict) {
		return a, false
	}
	a.took = t.ExecutorMS
	if call := bestCall(t); call != nil {
		a.call = &record.ToolCall{Name: call.Name}
	}
	return a, true
}

// caseKey identifies a trial by the index of its task and its number.
type caseKey struct{ task, trial int }

// kinds maps each kind to the function that creates its messages.
var kinds = map[eval.SuiteKind]func(s *session) messages{
	eval.ToolEval:   newToolEval,
	eval.ParamTune:  newParamTune,
	eval.PromptTune: newPromptTune,
	eval.Judge:      newJudge,
	eval.Benchmark:  newBenchmark,
}

// messagesOf returns the messages of a run. Unknown kinds of later versions of waza get those of
// tool_eval.
func messagesOf(s *session) messages {
	if of := kinds[s.rec.Suite.KindName()]; of != nil {
		return of(s)
	}
	return newToolEval(s)
}

// isAnswered reports whether a trial has an answer of the agent, whatever its grade is.
func isAnswered(v record.Verdict) bool {
	return v == record.Passed || v == record.Failed || v == record.NeedsReview
}

// isCase reports whether an event is the end of a case: a trial of a task of the suite.
func isCase(rec *record.Run, e *record.Event) bool {
	return e.Type == record.TrialComplete && e.Role == record.RoleTask && e.TaskNum >= 1 && e.TaskNum <= len(rec.Tasks)
}
