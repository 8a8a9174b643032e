package results

import (
	"encoding/json"
	"fmt"
	"slices"

	"waza/runner/record"
)

// resultsStatus is a verdict in the four words that others have: who ran out of
// time fell short, and what has no verdict yet was left out.
func resultsStatus(v record.Verdict) string {
	switch v {
	case record.Passed, record.Errored:
		return string(v)
	case record.Failed, record.TimedOut:
		return "failed"
	}
	return "skipped"
}

// resultsRunOf tells of a trial.
func resultsRunOf(t *record.Trial) resultsRun {
	run := resultsRun{
		RunNumber: t.TrialNum, Attempts: len(t.Attempts) + 1, Prompt: t.Prompt, Status: resultsStatus(t.Verdict), DurationMS: t.DurationMS,
		Validations: map[string]resultsGrader{}, FinalOutput: t.Output, ErrorMsg: t.Error,
		SessionDigest: resultsDigest{ToolsUsed: []string{}, Errors: []string{}},
	}
	for i := range t.Graders {
		g := &t.Graders[i]
		v := resultsGrader{Identifier: g.Name, Type: g.Type, Score: g.Score, Weight: g.Weight, Passed: g.Passed, Feedback: g.Feedback, DurationMS: g.DurationMS}
		switch {
		case g.Error != "":
			v.Feedback = g.Error
		case g.NeedsReview:
			v.Feedback = "waits for a person's score"
		}
		if v.Details, _ = g.Details.(map[string]any); v.Details == nil && g.Details != nil {
			v.Details = map[string]any{"details": g.Details}
		}
		run.Validations[g.Name] = v
	}
	turns := run.take(t.Transcript)
	if u := t.Ledger().Total(); u != nil {
		run.SessionDigest.Usage = resultsUsageOf(turns, *u)
	}
	return run
}

func resultsUsageOf(turns int, u record.Usage) *resultsUsage {
	return &resultsUsage{Turns: turns, InputTokens: u.InputTokens, OutputTokens: max(u.OutputTokens, u.Total()-u.InputTokens)}
}

// take adds a transcript, and returns how often the agent was spoken to.
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

// call adds a tool call: to the digest, to the transcript and to the tool events.
func (run *resultsRun) call(tool *record.ToolCall, turn int) {
	d := &run.SessionDigest
	d.ToolCallCount++
	if !slices.Contains(d.ToolsUsed, tool.Name) {
		d.ToolsUsed = append(d.ToolsUsed, tool.Name)
	}
	id := tool.ID
	if id == "" { // start and end would not be found to belong together
		id = fmt.Sprintf("call-%d", d.ToolCallCount)
	}
	ok := tool.Status != "failed"
	d.ToolCalls = append(d.ToolCalls, resultsToolCall{ID: id, Name: tool.Name, Arguments: plainArguments(tool.Arguments), Success: ok})
	event := resultsToolEvent{
		Turn: turn, Sequence: d.ToolCallCount, ToolCallID: id, ToolName: tool.Name, Args: decoded(tool.Arguments), Result: decoded(tool.Result),
		Success: ok, DurationMS: tool.DurationMS,
	}
	result := plainResult(tool.Result)
	if !ok {
		event.Error = result
	}
	run.ToolEvents = append(run.ToolEvents, event)
	run.Transcript = append(run.Transcript,
		resultsEvent{Type: "tool.execution_start", ToolCallID: &id, ToolName: &tool.Name, Arguments: event.Args},
		resultsEvent{Type: "tool.execution_complete", ToolCallID: &id, Success: &ok, ToolResult: &resultsToolResult{result}})
}

// decoded is a JSON value; nil when there is none.
func decoded(raw json.RawMessage) any {
	if len(raw) == 0 || !json.Valid(raw) {
		return nil
	}
	return raw
}

// plainArguments are those that others have a place for, each a text: one of
// another type would make the whole file unreadable to them.
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

// plainResult is what a tool answered as a text.
func plainResult(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
