package review

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
)

// ScoreForms is how people may write a score.
const ScoreForms = "0 to 1, y or n (pass, fail), 4/5, 80%"

var errNoScore = errors.New("no score; give one as " + ScoreForms)

// ParseScore reads a score as people write it: a number from 0 to 1, so many of
// so many points, per cent, or whether it passes, which are 1 and 0.
func ParseScore(text string) (float64, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	switch s {
	case "":
		return 0, errNoScore
	case "y", "yes", "pass", "passed":
		return 1, nil
	case "n", "no", "fail", "failed":
		return 0, nil
	}
	most := 1.0
	if part, whole, ok := strings.Cut(s, "/"); ok {
		points, err := number(whole)
		if err != nil || points <= 0 {
			return 0, fmt.Errorf("%q is no score: nothing is so many of %s; give one as %s", clipped(text), clipped(whole), ScoreForms)
		}
		s, most = part, points
	} else if share, ok := strings.CutSuffix(s, "%"); ok {
		s, most = share, 100
	}
	n, err := number(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no score; give one as %s", clipped(text), ScoreForms)
	case n < 0 || n > most:
		return 0, fmt.Errorf("the score %s is not between 0 and %g; give one as %s", clipped(strings.TrimSpace(text)), most, ScoreForms)
	}
	return n / most, nil
}

// number reads a plain decimal number: none of the other forms that Go knows.
func number(s string) (float64, error) {
	s = strings.TrimSpace(s)
	if strings.Trim(s, "0123456789.-+") != "" {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(n, 0) {
		return 0, strconv.ErrSyntax
	}
	return n, nil
}

// clipped bounds what is said again of what somebody typed.
func clipped(s string) string { return text.ClipRunes(s, 40) }

// ShortScore gives a score as people say it, but never as one that it is not.
func ShortScore(score float64) string { return fmt.Sprintf("%.4g", score) }

// VerdictWords gives a verdict in words.
func VerdictWords(v record.Verdict) string {
	switch v {
	case record.NeedsReview:
		return "still to review"
	case record.Errored:
		return "in error"
	case record.TimedOut:
		return "timed out"
	}
	return string(v)
}
