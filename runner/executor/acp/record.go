package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/record"
)

// recorder adds updates of the agent to the transcript and collects the outcome. It is safe for
// concurrent use.
type recorder struct {
	preset *preset
	to     *executor.Transcript
	given  []string // names of the skills the agent was given

	mu            sync.Mutex // guards the fields below
	role          string     // of the pending text: assistant, thought or ""
	msg           string     // id of the message the text belongs to
	text          strings.Builder
	textDropped   int64 // bytes of that text beyond the limit
	calls         map[string]*call
	skills        []*call // calls that invoke skills and have not succeeded yet
	answer        string  // latest message of this turn
	answerDropped int64   // bytes of the answer beyond the limit
	fault         string  // the agent's report of a failure of the provider
	usage         record.Usage
	past          record.Usage // of earlier turns
	counts        bool         // the agent reports token counts
	asked         time.Time    // when the first prompt was sent; zero before that
	denied        bool         // a permission was refused in this turn
	dead          *time.Timer  // fires if the agent shows no sign of life
}

func newRecord(p *preset, t *executor.Transcript, given []string) *recorder {
	return &recorder{preset: p, to: t, given: given, calls: map[string]*call{}}
}

// startTurn records a prompt and its preface, and resets the outcome, which belongs to the last
// turn.
func (r *recorder) startTurn(preface, prompt string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if preface != "" {
		r.to.Message("system", preface)
	}
	r.to.Message("user", prompt)
	r.answer, r.answerDropped, r.fault, r.denied = "", 0, "", false
	r.past = r.usage
	if r.asked.IsZero() {
		r.asked = time.Now()
	}
}

// started reports whether a prompt was sent.
func (r *recorder) started() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.asked.IsZero()
}

// startup returns the time until the first prompt was sent, or the time since start if none was
// sent.
func (r *recorder) startup(start time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.IsZero() {
		return time.Since(start)
	}
	return r.asked.Sub(start)
}

// watch starts the timer of first_event_timeout_seconds. A limit of 0 means no timer.
func (r *recorder) watch(limit time.Duration, cancel context.CancelCauseFunc) {
	if limit <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = time.AfterFunc(limit, func() {
		cancel(fmt.Errorf("%w: no sign of life within %s (first_event_timeout_seconds)", executor.ErrTimeout, limit))
	})
}

func (r *recorder) alive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead != nil {
		r.dead.Stop()
	}
}

// update holds the parameters of session/update. All kinds share its fields.
type update struct {
	Kind      string `json:"sessionUpdate"`
	MessageID string `json:"messageId"`
	Entries   []struct {
		Content  string `json:"content"`
		Priority string `json:"priority"`
		Status   string `json:"status"`
	} `json:"entries"`
	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
}

// handleUpdate records an update; raw is the whole notification.
func (r *recorder) handleUpdate(u *update, raw json.RawMessage) {
	switch u.Kind {
	case "agent_message_chunk":
		r.chunk("assistant", u.MessageID, raw)
	case "agent_thought_chunk":
		r.chunk("thought", u.MessageID, raw)
	case "tool_call", "tool_call_update":
		var n struct {
			Update part `json:"update"`
		}
		if json.Unmarshal(raw, &n) == nil {
			n.Update.announces = u.Kind == "tool_call"
			r.tool(&n.Update)
		}
	case "plan":
		e := record.Entry{Type: record.EntryPlan}
		for _, step := range u.Entries {
			e.Plan = append(e.Plan, record.PlanStep{Text: step.Content, Priority: step.Priority, Status: step.Status})
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.flushLocked()
		r.to.Add(e)
	case "usage_update":
		if u.Cost != nil && (u.Cost.Currency == "USD" || u.Cost.Currency == "") {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.usage.CostUSD, r.counts = u.Cost.Amount, true // covers the whole session
		}
	}
}

// chunk collects the pieces of a message. For blocks other than text it records the type.
func (r *recorder) chunk(role, msg string, raw json.RawMessage) {
	var n struct {
		Update struct {
			Content struct {
				Type string `json:"type"`
				Text string `json:"text"`
				URI  string `json:"uri"`
			} `json:"content"`
		} `json:"update"`
	}
	if json.Unmarshal(raw, &n) != nil {
		return
	}
	text := n.Update.Content.Text
	if kind := n.Update.Content.Type; kind != "text" && kind != "" {
		text = strings.TrimSuffix("["+kind+" "+n.Update.Content.URI, " ") + "]"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if role != r.role || msg != r.msg {
		r.flushLocked()
		r.role, r.msg = role, msg
	}
	if role == "assistant" && r.programSpeaksLocked(text) {
		return
	}
	keep := min(len(text), max(0, executor.MaxOutputBytes-r.text.Len()))
	r.text.WriteString(text[:keep])
	r.textDropped += int64(len(text) - keep)
}

// programSpeaksLocked records a message that comes from the agent's program instead of its
// model: a report of a retry, or of a failure of the provider.
func (r *recorder) programSpeaksLocked(text string) bool {
	switch {
	case r.preset.fault != nil && r.preset.fault().MatchString(text):
		r.flushLocked()
		r.fault = text
		r.to.Add(record.Entry{Type: record.EntryError, Text: text})
		return true
	case r.preset.notice != nil && r.preset.notice().MatchString(text):
		r.flushLocked()
		r.to.Message("system", text)
		return true
	}
	return false
}

// flushLocked records the pending text.
func (r *recorder) flushLocked() {
	text, role, dropped := r.text.String(), r.role, r.textDropped
	r.text.Reset()
	r.role, r.msg, r.textDropped = "", "", 0
	switch {
	case text == "" || blank().MatchString(text):
	case role == "thought":
		r.to.Add(record.Entry{Type: record.EntryThought, Text: text})
	default:
		r.answer, r.answerDropped = text, dropped
		r.to.Message("assistant", text)
	}
}

// tool records a part of a tool call.
func (r *recorder) tool(p *part) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushLocked()
	return r.toolLocked(p)
}

func (r *recorder) toolLocked(p *part) *call {
	c := r.calls[p.ToolCallID]
	if c == nil {
		if len(r.calls) >= executor.MaxTranscriptEntries {
			return &call{}
		}
		c = &call{start: time.Now()}
		c.ID, c.SelfReported = p.ToolCallID, true
		r.calls[p.ToolCallID] = c
	}
	c.merge(p, r.preset)
	if name := c.skillName(r.preset, r.given); name != "" && c.Skill == "" {
		c.Skill = name
		r.skills = append(r.skills, c)
	}
	if c.update == nil {
		c.update = r.to.Track(c.ToolCall)
	} else {
		c.update(c.ToolCall)
	}
	r.skillsLocked(false)
	return c
}

// skillsLocked records the skills of successful calls in the order of the calls: a pending call
// delays those after it. At the end of a turn, pending calls count as successful, because some
// agents never report the end of a call.
func (r *recorder) skillsLocked(turnEnds bool) {
	for len(r.skills) > 0 {
		c := r.skills[0]
		failed := c.Status == "failed" || c.refused && c.Status != "completed"
		if !failed && c.Status != "completed" && !turnEnds {
			return
		}
		if !failed {
			r.to.Skill(c.Skill)
		}
		r.skills = r.skills[1:]
	}
}

// turnEnded records the end of a turn. It returns the provider failure that ended the turn, or
// "". After a retry by the program, the model can have answered in spite of a failure. An answer
// or reported tokens show that.
func (r *recorder) turnEnded(a *sdk.PromptResponse) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushLocked()
	r.skillsLocked(true)
	r.to.Add(record.Entry{Type: record.EntryStop, Text: string(a.StopReason)})
	turn := tokens(a)
	if turn != nil {
		r.counts = true
		cost := r.usage.CostUSD
		r.usage = *turn
		if !r.preset.sessionUsage {
			r.usage = r.past.Add(*turn)
		}
		r.usage.CostUSD = cost
	}
	if r.fault == "" || r.answer != "" || turn != nil && r.usage.OutputTokens > r.past.OutputTokens {
		return ""
	}
	return r.fault
}

// setSessionUsage replaces the token counts of the turns by those of the whole session.
func (r *recorder) setSessionUsage(u record.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u.CostUSD = r.usage.CostUSD
	r.usage, r.counts = u, true
}

// refusalEndsTurn records, in the words of the agent, that a refused permission ended the turn.
// It does nothing and returns false if no permission was refused in the turn.
func (r *recorder) refusalEndsTurn(words string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.denied {
		return false
	}
	r.flushLocked()
	r.skillsLocked(true)
	r.to.Add(record.Entry{Type: record.EntryStop, Text: "permission refused: " + text.Clip(words, 200)})
	return true
}

// tokens returns the tokens of an answer to a prompt, or nil if the answer does not contain
// them.
func tokens(a *sdk.PromptResponse) *record.Usage {
	if u := a.Usage; u != nil {
		return &record.Usage{
			InputTokens: int64(max(u.InputTokens, 0)), OutputTokens: int64(max(u.OutputTokens, 0)), TotalTokens: int64(max(u.TotalTokens, 0)),
		}
	}
	quota, _ := a.Meta["quota"].(map[string]any) // Gemini
	count, _ := quota["token_count"].(map[string]any)
	in, _ := count["input_tokens"].(float64)
	out, _ := count["output_tokens"].(float64)
	if in <= 0 && out <= 0 || in > math.MaxInt32 || out > math.MaxInt32 {
		return nil
	}
	return &record.Usage{InputTokens: int64(max(in, 0)), OutputTokens: int64(max(out, 0))}
}

// outcome returns the outcome of the trial until now.
func (r *recorder) outcome() executor.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushLocked()
	r.skillsLocked(true)
	out := executor.Outcome{Output: r.answer, OutputDropped: r.answerDropped}
	if r.counts {
		u := r.usage
		out.Usage = &u
	}
	return out
}
