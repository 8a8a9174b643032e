package board

import (
	"waza/eval"
	"waza/runner/record"
)

// messages are what the jobs of a kind send besides the messages of all jobs. The value
// is made for one session of a run. A further kind is one file and one line in kinds.
type messages interface {
	// init returns what is sent when a session starts and, with reconnect, to clients that
	// connect while it runs. The lock of the board is held; event may be called meanwhile.
	init(j *job, reconnect bool) []byte
	// event returns what is sent about an event of the run, in this order. One goroutine
	// calls it, with each event of the session.
	event(e *record.Event) [][]byte
}

// progressing are messages of kinds that say more about the progress of a job.
type progressing interface {
	// progress returns what is sent after each job_progress. The lock of the board is held;
	// event may be called meanwhile.
	progress(j *job) []byte
}

// opening are messages of kinds that say more when a session starts.
type opening interface {
	// opening returns what follows the first message of a session. Clients that connect
	// later are not sent it.
	opening() [][]byte
}

// past is what happened in a run before its messages are made, which may already hold
// events that follow. The zero value holds nothing.
type past struct {
	results []*record.Task // by task; nil for those that have not ended
	prompts []record.Prompt
}

// kinds make the messages of each kind.
var kinds = map[eval.SuiteKind]func(rec *record.Run, before past) messages{
	eval.ToolEval:   newToolEval,
	eval.ParamTune:  newParamTune,
	eval.PromptTune: newPromptTune,
	eval.Judge:      newJudge,
	eval.Benchmark:  newBenchmark,
}

// messagesOf makes the messages of a run. A kind that only a later version of waza knows has
// those of tool_eval.
func messagesOf(rec *record.Run, before past) messages {
	if of := kinds[rec.Suite.KindName()]; of != nil {
		return of(rec, before)
	}
	return newToolEval(rec, before)
}

// isCase reports whether an event says that a case has ended: a trial of a task of the suite.
func isCase(rec *record.Run, e *record.Event) bool {
	return e.Type == record.TrialComplete && e.Role == record.RoleTask && e.TaskNum >= 1 && e.TaskNum <= len(rec.Tasks)
}
