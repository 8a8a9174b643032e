package agents

import (
	"cmp"
	"encoding/json"
	"time"

	"waza/runner/executor/remote"
)

// The messages of the server. schemas/server.json defines their form.
type (
	welcome struct {
		Type      string `json:"type"`
		ServerID  string `json:"serverId"`
		Version   string `json:"version"`
		Timestamp string `json:"timestamp"`
	}
	registrationAck struct {
		Type             string `json:"type"`
		ClientID         string `json:"clientId"`
		Status           string `json:"status"`
		Message          string `json:"message"`
		EvaluationsCount int    `json:"evaluationsCount"`
		Reason           string `json:"reason,omitempty"`
		RetryAfter       int64  `json:"retryAfter,omitempty"`
		TabID            string `json:"tabId,omitempty"`
		IsComposite      bool   `json:"isComposite,omitempty"`
	}
	pong struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
	}
	evaluate struct {
		JSONRPC string             `json:"jsonrpc"`
		Method  string             `json:"method"`
		Params  *remote.Evaluation `json:"params"`
		ID      string             `json:"id"`
	}
	result struct {
		JSONRPC string          `json:"jsonrpc,omitempty"`
		ID      json.RawMessage `json:"id"`
		Result  struct{}        `json:"result"`
	}
	failure struct {
		JSONRPC string          `json:"jsonrpc"`
		Error   failureBody     `json:"error"`
		ID      json.RawMessage `json:"id"`
	}
	failureBody struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data,omitempty"`
	}
)

// now returns the current time in the format of messages.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// failureOf returns the answer to an invalid message.
func failureOf(f *fault) *failure {
	return &failure{"2.0", failureBody{f.Code, f.Message, f.Data}, json.RawMessage(cmp.Or(f.ID, "null"))}
}

// encodeEvaluation encodes the request for an evaluation.
func encodeEvaluation(id string, e *remote.Evaluation) ([]byte, error) {
	if e.Metadata.Tags == nil || e.Metadata.Priority == "" || len(e.Input) == 0 {
		filled := *e
		if e = &filled; e.Metadata.Tags == nil {
			e.Metadata.Tags = []string{}
		}
		e.Metadata.Priority = cmp.Or(e.Metadata.Priority, "normal")
		if len(e.Input) == 0 {
			e.Input = json.RawMessage("{}")
		}
	}
	if fits(id, e) {
		return appendEvaluation(id, e), nil
	}
	return serverSchemas.Encode(methodEvaluate, &evaluate{"2.0", methodEvaluate, e, id})
}
