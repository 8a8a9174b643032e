package output

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
)

// TextDistance limits the difference of the output from a text.
type TextDistance struct {
	// Text to compare the whole output with. Can use template variables.
	Text string `yaml:"text" jsonschema:"required"`
	// Maximum number of characters that must be inserted, deleted or replaced; 5 when absent.
	Max *int `yaml:"max" json:",omitempty" jsonschema:"minimum=0"`
}

const (
	// usualDistance is the maximum distance when a suite gives no other.
	usualDistance = 5
	// maxCompared limits the characters of compared texts, because the time grows with their square. The
	// library counts up to 65,535.
	maxCompared = 20_000
)

var errLongTexts = errors.New("the texts are too long to compute their distance")

// add compares the output, and adds the check to t.
func (d *TextDistance) add(t *grader.Checklist, s *grader.Subject) error {
	most := usualDistance
	if d.Max != nil {
		most = *d.Max
	}
	want := s.Expanded(d.Text)
	label := fmt.Sprintf("levenshtein %d of %s", most, text.Clip(want, grader.ExcerptBytes))
	one, other := utf8.RuneCountInString(s.Output), utf8.RuneCountInString(want)
	switch cut := s.OutputCut(); {
	case one-other > most || other-one > most && cut == nil:
		t.Add(label, fmt.Sprintf("the distance of the output from %s is at least %d, more than %d", grader.Excerpt(want), max(one-other, other-one), most))
	case cut != nil:
		t.Presence(label, label, cut)
	case max(one, other) > maxCompared:
		return executor.Permanent(fmt.Errorf("levenshtein: %w: %d characters, and the limit is %d", errLongTexts, max(one, other), maxCompared))
	default:
		complaint := ""
		if n := levenshtein.ComputeDistance(s.Output, want); n > most {
			complaint = fmt.Sprintf("the distance of the output from %s is %d, more than %d", grader.Excerpt(want), n, most)
		}
		t.Add(label, complaint)
	}
	return nil
}
