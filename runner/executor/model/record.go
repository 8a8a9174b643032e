package model

import (
	"encoding/json"
	"time"

	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
)

// recorder records the conversation of a trial.
type recorder struct {
	model     *model
	trial     *executor.Trial
	output    string
	usage     record.Usage
	estimated bool // the provider did not count all tokens
	speed     record.Speed
	// writing is the time between the first token and the end of each answer, and written the
	// number of tokens in this time: all but the first.
	writing time.Duration
	written int64
}

// replied records a reply, including the incomplete reply of a failed request.
func (r *recorder) replied(reply *provider.Reply, err error) {
	r.usage, r.estimated = r.usage.Add(reply.Usage), r.estimated || reply.Estimated
	if reply.Tries > 0 {
		r.speed.Retries += reply.Tries - 1
		r.speed.Requests++
	}
	if reply.FirstToken > 0 {
		if r.speed.FirstTokenMS == 0 {
			r.speed.FirstTokenMS = float64(reply.FirstToken.Microseconds()) / 1000
		}
		r.writing += reply.Duration - reply.FirstToken
		r.written += max(0, reply.Usage.OutputTokens-1)
	}
	if reply.Thought != "" {
		r.trial.Transcript.Add(record.Entry{Type: record.EntryThought, Role: "assistant", Text: r.model.clean(reply.Thought)})
	}
	if reply.Message.Text != "" {
		r.trial.Transcript.Message("assistant", r.model.clean(reply.Message.Text))
	}
	if err != nil {
		r.trial.Transcript.Add(record.Entry{Type: record.EntryError, Text: r.model.clean(err.Error())})
		return
	}
	r.output = r.model.clean(reply.Message.Text)
	switch reply.Stop {
	case provider.StopLength:
		r.trial.Logf("warning", "the answer was truncated at the token limit (config.params.max_tokens)")
	case provider.StopRefusal:
		r.trial.Logf("warning", "the model or its provider refused to answer")
	}
}

// called records a tool call.
func (r *recorder) called(call provider.Call, answer ToolResult) {
	redactor := r.model.pool.Redactor()
	status := "completed"
	if answer.IsError {
		status = "failed"
	}
	result, err := json.Marshal(r.model.clean(answer.Text))
	if err == nil && json.Valid([]byte(answer.Text)) {
		result = redactor.JSON(json.RawMessage(answer.Text))
	}
	r.trial.Transcript.ToolCall(record.ToolCall{
		ID: call.ID, Name: call.Name, Arguments: redactor.JSON(call.Arguments), Result: result, Status: status,
	})
}

func (r *recorder) outcome() executor.Outcome {
	out := executor.Outcome{Output: r.output}
	if r.speed.Requests > 0 {
		out.Usage = &r.usage
		if s := r.writing.Seconds(); s > 0 && !r.estimated {
			r.speed.TokensPerSecond = float64(r.written) / s
		}
		out.Speed = &r.speed
	}
	return out
}
