// Package given decodes what other programs say about a trial: the scores and verdicts of
// programs, of judges, and in results of other tools. Use [Score], [Bool] and [Text] as fields
// of a struct that encoding/json decodes. [SameJSON] compares what agents give to tools.
package given

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"waza/eval/text"
)

// maxShown is the most bytes of a value that an error shows.
const maxShown = 40

// errTwice is the error of a second member with the same name, of which encoding/json would
// silently take the last.
var errTwice = errors.New("it is given twice, expected once")

// A Score is a score in the JSON of another program. It decodes a JSON number from 0 to 1, once.
// Anything else is an error: text, null, a number out of range, a second member of that name.
type Score struct {
	Given bool // false if the member is absent
	Value float64
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (s *Score) UnmarshalJSON(raw []byte) error {
	if s.Given {
		return fmt.Errorf("score: %w", errTwice)
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	isNumber := len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
	if err != nil || !isNumber || !(v >= 0 && v <= 1) {
		return fmt.Errorf("score: %s, expected a number from 0 to 1", text.Clip(string(raw), maxShown))
	}
	*s = Score{Given: true, Value: v + 0} // -0 becomes 0
	return nil
}

// A Bool is like [Score], for true and false.
type Bool struct {
	Given bool // false if the member is absent
	Value bool
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (b *Bool) UnmarshalJSON(raw []byte) error {
	switch {
	case b.Given:
		return fmt.Errorf("verdict: %w", errTwice)
	case string(raw) != "true" && string(raw) != "false":
		return fmt.Errorf("verdict: %s, expected true or false", text.Clip(string(raw), maxShown))
	}
	*b = Bool{Given: true, Value: string(raw) == "true"}
	return nil
}

// A Text is like [Score], for a verdict in words.
type Text struct {
	Given bool // false if the member is absent
	Value string
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (t *Text) UnmarshalJSON(raw []byte) error {
	if t.Given {
		return fmt.Errorf("verdict: %w", errTwice)
	}
	if err := json.Unmarshal(raw, &t.Value); err != nil || string(raw) == "null" {
		return fmt.Errorf("verdict: %s, expected text", text.Clip(string(raw), maxShown))
	}
	t.Given = true
	return nil
}

// Check returns an error for a score that is not a number from 0 to 1.
func Check(score float64) error {
	if !(score >= 0 && score <= 1) {
		return fmt.Errorf("the score is %v, expected a number from 0 to 1", score)
	}
	return nil
}
