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

var errNoEvent = errors.New("no event")

// Lifter lifts events out of the lines of a journal.
type Lifter struct{ event record.Event }

// Lift decodes of an event what the state of a run is made of, and finds its trial
// in the line. What a trial is, is not looked at. The event is valid until the next
// call.
func (l *Lifter) Lift(line []byte) (*record.Event, Place, error) {
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
			e.Type = record.EventType(unquoted(value))
			whole = e.Type.TellsState() && e.Type != record.TrialComplete
			return e.Type == record.TrialComplete && bad == nil
		case "taskId":
			e.TaskID, bad = textOf(value)
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
			at = LastMember(line, value)
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

// decodeEvent decodes an event but for its trial, and finds that in the line.
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
	return &e.Event, LastMember(line, e.Trial), nil
}

// unquoted is the text of a string without escapes.
func unquoted(value []byte) string { return string(bytes.Trim(value, `"`)) }

// verdictOfText takes the verdict that a value names.
func verdictOfText(value []byte) record.Verdict {
	name := bytes.Trim(value, `"`)
	for _, v := range verdictCodes {
		if string(name) == string(v) {
			return v // and not a copy for each of a million trials
		}
	}
	return record.Verdict(name)
}

func textOf(value []byte) (text string, err error) {
	if len(value) >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), nil
	}
	err = json.Unmarshal(value, &text)
	return text, err
}

// Lean is a trial without what is most of it: prompt, workspace, and the outputs and
// transcripts of all attempts. Readers of whole runs use it: of a trial of 5 KiB,
// [Lean.Lift] takes 40 % of the time and 30 % of the memory that decoding it takes.
type Lean struct {
	record.Trial
	Prompt     skipped `json:"prompt"`
	Output     skipped `json:"output"`
	Transcript skipped `json:"transcript"`
	Workspace  skipped `json:"workspace"`
}

// skipped is a member that is not decoded.
type skipped struct{}

// UnmarshalJSON takes whatever there is.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// Read reads the trial at a place.
func (t *Lean) Read(files *Trials, at Place) error {
	b, err := files.Bytes(at, nil)
	if err != nil {
		return err
	}
	return t.liftRecorded(b)
}

func (t *Lean) liftRecorded(b []byte) error {
	if err := t.Lift(b); err != nil {
		return fmt.Errorf("journal: a trial: %w", err)
	}
	return nil
}

// Lift takes the trial out of its JSON: what it knows without a decoder, and all of
// it with one where there is something that it does not know.
func (t *Lean) Lift(b []byte) error { return t.lift(b, false) }

// LiftHead is [Lean.Lift] for number and verdict alone, which begin the JSON.
func (t *Lean) LiftHead(b []byte) error { return t.lift(b, true) }

func (t *Lean) lift(b []byte, head bool) error {
	known, err := true, error(nil)
	merr := jsonwalk.Members(b, "", func(key, value []byte) bool {
		switch string(key) {
		case "blobs", "prompt", "output", "transcript", "workspace", "startedAt", "executorMs", "startupMs":
		case "speed":
			err = json.Unmarshal(value, &t.Speed)
		case "taskId":
			t.TaskID, err = textOf(value)
		case "trialNum":
			t.TrialNum, err = strconv.Atoi(string(value))
		case "hash":
			t.Hash, err = textOf(value)
		case "verdict":
			t.Verdict = verdictOfText(value)
		case "score":
			err = json.Unmarshal(value, &t.Score)
		case "error":
			t.Error, err = textOf(value)
		case "durationMs":
			t.DurationMS, err = strconv.ParseInt(string(value), 10, 64)
		case "graders":
			err = json.Unmarshal(value, &t.Graders)
		case "usage":
			err = json.Unmarshal(value, &t.Usage)
		case "spent":
			err = json.Unmarshal(value, &t.Spent)
		case "tools":
			err = json.Unmarshal(value, &t.Tools)
		case "cached":
			err = json.Unmarshal(value, &t.Cached)
		case "attempts":
			err = json.Unmarshal(value, &t.Attempts)
		default:
			known = false
		}
		return known && err == nil && !(head && t.TrialNum != 0 && t.Verdict != "")
	})
	switch {
	case merr != nil:
		return merr
	case !known:
		*t = Lean{}
		err = json.Unmarshal(b, t)
	}
	for i := range t.Attempts {
		t.Attempts[i].Output, t.Attempts[i].Transcript = "", nil
	}
	return err
}

// notStartedEnd is how the JSON of a trial ends that never began.
const notStartedEnd = `"output":"","graders":[],"transcript":[]}`

// liftNotStarted takes a trial that never began out of its JSON, and reports whether it
// is one. A large run that is cancelled has little else, so that decoding them was most
// of its end.
func liftNotStarted(res *record.Trial, raw []byte) bool {
	if !bytes.HasSuffix(raw, []byte(notStartedEnd)) || bytes.Contains(raw, []byte(`"startedAt"`)) {
		return false
	}
	var t Lean
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
