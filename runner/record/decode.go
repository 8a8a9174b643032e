package record

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"waza/eval/jsonwalk"
)

// DecodeJSON decodes a trial like json.Unmarshal, in a third of its time for a usual trial: it
// decodes what most trials have by hand. If anything is unusual, encoding/json decodes the whole
// trial, so values and errors are the same, except that DecodeJSON does not find all faults outside
// of the values.
func (res *Trial) DecodeJSON(raw []byte) error {
	*res = Trial{}
	if jsonwalk.Each(raw, res.DecodeMember) > 0 {
		return nil
	}
	*res = Trial{}
	return json.Unmarshal(raw, res)
}

// DecodeMember decodes a member of the trial's JSON, whose value is at the start of rest, and returns
// the length of the value. It returns -1 if encoding/json must decode the whole trial.
func (res *Trial) DecodeMember(key, rest []byte) int {
	switch string(key) {
	case "graders":
		return decodeList(rest, &res.Graders, (*Grade).decodeMember)
	case "transcript":
		return decodeList(rest, &res.Transcript, (*Entry).decodeMember)
	}
	return decodeValue(res, key, rest, (*Trial).decodeMember)
}

// decodeMember decodes another member, and reports whether it could.
func (res *Trial) decodeMember(key, value []byte) bool {
	switch string(key) {
	case "taskId":
		return decodeText(value, &res.TaskID)
	case "trialNum":
		return decodeInt(value, &res.TrialNum)
	case "hash":
		return decodeText(value, &res.Hash)
	case "verdict":
		return decodeVerdict(value, &res.Verdict)
	case "score":
		if string(value) == "null" {
			return res.Score == nil
		}
		res.Score = new(float64)
		return decodeFloat(value, res.Score)
	case "scoreThreshold":
		return json.Unmarshal(value, &res.ScoreThreshold) == nil
	case "error":
		return decodeText(value, &res.Error)
	case "startedAt":
		return res.StartedAt.UnmarshalJSON(value) == nil
	case "durationMs":
		return decodeInt(value, &res.DurationMS)
	case "executorMs":
		return decodeInt(value, &res.ExecutorMS)
	case "startupMs":
		return decodeInt(value, &res.StartupMS)
	case "untimed":
		return decodeBool(value, &res.Untimed)
	case "endedEarly":
		return decodeBool(value, &res.EndedEarly)
	case "prompt":
		return decodeText(value, &res.Prompt)
	case "output":
		return decodeText(value, &res.Output)
	case "outputDropped":
		return decodeInt(value, &res.OutputDropped)
	case "ungraded":
		return json.Unmarshal(value, &res.Ungraded) == nil
	case "usage":
		return json.Unmarshal(value, &res.Usage) == nil
	case "spent":
		return json.Unmarshal(value, &res.Spent) == nil
	case "speed":
		return json.Unmarshal(value, &res.Speed) == nil
	case "tools":
		return json.Unmarshal(value, &res.Tools) == nil
	case "routing":
		return json.Unmarshal(value, &res.Routing) == nil
	case "conditions":
		return json.Unmarshal(value, &res.Conditions) == nil
	case "workspace":
		return json.Unmarshal(value, &res.Workspace) == nil
	case "checkpoints":
		return json.Unmarshal(value, &res.Checkpoints) == nil
	case "responder":
		return json.Unmarshal(value, &res.Responder) == nil
	case "suspicions":
		return json.Unmarshal(value, &res.Suspicions) == nil
	case "tier":
		return decodeText(value, &res.Tier)
	case "attempts":
		return json.Unmarshal(value, &res.Attempts) == nil
	case "cached":
		return json.Unmarshal(value, &res.Cached) == nil
	}
	return false
}

func (r *Grade) decodeMember(key, value []byte) bool {
	switch string(key) {
	case "name":
		return decodeText(value, &r.Name)
	case "type":
		return decodeText(value, &r.Type)
	case "score":
		return decodeFloat(value, &r.Score)
	case "passed":
		return decodeBool(value, &r.Passed)
	case "weight":
		return decodeFloat(value, &r.Weight)
	case "feedback":
		return decodeText(value, &r.Feedback)
	case "details":
		return json.Unmarshal(value, &r.Details) == nil
	case "durationMs":
		return decodeInt(value, &r.DurationMS)
	case "needsReview":
		return decodeBool(value, &r.NeedsReview)
	case "skillsOnly":
		return decodeBool(value, &r.SkillsOnly)
	case "selfReported":
		return decodeBool(value, &r.SelfReported)
	case "hash":
		return decodeText(value, &r.Hash)
	case "toolNames":
		return json.Unmarshal(value, &r.ToolNames) == nil
	case "changedFiles":
		return json.Unmarshal(value, &r.ChangedFiles) == nil
	case "unchecked":
		return decodeText(value, &r.Unchecked)
	case "error":
		return decodeText(value, &r.Error)
	case "afterTurn":
		return decodeInt(value, &r.AfterTurn)
	case "negated":
		return decodeBool(value, &r.Negated)
	case "optional":
		return decodeBool(value, &r.Optional)
	case "group":
		return json.Unmarshal(value, &r.Group) == nil
	}
	return false
}

func (e *Entry) decodeMember(key, value []byte) bool {
	switch string(key) {
	case "type":
		return decodeText(value, &e.Type)
	case "atMs":
		return decodeInt(value, &e.AtMS)
	case "role":
		return decodeText(value, &e.Role)
	case "text":
		return decodeText(value, &e.Text)
	case "tool":
		return json.Unmarshal(value, &e.Tool) == nil
	case "plan":
		return json.Unmarshal(value, &e.Plan) == nil
	case "permission":
		return json.Unmarshal(value, &e.Permission) == nil
	}
	return false
}

// decodeValue passes the value at the start of rest to member, and returns its length, or -1 if member
// cannot decode it.
func decodeValue[T any](v *T, key, rest []byte, member func(v *T, key, value []byte) bool) int {
	n := jsonwalk.ValueEnd(rest)
	if n <= 0 || !member(v, key, rest[:n]) {
		return -1
	}
	return n
}

// decodeList decodes the list of objects at the start of rest, and returns its length, or -1 if it
// cannot.
func decodeList[T any](rest []byte, list *[]T, member func(v *T, key, value []byte) bool) int {
	null := []byte("null")
	switch {
	case *list != nil: // encoding/json merges a member that occurs twice
		return -1
	case bytes.HasPrefix(rest, null):
		return len(null)
	}
	*list = []T{}
	return jsonwalk.EachElement(rest, func(rest []byte) int {
		*list = append(*list, *new(T))
		v := &(*list)[len(*list)-1]
		return jsonwalk.Each(rest, func(key, rest []byte) int { return decodeValue(v, key, rest, member) })
	})
}

// decodeText decodes a string. Only one with escapes, or with characters that need a check, is left
// to encoding/json.
func decodeText[S ~string](raw []byte, s *S) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	for _, c := range raw {
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return json.Unmarshal(raw, s) == nil
		}
	}
	*s = S(raw[1 : len(raw)-1])
	return true
}

// decodeVerdict decodes a verdict without copying its text, if it is a known one.
func decodeVerdict(raw []byte, v *Verdict) bool {
	if len(raw) > 2 && raw[0] == '"' {
		for _, known := range [...]Verdict{Passed, Failed, Errored, TimedOut, Cancelled, Skipped, NeedsReview} {
			if string(raw[1:len(raw)-1]) == string(known) {
				*v = known
				return true
			}
		}
	}
	return decodeText(raw, v)
}

func decodeBool(raw []byte, b *bool) bool {
	*b = string(raw) == "true"
	return *b || string(raw) == "false"
}

func decodeInt[N ~int | ~int64](raw []byte, n *N) bool {
	i, err := strconv.ParseInt(string(raw), 10, 64)
	*n = N(i)
	return err == nil
}

// decodeFloat decodes a number. It refuses names of numbers, which strconv.ParseFloat accepts.
func decodeFloat(raw []byte, f *float64) bool {
	for _, c := range raw {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return false
		}
	}
	var err error
	*f, err = strconv.ParseFloat(string(raw), 64)
	return err == nil
}
