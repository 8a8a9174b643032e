package page

import (
	"encoding/json"
	"fmt"

	"waza/eval/text"
	"waza/runner/record"
)

const (
	// maxHTMLTrial is the most bytes of all texts of a trial, maxHTMLText of each of them.
	maxHTMLTrial = 768 << 10
	maxHTMLText  = 64 << 10
	// leastHTMLText is the least room for each text of a trial with very many texts.
	leastHTMLText = 1 << 10
	// maxHTMLEntries is the most entries of a transcript; entries in the middle are omitted.
	maxHTMLEntries = 2000
)

// A clipper shortens the texts of a trial to the room in a report, and counts the omitted bytes.
type clipper struct {
	each int   // bytes for one text
	left int   // bytes left for all further texts
	cut  int64 // omitted bytes
}

// text shortens a text at a character's boundary.
func (c *clipper) text(s string) string {
	out := text.Head(s, min(c.each, max(c.left, 0)))
	c.left -= len(out)
	c.cut += int64(len(s) - len(out))
	return out
}

// json shortens a JSON value, which turns it into a text.
func (c *clipper) json(raw json.RawMessage) json.RawMessage {
	if len(raw) <= min(c.each, c.left) {
		c.left -= len(raw)
		return raw
	}
	b, _ := json.Marshal(c.text(string(raw))) // cannot fail for a text
	return b
}

func (c *clipper) graders(list []record.Grade) {
	for i := range list {
		g := &list[i]
		g.Feedback, g.Error = c.text(g.Feedback), c.text(g.Error)
		if g.Details == nil {
			continue
		}
		if b, err := json.Marshal(g.Details); err == nil {
			g.Details = c.json(b)
		}
	}
}

// transcript shortens the texts of a transcript. If it has very many entries, transcript omits
// those in the middle.
func (c *clipper) transcript(entries []record.Entry) []record.Entry {
	if n := len(entries) - maxHTMLEntries; n > 0 {
		const half = maxHTMLEntries / 2
		gap := record.Entry{Type: record.EntryDropped, AtMS: entries[half].AtMS, Text: fmt.Sprintf("%d entries are not in this report", n)}
		tail := entries[len(entries)-half:]
		for i := half; i < len(entries)-half; i++ {
			c.cut += weightOfEntry(&entries[i])
		}
		entries = append(append(entries[:half:half], gap), tail...)
	}
	for i := range entries {
		c.entry(&entries[i])
	}
	return entries
}

func (c *clipper) entry(e *record.Entry) {
	e.Text = c.text(e.Text)
	if e.Tool != nil {
		e.Tool.Name, e.Tool.Title = c.text(e.Tool.Name), c.text(e.Tool.Title)
		e.Tool.Arguments, e.Tool.Result = c.json(e.Tool.Arguments), c.json(e.Tool.Result)
	}
	for i := range e.Plan {
		e.Plan[i].Text = c.text(e.Plan[i].Text)
	}
	if e.Permission != nil {
		e.Permission.Title, e.Permission.Reason = c.text(e.Permission.Title), c.text(e.Permission.Reason)
	}
}

// weightOf returns about how many bytes the texts of a trial take.
func weightOf(t *record.Trial) int64 {
	n := int64(len(t.Error)+len(t.Prompt)+len(t.Output)) + weightOfAttempt(t.Graders, t.Transcript)
	for i := range t.Attempts {
		a := &t.Attempts[i]
		n += int64(len(a.Output)) + weightOfAttempt(a.Graders, a.Transcript)
	}
	return n
}

func weightOfAttempt(graders []record.Grade, transcript []record.Entry) (n int64) {
	for i := range graders {
		n += int64(len(graders[i].Feedback))
	}
	for i := range transcript {
		n += weightOfEntry(&transcript[i])
	}
	return n
}

func weightOfEntry(e *record.Entry) int64 {
	const members = 40 // names and punctuation
	n := members + len(e.Text)
	if e.Tool != nil {
		n += len(e.Tool.Name) + len(e.Tool.Title) + len(e.Tool.Arguments) + len(e.Tool.Result)
	}
	for i := range e.Plan {
		n += len(e.Plan[i].Text)
	}
	return int64(n)
}

// countTexts counts the texts that can be long.
func countTexts(t *record.Trial) int {
	n := 3 + 2*len(t.Graders) + 2*len(t.Transcript)
	for i := range t.Attempts {
		n += 2 + 2*len(t.Attempts[i].Graders) + 2*len(t.Attempts[i].Transcript)
	}
	return n
}
