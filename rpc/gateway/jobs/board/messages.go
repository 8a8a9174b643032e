package board

import (
	"encoding/json"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/text"
)

// Messages contain the fields of the protocol document and, beside them, the fields that
// existing pages read.

// SyncMessage is the first message to a watcher.
type SyncMessage struct {
	Type   string `json:"type"`
	Active []Job  `json:"active_jobs"`
	Recent []Job  `json:"recent_jobs"`
}

// lifecycle is one of the messages job_….
type lifecycle struct {
	Type      string         `json:"type"`
	JobID     string         `json:"job_id"`
	JobType   eval.SuiteKind `json:"job_type,omitempty"`
	Status    Status         `json:"status"`
	User      string         `json:"user"`
	Percent   *int           `json:"progress_pct,omitempty"`
	Detail    string         `json:"progress_detail,omitempty"`
	Ref       string         `json:"result_ref,omitempty"`
	Error     *string        `json:"error,omitempty"`
	Created   *Time          `json:"created_at,omitempty"`
	Timestamp Time           `json:"timestamp"`
}

// encode encodes a message of this file, which never fails.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// head identifies a message about a job. Fields that a kind of message does not have are absent.
type head struct {
	Type      string `json:"type"`
	JobID     string `json:"job_id"`
	EvalID    string `json:"eval_id,omitempty"`
	Reconnect *bool  `json:"reconnect,omitempty"`
	Percent   *int   `json:"progress_pct,omitempty"`
}

// with encodes a message with its fields in data.
func (h head) with(data any) []byte {
	return encode(struct {
		head
		Data any `json:"data"`
	}{h, data})
}

// withBoth encodes a message with its fields in data and beside it.
func (h head) withBoth(data any) []byte {
	message, fields := h.with(data), encode(data)
	return append(append(message[:len(message)-1], ','), fields[1:]...)
}

// initial returns the head of the message at the start of a session, see [messages.init].
func (j *job) initial(kind string, reconnect bool) head {
	h := head{Type: kind, JobID: j.ID, Reconnect: &reconnect}
	if reconnect {
		h.Percent = &j.Percent
	}
	return h
}

func (j *job) lifecycle(kind string, at time.Time) *lifecycle {
	return &lifecycle{Type: kind, JobID: j.ID, JobType: j.Type, Status: j.Status, User: j.User, Timestamp: Time{at}}
}

func (j *job) created(at time.Time) []byte {
	m := j.lifecycle("job_created", at)
	m.Detail, m.Created = j.Detail, &j.Created
	return encode(m)
}

func (j *job) progress(at time.Time) []byte {
	m := j.lifecycle("job_progress", at)
	m.Detail, m.Percent = j.Detail, &j.Percent
	return encode(m)
}

// over returns the last message of a job. An interrupted job has the status failed in messages.
func (j *job) over(at time.Time) []byte {
	kind := map[Status]string{Done: "job_completed", Cancelled: "job_cancelled"}[j.Status]
	if kind == "" {
		kind = "job_failed"
	}
	m := j.lifecycle(kind, at)
	m.Ref = j.Ref
	if kind == "job_failed" {
		m.Error = &j.Error
	}
	return encode(m)
}

// maxFailure is the maximum length of an error in messages, in characters.
const maxFailure = 500

// secrets matches texts that look like keys and tokens. Records never contain waza's own
// secrets; these come from other programs.
var secrets = text.Pattern(`(?i)\b(?:sk|pk|rk)-[a-z0-9_-]{8,}|\bAIza[a-z0-9_-]{20,` +
	`}|\bgh[pousr]_[a-z0-9]{16,}|\bxox[a-z]-[a-z0-9-]{10,}|\bAKIA[A-Z0-9]{12,}` +
	`|\beyJ[a-z0-9_-]{8,}\.[a-z0-9_-]+\.[a-z0-9_-]*|\bbearer\s+[a-z0-9._~+/=-]{8,}` +
	`|((?:api[_-]?key|access[_-]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?(?:bearer\s+|basic\s+)?)[^\s"',;&]{4,}`)

// Failure returns the text of an error for clients: without likely secrets, and at most 500
// characters long.
func Failure(message string) string {
	const most = 64 << 10 // longer texts are cut before the search
	return cut(secrets().ReplaceAllString(text.Head(message, most), "${1}[redacted]"), maxFailure)
}

// cut returns the first n characters of a text.
func cut(s string, n int) string { return text.ClipRunes(strings.ToValidUTF8(s, "\uFFFD"), n) }
