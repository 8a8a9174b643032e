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

// scoreForms lists the accepted forms of a score.
const scoreForms = "0 to 1, y or n (pass, fail), 4/5, 80%"

var errNoScore = errors.New("missing score; give " + scoreForms)

// parseScore parses a score as people write it: a number from 0 to 1, points of a maximum, per
// cent, or a word for pass (1) or fail (0).
func parseScore(text string) (float64, error) {
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
			return 0, fmt.Errorf("invalid score %q: the maximum %s must be positive; give %s", clipped(text), clipped(whole), scoreForms)
		}
		s, most = part, points
	} else if share, ok := strings.CutSuffix(s, "%"); ok {
		s, most = share, 100
	}
	n, err := number(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("invalid score %q; give %s", clipped(text), scoreForms)
	case n < 0 || n > most:
		return 0, fmt.Errorf("the score must be between 0 and %[2]g, got %[1]s; give %[3]s", clipped(strings.TrimSpace(text)), most, scoreForms)
	}
	return n / most, nil
}

// number parses a plain decimal number, without the other forms that Go accepts.
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

// clipped limits the user's input in a message.
func clipped(s string) string { return text.ClipRunes(s, 40) }

// shortScore formats a score with four significant digits.
func shortScore(score float64) string { return fmt.Sprintf("%.4g", score) }

// verdictWords returns a verdict in words.
func verdictWords(v record.Verdict) string {
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
