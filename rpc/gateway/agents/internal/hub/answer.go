package hub

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"waza/runner/executor/remote"
)

// Outcome is the way the hub handled an answer.
type Outcome string

// The outcomes of answers.
const (
	// Counted means that a caller waited for the answer.
	Counted Outcome = "counted"
	// TurnedAway means that the agent refused the evaluation for now, or lacks its tool.
	TurnedAway Outcome = "turned away"
	// Kept means that the answer is stored for a later caller.
	Kept Outcome = "kept"
	// Twice means that the evaluation already had an answer.
	Twice Outcome = "twice"
	// Cancelled means that the evaluation was cancelled.
	Cancelled Outcome = "cancelled"
	// Unknown means that no server asked for the answer.
	Unknown Outcome = "unknown"
)

// Limits for a pause that an agent asks for, in milliseconds.
const (
	pauseDefault = 1000
	pauseLeast   = 100
	pauseMost    = 600_000
)

// Answer handles the answer to a request, and returns what happened to it. Any connection of the
// agent can deliver the answer, even a replaced one, because only an agent that was asked has
// the id.
func (c *Client) Answer(requestID string, answer *remote.Answer) Outcome {
	h := c.hub
	id, ok := h.evaluationID(requestID)
	if !ok {
		return h.ignore(c, requestID, Unknown)
	}
	answer.ClientID = c.agent.ClientID
	if answer.Error != nil && (answer.Error.Code == remote.CodeRateLimited || answer.Error.Code == remote.CodeInvalidTool) {
		return c.turnAway(id, answer.Error)
	}
	h.mu.Lock()
	o := h.answerLocked(c.agent, id, answer)
	h.mu.Unlock()
	switch o {
	case Counted:
		return o
	case Kept:
		return h.keep(c, id, answer)
	}
	return h.ignore(c, requestID, o)
}

func (h *Hub) ignore(c *Client, requestID string, o Outcome) Outcome {
	h.count.ignored.WithLabelValues(string(o)).Inc()
	h.log.Debug("answer ignored", "client", c.agent.ClientID, "id", requestID[:min(len(requestID), 200)], "why", string(o))
	return o
}

// answerLocked passes the answer to the waiting callers. Kept means that none waits now, but a
// later caller may.
func (h *Hub) answerLocked(a *agent, id string, answer *remote.Answer) Outcome {
	counted := h.deliverLocked(id, answer)
	h.doneLocked(a, id)
	if !counted {
		if why := h.ended.why[id]; why != "" {
			return Outcome(why)
		}
		w := h.awaited[id]
		if w == nil || !h.pool.Leave(w) {
			return Kept
		}
		h.pool.Serve(w, &slot{hub: h, clientID: answer.ClientID, want: w.Want.Want, held: true, early: answer})
	}
	a.Answered++
	delete(h.breaks, id)
	delete(h.refused, id)
	h.ended.add(id, string(Twice))
	h.board.Changed(a)
	return Counted
}

// deliverLocked ends the calls that wait for an evaluation, for any agent that they asked.
func (h *Hub) deliverLocked(id string, answer *remote.Answer) bool {
	counted := false
	for _, s := range h.asked[id] {
		if s.caller != nil {
			mine := *answer
			s.end(outcome{answer: &mine})
			counted = true
		}
	}
	return counted
}

// doneLocked records that the agent no longer works on the evaluation.
func (h *Hub) doneLocked(a *agent, id string) {
	for _, s := range slices.Clone(h.asked[id]) { // settleLocked changes the list
		if s.agent != a {
			continue
		}
		h.settleLocked(s)
		if !s.held {
			h.giveBackLocked(s)
		}
	}
}

// turnAway handles an error that asks the hub to retry later or with another agent.
func (c *Client) turnAway(id string, fault *remote.Fault) Outcome {
	h, a := c.hub, c.agent
	h.mu.Lock()
	defer h.mu.Unlock()
	var tool string
	found := false
	for _, s := range h.asked[id] {
		if s.agent != a {
			continue
		}
		found, tool = true, s.want.Tool
		if fault.Code == remote.CodeRateLimited {
			s.end(outcome{err: again(a.ClientID, "the agent is overloaded")})
		} else {
			s.end(outcome{err: again(a.ClientID, "the agent lacks the tool "+tool)})
		}
	}
	if !found {
		h.count.ignored.WithLabelValues(string(TurnedAway)).Inc()
		return Unknown
	}
	// Pause the agent before freeing its room, so that it does not get the same evaluation
	// again.
	if fault.Code == remote.CodeRateLimited {
		h.pauseLocked(a, retryAfter(fault.Data))
	} else {
		h.refuseLocked(a, id, tool)
	}
	h.doneLocked(a, id)
	h.board.Changed(a)
	return TurnedAway
}

// refuseLocked records that an agent lacks the tool of an evaluation. The agent gets other
// evaluations with the tool only while no other agent fits them.
func (h *Hub) refuseLocked(a *agent, id, tool string) {
	forget(h.refused, mostRefused)
	if !slices.Contains(h.refused[id], a.registered) {
		h.refused[id] = append(h.refusedLocked(id), a.registered)
	}
	if !slices.Contains(a.Lacks, tool) && len(a.Lacks) < mostLacks {
		h.pool.Change(a.member, func() { a.Lacks = append(a.Lacks[:len(a.Lacks):len(a.Lacks)], tool) })
	}
}

// retryAfter returns the pause that the agent asks for.
func retryAfter(data json.RawMessage) time.Duration {
	var d struct {
		RetryAfter *float64 `json:"retryAfter"`
	}
	ms := float64(pauseDefault)
	if json.Unmarshal(data, &d) == nil && d.RetryAfter != nil && !math.IsNaN(*d.RetryAfter) {
		ms = min(max(*d.RetryAfter, pauseLeast), pauseMost)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// keep stores an answer without a waiting caller.
func (h *Hub) keep(c *Client, id string, answer *remote.Answer) Outcome {
	if !h.archive.save(id, answer) {
		return h.ignore(c, id, Unknown)
	}
	h.mu.Lock()
	// A caller may have arrived meanwhile.
	o := h.answerLocked(c.agent, id, answer)
	if o == Kept {
		forget(h.kept, mostKept)
		h.kept[id] = answer.ClientID
	}
	h.mu.Unlock()
	if o != Kept {
		h.archive.drop(id)
	}
	return o
}

// mostLost is how many unreadable messages can precede the failure of an evaluation that each of
// them may have answered.
const mostLost = 3

// Unreadable handles an unreadable message that ended the connection. If the agent had one
// evaluation, fault answers it, because the agent would send the same message forever. If it had
// several, any of them may have been answered: they are sent again, up to mostLost times.
func (c *Client) Unreadable(fault *remote.Fault) {
	h, a := c.hub, c.agent
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.client != c {
		return
	}
	asked := slices.DeleteFunc(slices.Clone(a.member.Places()), func(s *slot) bool { return !s.asked })
	for _, s := range asked {
		if s.lost++; len(asked) == 1 || s.lost == mostLost {
			h.answerLocked(a, s.eval.ID, &remote.Answer{ClientID: a.ClientID, Error: fault})
		}
	}
}

// Status passes on an update of an evaluation that the agent has. Other updates are ignored.
func (c *Client) Status(evaluationID string, s remote.Status) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, asked := range h.asked[evaluationID] {
		if asked.agent != c.agent || asked.caller == nil {
			continue
		}
		select {
		case asked.caller.status <- s:
		default:
			h.count.ignored.WithLabelValues("status").Inc()
		}
	}
}
