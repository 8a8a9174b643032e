package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/record"
)

// Limits of what an answer adds to a trial.
const (
	// maxFault is the maximum length of an agent's error, in characters.
	maxFault = 4000
	// maxDepth is the maximum nesting of arguments and results of tools. JSON parsers accept
	// 10,000 levels in Go and 1,000 elsewhere.
	maxDepth = 500
	// maxCount and maxCost are the maximum token count and cost in US dollars that an agent can
	// report.
	maxCount = 1 << 40
	maxCost  = 1e9
)

// result is the result of an evaluation if it is an object with a status or an output. Any other
// value is the output itself.
type result struct {
	Status                                          *string
	Output, Error, Message, Reason                  json.RawMessage
	ExecutionTime, ToolCalls, Metadata, Usage, Cost json.RawMessage
}

// outcome converts an answer to the outcome of the trial. took is the time that the agent had
// the evaluation.
func outcome(t *executor.Trial, a *Answer, took time.Duration) (executor.Outcome, error) {
	switch {
	case a.Error != nil:
		return executor.Outcome{}, a.fault()
	case len(bytes.TrimSpace(a.Result)) == 0:
		return executor.Outcome{}, fmt.Errorf("the agent %s answered with neither a result nor an error", a.ClientID)
	case !json.Valid(a.Result):
		return executor.Outcome{}, fmt.Errorf("the agent %s answered with a result that is not JSON", a.ClientID)
	}
	r, ok := wrapped(a.Result)
	if !ok {
		out := executor.Outcome{Output: asText(a.Result)}
		t.Transcript.Message("assistant", out.Output)
		return out, nil
	}
	recordCalls(t, r.ToolCalls)
	out := executor.Outcome{Output: asText(r.Output), Usage: r.usage()}
	if d := milliseconds(r.ExecutionTime); d > 0 && d < took {
		out.Startup = took - d
	}
	if out.Output != "" {
		t.Transcript.Message("assistant", out.Output)
	}
	if r.Status == nil || strings.EqualFold(*r.Status, "success") {
		return out, nil
	}
	why := fmt.Sprintf("the agent ended with status %q", text.Clip(*r.Status, 80))
	for _, raw := range []json.RawMessage{r.Error, r.Message, r.Reason} {
		if said := messageOf(raw); said != "" {
			why += ": " + text.Clip(said, maxFault)
			break
		}
	}
	return out, &executor.FailedError{Reason: why}
}

// wrapped decodes a result that is an object with a status or an output; ok is false for any
// other value.
func wrapped(raw json.RawMessage) (r result, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return r, false
	}
	_, hasOutput := members["output"]
	status, hasStatus := members["status"]
	if hasStatus && json.Unmarshal(status, &r.Status) != nil {
		r.Status, hasStatus = nil, false // the status has a different meaning
	}
	r = result{
		Status: r.Status, Output: members["output"], Error: members["error"], Message: members["message"], Reason: members["reason"],
		ExecutionTime: members["executionTime"], ToolCalls: members["toolCalls"], Metadata: members["metadata"],
		Usage: members["usage"], Cost: members["cost"],
	}
	return r, hasOutput || hasStatus && r.Status != nil
}

// asText returns a value in the form for graders: a string unchanged, any other value as compact
// JSON, and no value as an empty text.
func asText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// messageOf returns the text of an error: the value itself, or its member message or error.
func messageOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	var o struct {
		Message, Error json.RawMessage
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	for _, member := range []json.RawMessage{o.Message, o.Error} {
		if json.Unmarshal(member, &s) == nil && strings.TrimSpace(s) != "" {
			return strings.TrimSpace(s)
		}
	}
	return ""
}

// fault converts an error answer to the error of the trial.
func (a *Answer) fault() error {
	said := text.Clip(strings.TrimSpace(a.Error.Message), maxFault)
	if more := messageOf(a.Error.Data); more != "" && !strings.Contains(said, more) {
		said = strings.TrimPrefix(said+": "+text.Clip(more, maxFault), ": ")
	}
	switch a.Error.Code {
	case CodeToolFailed:
		said = cmp.Or(said, "the agent failed")
		return &executor.FailedError{Reason: said}
	case CodeTimeout:
		return fmt.Errorf("%w: %s", executor.ErrTimeout, said)
	case CodeRateLimited:
		return &executor.RetryError{Reason: fmt.Sprintf("the agent %s is overloaded", a.ClientID)}
	}
	return errors.New(strings.TrimSuffix(fmt.Sprintf("the agent %s answered with error %d: %s", a.ClientID, a.Error.Code, said), ": "))
}

// toolCall is a call that an agent reports.
type toolCall struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Name      string          `json:"name"`
	Timestamp json.RawMessage `json:"timestamp"`
	Duration  json.RawMessage `json:"duration"`
	Status    string          `json:"status"`
	Args      json.RawMessage `json:"args"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Result    json.RawMessage `json:"result"`
	Output    json.RawMessage `json:"output"`
	Error     json.RawMessage `json:"error"`
}

// recordCalls adds the calls that an agent reports to the transcript. It skips unreadable calls
// with a warning.
func recordCalls(t *executor.Trial, raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var calls []json.RawMessage
	if json.Unmarshal(raw, &calls) != nil {
		t.Logf("warning", "toolCalls must be a list; no tool calls are recorded")
		return
	}
	bad := 0
	for _, one := range calls {
		var c toolCall
		if json.Unmarshal(one, &c) != nil || c.Tool+c.Name == "" || jsonwalk.Depth(one) > maxDepth {
			bad++
			continue
		}
		c.Tool = cmp.Or(c.Tool, c.Name)
		t.Transcript.AddAt(record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{
			ID: c.ID, Name: c.Tool, Arguments: given(c.Args, c.Arguments, c.Input), Result: given(c.Result, c.Output, c.Error),
			Status: c.Status, DurationMS: milliseconds(c.Duration).Milliseconds(), SelfReported: true,
		}}, timeOf(c.Timestamp))
	}
	if bad > 0 {
		t.Logf("warning", "%s cannot be decoded and %s skipped", text.Count(bad, "tool call", "tool calls"), text.Plural(bad, "is", "are"))
	}
}

// timeOf decodes an RFC 3339 time, or milliseconds since 1970. It returns the zero time for any
// other value.
func timeOf(raw json.RawMessage) (at time.Time) {
	if ms := number(raw, 1<<52); ms > 0 {
		return time.UnixMilli(int64(ms))
	}
	if json.Unmarshal(raw, &at) != nil {
		return time.Time{}
	}
	return at
}

// given returns the first non-empty value as valid UTF-8, or nil if all are empty.
func given(values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if len(v) > 0 && string(v) != "null" {
			return bytes.ToValidUTF8(v, []byte("\uFFFD"))
		}
	}
	return nil
}

// milliseconds decodes a duration in milliseconds. It returns 0 for any other value.
func milliseconds(raw json.RawMessage) time.Duration {
	ms := number(raw, float64(math.MaxInt64/2/int64(time.Millisecond)))
	return time.Duration(ms * float64(time.Millisecond))
}

// number decodes a number and limits it to most. It returns 0 for negative numbers and other
// values.
func number(raw json.RawMessage, most float64) float64 {
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return 0
	}
	return min(max(f, 0), most)
}

// usage returns the usage that the agent reports under usage, metadata.usage, cost or
// metadata.cost, in the spellings of model APIs. It is nil if the agent reports none.
func (r *result) usage() *record.Usage {
	var metadata struct{ Usage, Cost json.RawMessage }
	_ = json.Unmarshal(r.Metadata, &metadata) // other values contain no usage
	var u record.Usage
	for _, raw := range []json.RawMessage{r.Usage, metadata.Usage} {
		if u = usageOf(raw); u != (record.Usage{}) {
			break
		}
	}
	for _, raw := range []json.RawMessage{r.Cost, metadata.Cost} {
		if u.CostUSD == 0 {
			u.CostUSD = costOf(raw)
		}
	}
	if u == (record.Usage{}) {
		return nil
	}
	return &u
}

func usageOf(raw json.RawMessage) (u record.Usage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return u
	}
	for key, value := range members {
		count := int64(number(value, maxCount))
		switch strings.ToLower(strings.ReplaceAll(key, "_", "")) {
		case "inputtokens", "prompttokens", "input", "prompt":
			u.InputTokens = max(u.InputTokens, count)
		case "outputtokens", "completiontokens", "output", "completion":
			u.OutputTokens = max(u.OutputTokens, count)
		case "totaltokens", "total", "tokens":
			u.TotalTokens = max(u.TotalTokens, count)
		case "cost", "costusd", "totalcost", "totalcostusd":
			u.CostUSD = max(u.CostUSD, costOf(value))
		}
	}
	return u
}

// costOf returns a cost in US dollars from a number, or from an object that contains it.
func costOf(raw json.RawMessage) float64 {
	if cost := number(raw, maxCost); cost > 0 {
		return cost
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return 0
	}
	for _, key := range []string{"total", "usd", "total_usd", "totalUsd", "total_cost", "totalCost", "cost", "amount"} {
		if cost := number(members[key], maxCost); cost > 0 {
			return cost
		}
	}
	return 0
}
