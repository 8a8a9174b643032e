package agents

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"waza/runner/executor/remote"
)

// Requests and responses are the messages that count when a thousand agents work at once,
// and checking one against its schema costs as much as sending it. The functions of this
// file prove the usual ones right with less. They never accept what the schema does not,
// as TestQuickChecksAcceptNothingElse shows; what they do not accept, the schema decides.

// fits reports whether the request of an evaluation certainly fits its schema.
func fits(id string, e *remote.Evaluation) bool {
	switch e.Metadata.Priority {
	case "high", "normal", "low":
	default:
		return false
	}
	return id != "" && e.ID != "" && e.Name != "" && e.Tool != "" && e.Timeout >= 1 &&
		e.Metadata.Retries >= 0 && e.Metadata.Tags != nil && json.Valid(e.Input) && (len(e.Model) == 0 || json.Valid(e.Model))
}

// appendEvaluation encodes a request that fits, as encoding/json would.
func appendEvaluation(id string, e *remote.Evaluation) []byte {
	b := make([]byte, 0, 256+len(id)+len(e.ID)+len(e.Name)+len(e.URL)+len(e.Tool)+len(e.Input)+len(e.Model))
	b = appendText(append(b, `{"jsonrpc":"2.0","method":"evaluate","params":{"evaluationId":`...), e.ID)
	b = appendText(append(b, `,"name":`...), e.Name)
	if e.URL != "" {
		b = appendText(append(b, `,"url":`...), e.URL)
	}
	b = appendText(append(b, `,"tool":`...), e.Tool)
	b = append(append(b, `,"input":`...), e.Input...)
	if len(e.Model) > 0 {
		b = append(append(b, `,"model":`...), e.Model...)
	}
	b = strconv.AppendInt(append(b, `,"timeout":`...), e.Timeout, 10)
	b = append(b, `,"metadata":{"tags":[`...)
	for i, tag := range e.Metadata.Tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, tag)
	}
	b = strconv.AppendInt(append(b, `],"retries":`...), int64(e.Metadata.Retries), 10)
	b = appendText(append(b, `,"priority":`...), e.Metadata.Priority)
	b = appendText(append(b, `}},"id":`...), id)
	return append(b, '}')
}

// appendText encodes a string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // of a string it never fails
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// isResult reports whether the message is certainly a response with a result.
func (m *incoming) isResult() bool {
	if version := m.fields.get("jsonrpc"); version != nil && string(version) != `"2.0"` || m.id == nil || notNull(m.fields.get("error")) {
		return false
	}
	result := m.fields.get("result")
	if result == nil {
		return false
	}
	fields, isObject := membersOf(result, "status", "executionTime", "metadata", "toolCalls")
	status := fields.get("status")
	if !isObject || status == nil {
		return true
	}
	calls := fields.get("toolCalls")
	return status[0] == '"' && isPositive(fields.get("executionTime")) && startsWith(fields.get("metadata"), '{') &&
		(!notNull(calls) || bytes.Equal(calls, []byte("[]")))
}

// isPositive reports whether a field is missing, null, or a number without a sign.
func isPositive(field json.RawMessage) bool {
	return !notNull(field) || '0' <= field[0] && field[0] <= '9'
}

func startsWith(field json.RawMessage, first byte) bool { return !notNull(field) || field[0] == first }
