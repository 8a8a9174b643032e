package router

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/routing"
)

// notes records how the messages of a trial were routed.
type notes struct {
	trial    *executor.Trial
	messages []*routing.Routed
}

// add records the routing of a message: who was chosen and why, the answers, and who took it.
// err is the reason why routing broke off, or nil. r can be nil if err is set.
func (n *notes) add(r *routing.Routed, err error) {
	if err == nil {
		n.messages = append(n.messages, r)
	}
	t := n.trial.Transcript
	if r == nil {
		r = &routing.Routed{}
	}
	for i, c := range r.Choices {
		t.AddAt(record.Entry{Type: record.EntryThought, Role: "router", Text: choiceText(c)}, c.At)
		for j := range r.Recipients {
			p := &r.Recipients[j]
			if roundOf(r, p.Client) != i {
				continue
			}
			t.AddAt(record.Entry{Type: record.EntryToolCall, Tool: call(r, c, p)}, p.At)
			if took(p) {
				t.AddAt(record.Entry{Type: record.EntrySkill, Text: p.Client}, p.At)
			}
		}
	}
	switch {
	case err != nil:
		t.Add(record.Entry{Type: record.EntryError, Text: err.Error()})
	default:
		t.Message("assistant", messageText(r))
	}
}

// roundOf returns the index of the choice by which a client received the message.
func roundOf(r *routing.Routed, client string) int {
	return slices.IndexFunc(r.Choices, func(c routing.Chosen) bool { return slices.Contains(c.Clients, client) })
}

// call returns a delivery in the form of a call of a tool with the name of the client.
func call(r *routing.Routed, c routing.Chosen, p *routing.Recipient) *record.ToolCall {
	arguments := map[string]any{"inputMethod": r.InputMethod, "directRouted": c.By == routing.ByPrefix}
	if r.Confidence != nil {
		arguments["confidence"] = *r.Confidence
	}
	if c.Reason != "" {
		arguments["routingReason"] = c.Reason
	}
	result := map[string]any{"answer": p.State}
	if p.State == routing.Rejected {
		result["reason"] = p.Reason
	}
	for _, sent := range r.Notifications {
		if sent.Client == p.Client {
			result["notification"] = map[string]any{"title": sent.Title, "body": sent.Body, "priority": sent.Priority}
		}
	}
	status := "completed"
	if !took(p) {
		status = "failed"
	}
	return &record.ToolCall{Name: p.Client, Arguments: encode(arguments), Result: encode(result), Status: status}
}

func encode(v map[string]any) json.RawMessage {
	b, _ := json.Marshal(v) // strings, numbers and booleans always encode
	return b
}

// took reports whether a client took the message.
func took(p *routing.Recipient) bool {
	return p.State == routing.Acknowledged || p.State == routing.Notified
}

// outcome returns the outcome of the trial, even after routing broke off.
func (n *notes) outcome(form string, usage *record.Usage) executor.Outcome {
	routed := &record.Routing{Took: []string{}}
	for _, r := range n.messages {
		routed.Reroutes += r.Reroutes()
		for i := range r.Recipients {
			p := &r.Recipients[i]
			if took(p) {
				routed.Took = append(routed.Took, p.Client)
			} else {
				routed.Rejected = append(routed.Rejected, p.Client)
			}
		}
		routed.Reason = r.Reason
		if len(r.Choices) > 0 {
			routed.Reason = cmp.Or(r.Choices[len(r.Choices)-1].Reason, r.Reason)
		}
	}
	slices.Sort(routed.Took)
	routed.Took = slices.Compact(routed.Took)
	slices.Sort(routed.Rejected)
	routed.Rejected = slices.DeleteFunc(slices.Compact(routed.Rejected), func(c string) bool { return slices.Contains(routed.Took, c) })
	if len(routed.Rejected) == 0 {
		routed.Rejected = nil
	}
	out := executor.Outcome{Routing: routed, Usage: usage, Output: n.text()}
	if form == outputJSON {
		out.Output = n.json(routed)
	}
	return out
}

// text returns the output for people.
func (n *notes) text() string {
	texts := make([]string, len(n.messages))
	for i, r := range n.messages {
		texts[i] = messageText(r)
	}
	return strings.Join(texts, "\n\n")
}

// messageText describes who took a message, and how it was routed.
func messageText(r *routing.Routed) string {
	var b strings.Builder
	var takers []string
	for i := range r.Recipients {
		if took(&r.Recipients[i]) {
			takers = append(takers, r.Recipients[i].Client)
		}
	}
	if len(takers) > 0 {
		fmt.Fprintf(&b, "Taken by %s.", listed(takers))
	} else {
		fmt.Fprintf(&b, "Nobody took the message: %s.", strings.TrimSuffix(cmp.Or(r.Reason, "no reason is known"), "."))
	}
	for i, c := range r.Choices {
		b.WriteString("\n" + choiceText(c))
		for j := range r.Recipients {
			if p := &r.Recipients[j]; roundOf(r, p.Client) == i {
				b.WriteString("\n" + answerText(p))
			}
		}
	}
	for _, sent := range r.Notifications {
		fmt.Fprintf(&b, "\n%s notified the user: %s", sent.Client, sent.Title)
		if sent.Body != "" {
			b.WriteString(": " + sent.Body)
		}
	}
	return b.String()
}

// choiceText describes who was chosen, by what and why.
func choiceText(c routing.Chosen) string {
	who := "nobody"
	if len(c.Clients) > 0 {
		who = listed(c.Clients)
	}
	switch c.By {
	case routing.ByPrefix:
		return fmt.Sprintf("The message names %s.", who)
	case routing.ByModel:
		return fmt.Sprintf("The model chose %s: %s", who, c.Reason)
	}
	return fmt.Sprintf("Words chose %s: %s", who, c.Reason)
}

func answerText(p *routing.Recipient) string {
	switch {
	case p.State != routing.Rejected:
		return fmt.Sprintf("%s %s it.", p.Client, p.State)
	case p.Reason == "":
		return p.Client + " rejected it."
	}
	return fmt.Sprintf("%s rejected it: %s", p.Client, p.Reason)
}

// listed joins names for use in a sentence.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// json returns the output for graders. It omits ids and times, which differ between trials.
func (n *notes) json(routed *record.Routing) string {
	type choice struct {
		By      string   `json:"by"`
		Clients []string `json:"clients"`
		Reason  string   `json:"reason,omitempty"`
	}
	type recipient struct {
		Client string `json:"client"`
		Answer string `json:"answer"`
		Reason string `json:"reason,omitempty"`
	}
	type notification struct {
		Client   string `json:"client"`
		Title    string `json:"title"`
		Body     string `json:"body"`
		Priority string `json:"priority"`
	}
	type message struct {
		Text          string         `json:"text"`
		Status        string         `json:"status"`
		Why           string         `json:"why,omitempty"`
		Choices       []choice       `json:"choices"`
		Recipients    []recipient    `json:"recipients"`
		Notifications []notification `json:"notifications,omitempty"`
	}
	out := struct {
		Recipients []string  `json:"recipients"`
		Messages   []message `json:"messages"`
	}{routed.Took, []message{}}
	for _, r := range n.messages {
		m := message{Text: r.Text, Status: r.Status, Why: r.Reason, Choices: []choice{}, Recipients: []recipient{}}
		for _, c := range r.Choices {
			m.Choices = append(m.Choices, choice{c.By, c.Clients, c.Reason})
		}
		for _, p := range r.Recipients {
			m.Recipients = append(m.Recipients, recipient{p.Client, p.State, p.Reason})
		}
		for _, sent := range r.Notifications {
			m.Notifications = append(m.Notifications, notification{sent.Client, sent.Title, sent.Body, sent.Priority})
		}
		out.Messages = append(out.Messages, m)
	}
	b, _ := json.MarshalIndent(out, "", "  ") // cannot fail, as above
	return string(b)
}
