package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/importing/source"
)

// maxScorers is the most scorers of a log, and the most values of one.
const maxScorers = 1000

// A score is what a scorer says about a sample.
type score struct {
	Value       json.RawMessage `json:"value"`
	Answer      source.Text     `json:"answer"`
	Explanation source.Text     `json:"explanation"`
	Metadata    json.RawMessage `json:"metadata"`
}

// single returns scores with one value each. A scorer with several values counts as one for each:
// scorer.key. One without any stays as it is, and its value is on no scale.
func single(scores map[string]score) (map[string]score, error) {
	all := map[string]score{}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		s := scores[name]
		var several map[string]json.RawMessage
		if json.Unmarshal(s.Value, &several) != nil || len(several) == 0 {
			several = map[string]json.RawMessage{"": s.Value}
		}
		for key, v := range several {
			of := name
			if key != "" {
				of += "." + key
			}
			if _, taken := all[of]; taken {
				return nil, fmt.Errorf("scores: two scorers have the name %q", of)
			}
			s.Value = v
			all[of] = s
		}
	}
	return all, nil
}

// valueOf returns the score that a value means. It is unknown for N, which means no answer, null, NaN
// and other texts. odd reports whether the value is on no known scale.
func valueOf(raw json.RawMessage) (score source.Number, odd bool) {
	var word string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return source.Number{}, false
	case string(raw) == "true":
		return source.Number{Known: true, Value: 1}, false
	case string(raw) == "false":
		return source.Number{Known: true}, false
	case json.Unmarshal(raw, &word) == nil:
		return wordOf(word)
	case json.Unmarshal(raw, &score) != nil:
		return source.Number{}, true
	}
	return score, score.Known && !score.Share()
}

func wordOf(word string) (score source.Number, odd bool) {
	switch strings.ToLower(word) {
	case "c", "yes", "true":
		return source.Number{Known: true, Value: 1}, false
	case "i", "no", "false":
		return source.Number{Known: true}, false
	case "p":
		return source.Number{Known: true, Value: 0.5}, false
	case "n", "":
		return source.Number{}, false
	}
	if _, err := strconv.ParseFloat(word, 64); err == nil && json.Unmarshal([]byte(word), &score) == nil {
		return score, score.Known && !score.Share()
	}
	return source.Number{}, true
}

// A scale is the scale of the values of a scorer.
type scale struct {
	scores int    // number of values that are scores
	odd    string // a value on no known scale
	off    bool   // it is a number, so other numbers are on that scale, too
}

// scales holds the scales of all scorers by name.
type scales map[string]*scale

func (all scales) learn(scores map[string]score) error {
	given, err := single(scores)
	if err != nil {
		return err
	}
	for name, given := range given {
		s := all[name]
		if s == nil {
			s = &scale{}
			all[name] = s
		}
		switch v, odd := valueOf(given.Value); {
		case odd:
			s.off = s.off || v.Known
			if s.odd == "" || v.Known {
				s.odd = text.Clip(string(given.Value), 40)
			}
		case v.Known:
			s.scores++
		}
		if len(name) > source.MaxName || len(all) > maxScorers {
			return fmt.Errorf("scores: has more than %d scorers, or a name of more than %d bytes", maxScorers, source.MaxName)
		}
	}
	return nil
}

// grades returns the names of the scorers that are graders: those with scores from 0 to 1.
func (all scales) grades() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if s := all[name]; s.scores > 0 && !s.off {
			names = append(names, name)
		}
	}
	return names
}

// notes lists the scorers that are omitted.
func (all scales) notes() []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch s := all[name]; {
		case s.off || s.scores == 0 && s.odd != "":
			notes = append(notes, fmt.Sprintf("the scorer %q is omitted: %s is no score from 0 to 1", name, s.odd))
		case s.scores == 0:
			notes = append(notes, fmt.Sprintf("the scorer %q is omitted: it has no values", name))
		}
	}
	return notes
}
