package record

import (
	"strconv"

	"waza/eval/jsonwalk"
)

// A run encodes two events and a result for each of its trials, which with encoding/json would
// take more time than everything else that waza does for a trial. Their common members are
// therefore appended one by one. The result is byte for byte that of [jsonwalk.Encode], as
// FuzzAppend checks, and TestAppendKnowsAllFields fails when a struct gets a field that is missing
// here.

// AppendHead appends the event without its trial and without the closing brace, so that the caller
// can append the trial as the last member.
func (e *Event) AppendHead(b []byte) ([]byte, error) {
	m := members{b: append(b, `{"seq":`...)}
	m.b = strconv.AppendInt(m.b, e.Seq, 10)
	m.b = append(m.b, `,"time":`...)
	m.set(jsonwalk.AppendTime(m.b, e.Time))
	m.b = jsonwalk.AppendString(append(m.b, `,"type":`...), e.Type)
	m.b = jsonwalk.AppendText(m.b, `,"taskId":`, e.TaskID)
	m.b = jsonwalk.AppendText(m.b, `,"taskName":`, e.TaskName)
	m.b = jsonwalk.AppendInt(m.b, `,"taskNum":`, e.TaskNum)
	m.b = jsonwalk.AppendInt(m.b, `,"totalTasks":`, e.TotalTasks)
	m.b = jsonwalk.AppendText(m.b, `,"role":`, e.Role)
	m.b = jsonwalk.AppendInt(m.b, `,"trialNum":`, e.TrialNum)
	m.b = jsonwalk.AppendInt(m.b, `,"totalTrials":`, e.TotalTrials)
	m.b = jsonwalk.AppendText(m.b, `,"verdict":`, e.Verdict)
	if e.Score != nil {
		m.number(`,"score":`, *e.Score)
	}
	m.b = jsonwalk.AppendInt(m.b, `,"durationMs":`, e.DurationMS)
	m.b = jsonwalk.AppendTrue(m.b, `,"cached":`, e.Cached)
	m.b = jsonwalk.AppendText(m.b, `,"was":`, e.Was)
	m.b = jsonwalk.AppendText(m.b, `,"level":`, e.Level)
	m.b = jsonwalk.AppendText(m.b, `,"message":`, e.Message)
	m.b = jsonwalk.AppendInt(m.b, `,"attempt":`, e.Attempt)
	optional(&m, `,"prompt":`, e.Prompt)
	m.b = jsonwalk.AppendText(m.b, `,"status":`, e.Status)
	optional(&m, `,"summary":`, e.Summary)
	m.b = jsonwalk.AppendText(m.b, `,"error":`, e.Error)
	optional(&m, `,"criteria":`, e.Criteria)
	if len(e.Kept) > 0 {
		m.any(`,"kept":`, e.Kept)
	}
	m.b = jsonwalk.AppendInt(m.b, `,"keptTrials":`, e.KeptTrials)
	optional(&m, `,"record":`, e.Record)
	optional(&m, `,"comparing":`, e.Comparing)
	optional(&m, `,"comparison":`, e.Comparison)
	optional(&m, `,"findings":`, e.Findings)
	optional(&m, `,"deciding":`, e.Deciding)
	optional(&m, `,"task":`, e.Task)
	return m.b, m.err
}

// AppendJSON appends the trial as JSON.
func (res *Trial) AppendJSON(b []byte) ([]byte, error) {
	return res.AppendMembers(append(b, '{'))
}

// AppendMembers appends the members of the trial and the closing brace.
func (res *Trial) AppendMembers(b []byte) ([]byte, error) {
	m := members{b: append(b, `"taskId":`...)}
	m.b = jsonwalk.AppendString(m.b, res.TaskID)
	m.b = strconv.AppendInt(append(m.b, `,"trialNum":`...), int64(res.TrialNum), 10)
	m.b = jsonwalk.AppendString(append(m.b, `,"hash":`...), res.Hash)
	m.b = jsonwalk.AppendString(append(m.b, `,"verdict":`...), res.Verdict)
	m.score(res.Score)
	if res.ScoreThreshold != nil {
		m.number(`,"scoreThreshold":`, *res.ScoreThreshold)
	}
	m.b = jsonwalk.AppendText(m.b, `,"error":`, res.Error)
	if !res.StartedAt.IsZero() {
		m.b = append(m.b, `,"startedAt":`...)
		m.set(jsonwalk.AppendTime(m.b, res.StartedAt))
	}
	m.b = strconv.AppendInt(append(m.b, `,"durationMs":`...), res.DurationMS, 10)
	m.b = strconv.AppendInt(append(m.b, `,"executorMs":`...), res.ExecutorMS, 10)
	m.b = jsonwalk.AppendInt(m.b, `,"startupMs":`, res.StartupMS)
	m.b = jsonwalk.AppendTrue(m.b, `,"untimed":`, res.Untimed)
	m.b = jsonwalk.AppendTrue(m.b, `,"endedEarly":`, res.EndedEarly)
	m.b = jsonwalk.AppendText(m.b, `,"prompt":`, res.Prompt)
	m.b = jsonwalk.AppendString(append(m.b, `,"output":`...), res.Output)
	m.b = jsonwalk.AppendInt(m.b, `,"outputDropped":`, res.OutputDropped)
	m.graders(res.Graders)
	list(&m, `,"ungraded":`, res.Ungraded)
	m.transcript(res.Transcript)
	optional(&m, `,"usage":`, res.Usage)
	optional(&m, `,"spent":`, res.Spent)
	optional(&m, `,"speed":`, res.Speed)
	optional(&m, `,"tools":`, res.Tools)
	optional(&m, `,"routing":`, res.Routing)
	optional(&m, `,"conditions":`, res.Conditions)
	optional(&m, `,"workspace":`, res.Workspace)
	list(&m, `,"checkpoints":`, res.Checkpoints)
	optional(&m, `,"responder":`, res.Responder)
	list(&m, `,"suspicions":`, res.Suspicions)
	m.b = jsonwalk.AppendText(m.b, `,"tier":`, res.Tier)
	list(&m, `,"attempts":`, res.Attempts)
	optional(&m, `,"cached":`, res.Cached)
	return append(m.b, '}'), m.err
}

// AppendTranscript appends entries as a JSON array; nil as null.
func AppendTranscript(b []byte, entries []Entry) ([]byte, error) {
	m := members{b: b}
	m.entries(entries)
	return m.b, m.err
}

// members is JSON that is being appended to, and the first error.
type members struct {
	b   []byte
	err error
}

func (m *members) set(b []byte, err error) {
	m.b = b
	if m.err == nil {
		m.err = err
	}
}

// any appends a member with encoding/json.
func (m *members) any(name string, v any) {
	m.b = append(m.b, name...)
	m.set(jsonwalk.Append(m.b, v))
}

// optional appends a member with encoding/json unless it is nil.
func optional[T any](m *members, name string, v *T) {
	if v != nil {
		m.any(name, v)
	}
}

// list appends a member with encoding/json unless it is empty.
func list[T any](m *members, name string, v []T) {
	if len(v) > 0 { // because passing a slice as any needs memory
		m.any(name, v)
	}
}

func (m *members) number(name string, f float64) {
	m.b = append(m.b, name...)
	m.set(jsonwalk.AppendFloat(m.b, f))
}

func (m *members) score(score *float64) {
	if score == nil {
		m.b = append(m.b, `,"score":null`...)
		return
	}
	m.number(`,"score":`, *score)
}

func (m *members) graders(list []Grade) {
	m.b = append(m.b, `,"graders":`...)
	if list == nil {
		m.b = append(m.b, "null"...)
		return
	}
	m.b = append(m.b, '[')
	for i := range list {
		if i > 0 {
			m.b = append(m.b, ',')
		}
		m.grade(&list[i])
	}
	m.b = append(m.b, ']')
}

func (m *members) grade(g *Grade) {
	m.b = jsonwalk.AppendString(append(m.b, `{"name":`...), g.Name)
	m.b = jsonwalk.AppendString(append(m.b, `,"type":`...), g.Type)
	m.number(`,"score":`, g.Score)
	m.b = strconv.AppendBool(append(m.b, `,"passed":`...), g.Passed)
	m.number(`,"weight":`, g.Weight)
	m.b = jsonwalk.AppendText(m.b, `,"feedback":`, g.Feedback)
	if g.Details != nil {
		m.any(`,"details":`, g.Details)
	}
	m.b = strconv.AppendInt(append(m.b, `,"durationMs":`...), g.DurationMS, 10)
	m.b = jsonwalk.AppendTrue(m.b, `,"needsReview":`, g.NeedsReview)
	m.b = jsonwalk.AppendTrue(m.b, `,"skillsOnly":`, g.SkillsOnly)
	m.b = jsonwalk.AppendTrue(m.b, `,"selfReported":`, g.SelfReported)
	m.b = jsonwalk.AppendText(m.b, `,"hash":`, g.Hash)
	if len(g.ToolNames) > 0 {
		m.any(`,"toolNames":`, g.ToolNames)
	}
	list(m, `,"changedFiles":`, g.ChangedFiles)
	m.b = jsonwalk.AppendText(m.b, `,"unchecked":`, g.Unchecked)
	m.b = jsonwalk.AppendText(m.b, `,"error":`, g.Error)
	m.b = jsonwalk.AppendInt(m.b, `,"afterTurn":`, g.AfterTurn)
	m.b = jsonwalk.AppendTrue(m.b, `,"negated":`, g.Negated)
	m.b = jsonwalk.AppendTrue(m.b, `,"optional":`, g.Optional)
	optional(m, `,"group":`, g.Group)
	m.b = append(m.b, '}')
}

func (m *members) transcript(entries []Entry) {
	m.b = append(m.b, `,"transcript":`...)
	m.entries(entries)
}

func (m *members) entries(entries []Entry) {
	if entries == nil {
		m.b = append(m.b, "null"...)
		return
	}
	m.b = append(m.b, '[')
	for i := range entries {
		if i > 0 {
			m.b = append(m.b, ',')
		}
		m.entry(&entries[i])
	}
	m.b = append(m.b, ']')
}

func (m *members) entry(e *Entry) {
	m.b = jsonwalk.AppendString(append(m.b, `{"type":`...), e.Type)
	m.b = strconv.AppendInt(append(m.b, `,"atMs":`...), e.AtMS, 10)
	m.b = jsonwalk.AppendText(m.b, `,"role":`, e.Role)
	m.b = jsonwalk.AppendText(m.b, `,"text":`, e.Text)
	optional(m, `,"tool":`, e.Tool)
	list(m, `,"plan":`, e.Plan)
	optional(m, `,"permission":`, e.Permission)
	m.b = append(m.b, '}')
}
