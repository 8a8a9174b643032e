package agents

import (
	"bytes"
	"encoding/json"
	"strconv"

	"waza/rpc/gateway/internal/message"
	"waza/runner/executor/remote"
)

// Requests and responses dominate when a thousand agents work at once, and checking one against
// its schema costs as much as sending it. The functions of this file recognize the usual valid
// ones at a lower cost. They never accept a message that the schema does not accept, as
// TestQuickChecksAcceptNothingElse shows. For all other messages, the schema decides.

// fits reports whether the request for an evaluation certainly matches its schema.
func fits(id string, e *remote.Evaluation) bool {
	switch e.Metadata.Priority {
	case "high", "normal", "low":
	default:
		return false
	}
	return id != "" && e.ID != "" && e.Name != "" && e.Tool != "" && e.Timeout >= 1 &&
		e.Metadata.Retries >= 0 && e.Metadata.Tags != nil && json.Valid(e.Input) && (len(e.Model) == 0 || json.Valid(e.Model))
}

// appendEvaluation encodes a matching request in the form of encoding/json.
func appendEvaluation(id string, e *remote.Evaluation) []byte {
	b := make([]byte, 0, 256+len(id)+len(e.ID)+len(e.Name)+len(e.URL)+len(e.Tool)+len(e.Input)+len(e.Model))
	b = message.AppendText(append(b, `{"jsonrpc":"2.0","method":"evaluate","params":{"evaluationId":`...), e.ID)
	b = message.AppendText(append(b, `,"name":`...), e.Name)
	if e.URL != "" {
		b = message.AppendText(append(b, `,"url":`...), e.URL)
	}
	b = message.AppendText(append(b, `,"tool":`...), e.Tool)
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
		b = message.AppendText(b, tag)
	}
	b = strconv.AppendInt(append(b, `],"retries":`...), int64(e.Metadata.Retries), 10)
	b = message.AppendText(append(b, `,"priority":`...), e.Metadata.Priority)
	b = message.AppendText(append(b, `}},"id":`...), id)
	return append(b, '}')
}

// isResult reports whether the message is certainly a response with a result.
func (m *incoming) isResult() bool {
	if version := m.fields.Get("jsonrpc"); version != nil && string(version) != `"2.0"` || m.id == nil || notNull(m.fields.Get("error")) {
		return false
	}
	result := m.fields.Get("result")
	if result == nil {
		return false
	}
	fields, isObject := message.MembersOf(result, "status", "executionTime", "metadata", "toolCalls")
	status := fields.Get("status")
	if !isObject || status == nil {
		return true
	}
	calls := fields.Get("toolCalls")
	return status[0] == '"' && isPositive(fields.Get("executionTime")) && startsWith(fields.Get("metadata"), '{') &&
		(!notNull(calls) || bytes.Equal(calls, []byte("[]")))
}

// isPositive reports whether a field is missing, null, or a number without a sign.
func isPositive(field json.RawMessage) bool {
	return !notNull(field) || '0' <= field[0] && field[0] <= '9'
}

func startsWith(field json.RawMessage, first byte) bool { return !notNull(field) || field[0] == first }
