package agents

import (
	"bytes"
	"encoding/json"

	"waza/runner/executor/remote"
)

// Requests and responses are the messages that count when a thousand agents work at once,
// and checking one against its schema costs as much as sending it. The functions of this
// file prove the usual ones right with less. They never accept what the schema does not,
// as TestQuickChecksAcceptNothingElse shows; what they do not accept, the schema decides.

// fits reports whether the request of an evaluation certainly fits its schema, once
// encoding/json takes it.
func fits(id string, e *remote.Evaluation) bool {
	switch e.Metadata.Priority {
	case "high", "normal", "low":
	default:
		return false
	}
	return id != "" && e.ID != "" && e.Name != "" && e.Tool != "" && e.Timeout >= 1 &&
		e.Metadata.Retries >= 0 && e.Metadata.Tags != nil && len(e.Input) > 0
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
	fields, isObject := membersOf(result)
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
