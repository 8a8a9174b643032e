package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/record"
)

// A Number is a number that can be unknown: absent, null, NaN or infinite.
type Number struct {
	Known bool
	Value float64
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (n *Number) UnmarshalJSON(raw []byte) error {
	*n = Number{}
	if string(raw) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return fmt.Errorf("%s: expected a number", text.Clip(string(raw), 40))
	}
	if !math.IsInf(v, 0) {
		*n = Number{true, v + 0} // -0 becomes 0
	}
	return nil
}

// MarshalJSON implements [encoding/json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known {
		return []byte("null"), nil
	}
	return json.Marshal(n.Value)
}

// Times returns the number multiplied; unknown if it was.
func (n Number) Times(factor float64) Number { return Number{n.Known, n.Value * factor} }

// Count returns the number as a count, such as of tokens; 0 means unknown.
func (n Number) Count() int64 {
	if !n.Known || !(n.Value >= 0 && n.Value < math.MaxInt64/4) {
		return 0
	}
	return int64(n.Value)
}

// Money returns the number as a cost in USD; 0 means unknown.
func (n Number) Money() float64 {
	if !n.Known || !(n.Value >= 0 && n.Value < 1e12) {
		return 0
	}
	return n.Value
}

// longest is the most milliseconds of a duration: a century.
const longest = 3.2e12

// Milliseconds returns the number as a duration; 0 means unknown.
func (n Number) Milliseconds() int64 {
	if !n.Known || !(n.Value >= 0 && n.Value <= longest) {
		return 0
	}
	return int64(math.Round(n.Value))
}

// Share reports whether the number is a score from 0 to 1.
func (n Number) Share() bool { return n.Known && n.Value >= 0 && n.Value <= 1 }

// Took sets the times of a trial from a number of milliseconds.
func Took(t *record.Trial, ms Number) {
	if !ms.Known || !(ms.Value >= 0 && ms.Value <= longest) {
		t.Untimed = true
		return
	}
	t.DurationMS, t.ExecutorMS = ms.Milliseconds(), ms.Milliseconds()
}

// Spent returns a usage; nil if nothing of it is known.
func Spent(input, output, total, cost Number) *record.Usage {
	if !input.Known && !output.Known && !total.Known && !cost.Known {
		return nil
	}
	return &record.Usage{
		InputTokens: input.Count(), OutputTokens: output.Count(), TotalTokens: total.Count(), CostUSD: cost.Money(),
	}
}

// A Text is text in any form that tools write: text, a number, or parts with a text.
type Text string

// UnmarshalJSON implements [encoding/json.Unmarshaler]. It accepts every value.
func (t *Text) UnmarshalJSON(raw []byte) error {
	*t = Text(textOf(raw))
	return nil
}

func textOf(raw []byte) string {
	switch raw[0] {
	case 'n': // null
		return ""
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	case '[':
		var parts []Part
		if json.Unmarshal(raw, &parts) == nil {
			return joined(parts)
		}
	}
	return string(raw)
}

// A Part is a part of a message: text, an image or something else.
type Part struct {
	Type string
	Text string
	// Thought reports whether Text is what the model thought.
	Thought bool
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (p *Part) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &p.Text)
	}
	var known struct {
		Type      string  `json:"type"`
		Text      *string `json:"text"`
		Reasoning *string `json:"reasoning"`
		Thinking  *string `json:"thinking"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return err
	}
	p.Type = known.Type
	for _, thought := range []*string{known.Reasoning, known.Thinking} {
		if thought != nil {
			p.Text, p.Thought = *thought, true
		}
	}
	switch {
	case known.Text != nil:
		p.Text, p.Thought = *known.Text, false
	case !p.Thought:
		p.Text = "[" + known.Type + "]"
	}
	return nil
}

func joined(parts []Part) string {
	var texts []string
	for _, p := range parts {
		if !p.Thought {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// A Time is a time that can be unknown. It decodes what Python and JavaScript write.
type Time struct{ time.Time }

// layouts are the forms of times; Python omits the zone of a time in UTC or in its own zone.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700"}

// UnmarshalJSON implements [encoding/json.Unmarshaler]. Other values are unknown times.
func (t *Time) UnmarshalJSON(raw []byte) error {
	*t = Time{}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, s); err == nil {
			t.Time = at.UTC()
			break
		}
	}
	return nil
}

// Since returns the milliseconds from a time to this one; unknown if either is.
func (t Time) Since(start Time) Number {
	if t.IsZero() || start.IsZero() || t.Before(start.Time) {
		return Number{}
	}
	return Number{true, float64(t.Sub(start.Time).Milliseconds())}
}
