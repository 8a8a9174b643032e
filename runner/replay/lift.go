package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"waza/eval/jsonwalk"
	"waza/runner/record"
)

var errNoEvent = errors.New("not an event")

// A Lifter decodes events from the lines of a journal without decoding trials.
type Lifter struct{ event record.Event }

// Lift decodes the parts of an event that the state of a run needs, and finds its trial in the
// line. It does not decode the trial. The event is valid until the next call.
func (l *Lifter) Lift(line []byte) (*record.Event, Place, error) {
	earlier := l.event.TaskID
	l.event = record.Event{}
	e := &l.event
	var at Place
	var bad error
	whole := false
	err := jsonwalk.Members(line, "trial", func(key, value []byte) bool {
		switch string(key) {
		case "seq":
			e.Seq, bad = strconv.ParseInt(string(value), 10, 64)
		case "time":
			bad = e.Time.UnmarshalJSON(value)
		case "type":
			e.Type = typeOfText(value)
			whole = e.Type.ChangesState() && e.Type != record.TrialComplete
			return e.Type == record.TrialComplete && bad == nil
		case "taskId":
			e.TaskID, bad = textLike(value, earlier)
		case "taskNum":
			e.TaskNum, bad = strconv.Atoi(string(value))
		case "trialNum":
			e.TrialNum, bad = strconv.Atoi(string(value))
		case "verdict":
			e.Verdict = verdictOfText(value)
		case "trial":
			if len(value) < 2 || value[0] != '{' || value[len(value)-1] != '}' {
				bad = jsonwalk.ErrNoObject
				break
			}
			at = lastMember(line, value)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err == nil && (e.Type == "" || e.Type == record.TrialComplete && at.Size == 0) {
		err = errNoEvent
	}
	if err == nil && whole {
		return decodeEvent(line)
	}
	return e, at, err
}

// liftHead decodes an event without its trial. It reads the common members without a decoder, and
// takes texts from an earlier event if they are the same, so that following a run from its journal
// costs little.
func liftHead(line []byte, earlier *record.Event) (*record.Event, error) {
	e := new(record.Event)
	known, bad := true, error(nil)
	err := jsonwalk.Members(line, "trial", func(key, value []byte) bool {
		switch string(key) {
		case "seq":
			e.Seq, bad = strconv.ParseInt(string(value), 10, 64)
		case "time":
			bad = e.Time.UnmarshalJSON(value)
		case "type":
			known = isPlain(value)
			e.Type = typeOfText(value)
		case "taskId":
			e.TaskID, bad = textLike(value, earlier.TaskID)
		case "taskName":
			e.TaskName, bad = textLike(value, earlier.TaskName)
		case "taskNum":
			e.TaskNum, bad = strconv.Atoi(string(value))
		case "totalTasks":
			e.TotalTasks, bad = strconv.Atoi(string(value))
		case "trialNum":
			e.TrialNum, bad = strconv.Atoi(string(value))
		case "totalTrials":
			e.TotalTrials, bad = strconv.Atoi(string(value))
		case "verdict":
			known = isPlain(value)
			e.Verdict = verdictOfText(value)
		case "score":
			e.Score = new(float64)
			*e.Score, bad = strconv.ParseFloat(string(value), 64)
		case "durationMs":
			e.DurationMS, bad = strconv.ParseInt(string(value), 10, 64)
		case "error":
			e.Error, bad = textOf(value)
		case "trial":
			known = e.Type == record.TrialComplete || e.Type == record.TrialGraded
		default:
			known = false
		}
		return known && bad == nil
	})
	if err != nil || bad != nil || !known || e.Type == "" {
		e, _, err = decodeEvent(line)
	}
	return e, err
}

// isPlain reports whether a JSON value is a string without escapes.
func isPlain(value []byte) bool {
	return len(value) >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0
}

// typeOfText returns the type of an event that a JSON value names.
func typeOfText(value []byte) record.EventType {
	for _, t := range [...]record.EventType{record.TrialStart, record.TrialComplete} {
		if len(value) == len(t)+2 && string(value[1:len(value)-1]) == string(t) {
			return t // without a copy
		}
	}
	return record.EventType(unquoted(value))
}

// textLike is like textOf, and returns like if that is the text.
func textLike(value []byte, like string) (string, error) {
	if isPlain(value) && string(value[1:len(value)-1]) == like {
		return like, nil
	}
	return textOf(value)
}

// decodeEvent decodes an event except its trial, and finds the trial in the line.
func decodeEvent(line []byte) (*record.Event, Place, error) {
	var e struct {
		record.Event
		Trial json.RawMessage `json:"trial"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, Place{}, err
	}
	if len(e.Trial) == 0 {
		return &e.Event, Place{}, nil
	}
	return &e.Event, lastMember(line, e.Trial), nil
}

// unquoted returns the content of a JSON string without escapes.
func unquoted(value []byte) string { return string(bytes.Trim(value, `"`)) }

// verdictOfText returns the verdict that a JSON value names.
func verdictOfText(value []byte) record.Verdict {
	name := bytes.Trim(value, `"`)
	for _, v := range verdictCodes {
		if string(name) == string(v) {
			return v // avoids a copy for each of a million trials
		}
	}
	return record.Verdict(name)
}

func textOf(value []byte) (text string, err error) {
	if isPlain(value) {
		return string(value[1 : len(value)-1]), nil
	}
	err = json.Unmarshal(value, &text)
	return text, err
}

// LeanTrial is a trial without its largest parts: prompt, workspace, and the outputs and
// transcripts of all attempts. Readers of whole runs use it. For a trial of 5 KiB,
// [LeanTrial.Lift] takes 40 % of the time and 30 % of the memory of decoding everything.
type LeanTrial struct {
	record.Trial
	Prompt     skipped `json:"prompt"`
	Output     skipped `json:"output"`
	Transcript skipped `json:"transcript"`
	Workspace  skipped `json:"workspace"`
}

// skipped is a member that is not decoded.
type skipped struct{}

// UnmarshalJSON accepts and ignores any value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// Read reads the trial at a place.
func (t *LeanTrial) Read(files *Trials, at Place) error {
	b, err := files.Bytes(at, nil)
	if err != nil {
		return err
	}
	return asRecorded(t.Lift(b))
}

// asRecorded adds to the error of decoding a trial where it is.
func asRecorded(err error) error {
	if err != nil {
		return fmt.Errorf("journal: trial: %w", err)
	}
	return nil
}

// Lift decodes the trial from its JSON. It reads known forms without a decoder, and uses a
// decoder for the whole trial otherwise.
func (t *LeanTrial) Lift(b []byte) error {
	err := t.lift(b, func(key, rest []byte) int {
		switch string(key) {
		case "blobs", "prompt", "output", "transcript", "workspace", "startedAt", "executorMs", "startupMs":
			return jsonwalk.ValueEnd(rest)
		}
		return t.DecodeMember(key, rest)
	})
	for i := range t.Attempts {
		t.Attempts[i].Output, t.Attempts[i].Transcript = "", nil
	}
	return err
}

// LiftNumbers is like [LeanTrial.Lift], but sets only number, verdict, score, times and speed,
// what [record.Trial.Ledger] needs, and the origin of a reused trial. It takes a third of the time.
func (t *LeanTrial) LiftNumbers(b []byte) error {
	return t.lift(b, func(key, rest []byte) int {
		switch string(key) {
		case "trialNum", "verdict", "score", "durationMs", "untimed", "speed", "usage", "spent", "cached":
			return t.DecodeMember(key, rest)
		}
		n := jsonwalk.ValueEnd(rest)
		if judged := string(key) == "graders" || string(key) == "attempts"; judged && n > 0 && bytes.Contains(rest[:n], []byte(`"usage":`)) {
			return t.DecodeMember(key, rest)
		}
		return n
	})
}

// LiftHead is like [LeanTrial.Lift], but sets only number and verdict, which come first in the
// JSON.
func (t *LeanTrial) LiftHead(b []byte) error {
	return t.lift(b, func(key, rest []byte) int {
		if string(key) == "trialNum" || string(key) == "verdict" {
			return t.DecodeMember(key, rest)
		}
		return jsonwalk.ValueEnd(rest)
	})
}

// lift decodes the trial with a function that decodes or skips one member, see [jsonwalk.Each], or
// with a decoder if the function cannot.
func (t *LeanTrial) lift(b []byte, member func(key, rest []byte) int) error {
	if jsonwalk.Each(b, member) > 0 {
		return nil
	}
	*t = LeanTrial{}
	return json.Unmarshal(b, t)
}

// notStartedEnd is the end of the JSON of a trial that never started.
const notStartedEnd = `"output":"","graders":[],"transcript":[]}`

// liftNotStarted decodes a trial that never started, and reports whether the JSON contains one.
// A large cancelled run consists mostly of such trials, and decoding them took most of the time
// of its end.
func liftNotStarted(res *record.Trial, raw []byte) bool {
	if !bytes.HasSuffix(raw, []byte(notStartedEnd)) || bytes.Contains(raw, []byte(`"startedAt"`)) {
		return false
	}
	var t LeanTrial
	if t.Lift(raw) != nil {
		return false
	}
	*res = t.Trial
	res.Output, res.Transcript = "", []record.Entry{}
	if res.Graders == nil {
		res.Graders = []record.Grade{}
	}
	return true
}
