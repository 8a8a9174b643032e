package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

var (
	// errNoObject says that bytes are no JSON object, as far as that was looked at.
	errNoObject = errors.New("no JSON object")
	errNoEvent  = errors.New("no event")
)

// members visits the members of a JSON object in turn, as they are written, until
// visit returns false. It passes over values rather than decoding them, which
// takes a tenth of the time: of a long line of the journal few bytes are wanted.
// What it passes over is not checked beyond brackets and quotes.
func members(object []byte, visit func(key, value []byte) bool) error {
	b := space(object)
	if len(b) == 0 || b[0] != '{' {
		return errNoObject
	}
	b = space(b[1:])
	if len(b) > 0 && b[0] == '}' {
		return nil
	}
	for {
		n := stringEnd(b)
		if n < 0 {
			return errNoObject
		}
		key := b[1 : n-1]
		b = space(b[n:])
		if len(b) == 0 || b[0] != ':' {
			return errNoObject
		}
		b = space(b[1:])
		if n = valueEnd(b); n <= 0 {
			return errNoObject
		}
		if !visit(key, b[:n]) {
			return nil
		}
		b = space(b[n:])
		switch {
		case len(b) > 0 && b[0] == ',':
			b = space(b[1:])
		case len(b) > 0 && b[0] == '}':
			return nil
		default:
			return errNoObject
		}
	}
}

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// stringEnd is the length of the string that b begins with, quotes included, or -1.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return -1
	}
	for n := 1; ; {
		i := bytes.IndexByte(b[n:], '"')
		if i < 0 {
			return -1
		}
		n += i
		escapes := 0
		for b[n-1-escapes] == '\\' {
			escapes++
		}
		n++
		if escapes%2 == 0 {
			return n
		}
	}
}

// valueEnd is the length of the value that b begins with, or -1.
func valueEnd(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		return nestedEnd(b)
	}
	if n := bytes.IndexAny(b, ",}] \t\r\n"); n >= 0 {
		return n
	}
	return len(b)
}

func nestedEnd(b []byte) int {
	depth := 0
	for n := 0; n < len(b); n++ {
		switch b[n] {
		case '"':
			end := stringEnd(b[n:])
			if end < 0 {
				return -1
			}
			n += end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return n + 1
			}
		}
	}
	return -1
}

// liftEvent decodes of an event what the state of a run is made of, and finds its
// trial in the line. What a trial is, is not looked at.
func liftEvent(line []byte) (*Event, place, error) {
	e := &Event{}
	var at place
	whole := false
	var bad error
	err := members(line, func(key, value []byte) bool {
		switch string(key) {
		case "seq":
			e.Seq, bad = strconv.ParseInt(string(value), 10, 64)
		case "time":
			bad = e.Time.UnmarshalJSON(value)
		case "type":
			e.Type = EventType(unquoted(value))
			whole = e.Type.tellsState() && e.Type != TrialComplete
			return e.Type == TrialComplete && bad == nil
		case "taskId":
			e.TaskID, bad = textOf(value)
		case "taskNum":
			e.TaskNum, bad = strconv.Atoi(string(value))
		case "trialNum":
			e.TrialNum, bad = strconv.Atoi(string(value))
		case "verdict":
			e.Verdict = Verdict(unquoted(value))
		case "trial":
			at = lastMember(line, value)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err == nil && (e.Type == "" || e.Type == TrialComplete && at.size == 0) {
		err = errNoEvent
	}
	if err == nil && whole {
		return decodeEvent(line)
	}
	return e, at, err
}

// decodeEvent decodes an event but for its trial, and finds that in the line.
func decodeEvent(line []byte) (*Event, place, error) {
	var e struct {
		Event
		Trial json.RawMessage `json:"trial"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, place{}, err
	}
	if len(e.Trial) == 0 {
		return &e.Event, place{}, nil
	}
	return &e.Event, lastMember(line, e.Trial), nil
}

// unquoted is the text of a string without escapes.
func unquoted(value []byte) string { return string(bytes.Trim(value, `"`)) }

func textOf(value []byte) (text string, err error) {
	if len(value) >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), nil
	}
	err = json.Unmarshal(value, &text)
	return text, err
}
