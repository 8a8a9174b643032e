package results

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waza/runner/record"
)

// resultsStatus converts a verdict to one of the format's four words: a timeout is a failure,
// and a trial without a verdict is skipped.
func resultsStatus(v record.Verdict) string {
	switch v {
	case record.Passed, record.Errored:
		return string(v)
	case record.Failed, record.TimedOut:
		return "failed"
	}
	return "skipped"
}

// resultsRunOf converts a trial to a run of the format.
func resultsRunOf(t *record.Trial) resultsRun {
	run := resultsRun{
		RunNumber: t.TrialNum, Attempts: len(t.Attempts) + 1, Prompt: t.Prompt, Status: resultsStatus(t.Verdict),
		Validations: map[string]resultsGrader{}, FinalOutput: t.Output, ErrorMsg: t.Error,
		SessionDigest: resultsDigest{ToolsUsed: []string{}, Errors: []string{}},
	}
	if !t.Untimed {
		run.DurationMS = &t.DurationMS
	}
	for i := range t.Graders {
		g := &t.Graders[i]
		validations := run.Validations
		if g.AfterTurn > 0 {
			validations = run.checkpoint(t, g.AfterTurn)
		}
		name := g.Name
		if strings.HasPrefix(name, "turn ") {
			name = strings.TrimPrefix(name, fmt.Sprintf("turn %d: ", g.AfterTurn))
		}
		v := resultsGrader{
			Identifier: name, Type: g.Type, Score: g.Score, Weight: g.Weight, Passed: g.Passed, Feedback: g.Feedback,
			DurationMS: g.DurationMS,
		}
		switch {
		case g.Error != "":
			v.Feedback = g.Error
		case g.NeedsReview:
			v.Feedback = "waits for a person's score"
		}
		if v.Details, _ = g.Details.(map[string]any); v.Details == nil && g.Details != nil {
			v.Details = map[string]any{"details": g.Details}
		}
		validations[name] = v
	}
	if r := t.Responder; r != nil {
		run.Responder = &resultsResponder{FollowupsSent: r.Replies, Outcome: string(r.Outcome), Reason: r.Reason}
	}
	for _, c := range t.Checkpoints {
		if c.Stopped { // the format calls this an error
			run.Status = "error"
		}
	}
	turns := run.take(t.Transcript)
	if u := t.Ledger().Total(); u != nil {
		run.SessionDigest.Usage = resultsUsageOf(turns, *u)
	}
	return run
}

// checkpoint returns the map for the results of the checkpoint after a turn.
func (run *resultsRun) checkpoint(t *record.Trial, turn int) map[string]resultsGrader {
	for i := range run.Checkpoints {
		if run.Checkpoints[i].AfterTurn == turn {
			return run.Checkpoints[i].Validations
		}
	}
	c := resultsCheckpoint{AfterTurn: turn, Status: "passed", Validations: map[string]resultsGrader{}}
	for _, p := range t.Checkpoints {
		if p.AfterTurn == turn {
			c.Stopped = c.Stopped || p.Stopped
		}
	}
	for i := range t.Graders {
		if g := &t.Graders[i]; g.AfterTurn == turn && !g.Passed {
			c.Status = "failed"
		}
	}
	run.Checkpoints = append(run.Checkpoints, c)
	return c.Validations
}

func resultsUsageOf(turns int, u record.Usage) *resultsUsage {
	return &resultsUsage{Turns: turns, InputTokens: u.InputTokens, OutputTokens: max(u.OutputTokens, u.Total()-u.InputTokens)}
}

// take adds a transcript and returns the number of prompts to the agent.
func (run *resultsRun) take(transcript []record.Entry) (turns int) {
	for i := range transcript {
		switch e := &transcript[i]; e.Type {
		case record.EntryMessage:
			typ := "assistant.message"
			if e.Role == "user" {
				typ = "user.message"
				turns++
			}
			run.say(typ, e.Text)
		case record.EntryThought:
			run.say("assistant.reasoning", e.Text)
		case record.EntryToolCall:
			if e.Tool != nil {
				run.call(e.Tool, turns)
			}
		case record.EntrySkill:
			run.SkillInvocations = append(run.SkillInvocations, resultsSkill{e.Text})
			run.say("skill.invoked", e.Text)
		case record.EntryError:
			run.SessionDigest.Errors = append(run.SessionDigest.Errors, e.Text)
			run.Transcript = append(run.Transcript, resultsEvent{Type: "session.error", Message: &e.Text})
		}
	}
	return turns
}

func (run *resultsRun) say(typ, content string) {
	run.Transcript = append(run.Transcript, resultsEvent{Type: typ, Content: &content})
}

// call adds a tool call to the digest, the transcript and the tool events.
func (run *resultsRun) call(tool *record.ToolCall, turn int) {
	d := &run.SessionDigest
	d.ToolCallCount++
	if !slices.Contains(d.ToolsUsed, tool.Name) {
		d.ToolsUsed = append(d.ToolsUsed, tool.Name)
	}
	id := tool.ID
	if id == "" { // readers need an id to match start and end
		id = fmt.Sprintf("call-%d", d.ToolCallCount)
	}
	ok := tool.Status != "failed"
	d.ToolCalls = append(d.ToolCalls, resultsToolCall{ID: id, Name: tool.Name, Arguments: plainArguments(tool.Arguments), Success: ok})
	event := resultsToolEvent{
		Turn: turn, Sequence: d.ToolCallCount, ToolCallID: id, ToolName: tool.Name, Args: decoded(tool.Arguments), Result: decoded(tool.Result),
		Success: ok, DurationMS: tool.DurationMS,
	}
	result := record.PlainText(tool.Result)
	if !ok {
		event.Error = result
	}
	run.ToolEvents = append(run.ToolEvents, event)
	run.Transcript = append(run.Transcript,
		resultsEvent{Type: "tool.execution_start", ToolCallID: &id, ToolName: &tool.Name, Arguments: event.Args},
		resultsEvent{Type: "tool.execution_complete", ToolCallID: &id, Success: &ok, ToolResult: &resultsToolResult{result}})
}

// decoded returns a JSON value, or nil if raw is empty.
func decoded(raw json.RawMessage) any {
	if len(raw) == 0 || !json.Valid(raw) {
		return nil
	}
	return raw
}

// plainArguments converts arguments to texts. Other tools read only texts, and cannot read the
// whole file if an argument has another type.
func plainArguments(raw json.RawMessage) map[string]string {
	var all map[string]any
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	var known map[string]string
	for _, name := range []string{"path", "file_text", "command", "description", "skill"} {
		if text, ok := all[name].(string); ok {
			if known == nil {
				known = map[string]string{}
			}
			known[name] = text
		}
	}
	return known
}
