package catalog

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseAge parses an age: a duration for [time.ParseDuration], optionally preceded by a number
// of days, such as 12h, 30d or 1d12h. It must be greater than 0.
func ParseAge(s string) (time.Duration, error) {
	age, err := parseAge(s)
	if err == nil && age <= 0 {
		err = errors.New("must be greater than 0")
	}
	if err != nil {
		return 0, fmt.Errorf("invalid age %q, expected a duration such as 30d or 12h: %w", s, err)
	}
	return age, nil
}

var errAge = errors.New("not a number with a unit")

func parseAge(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		return parseDuration(s)
	}
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || math.IsNaN(n) {
		return 0, errAge
	}
	age := n * float64(24*time.Hour)
	if age < 0 || age >= math.MaxInt64/2 {
		return 0, errors.New("out of range")
	}
	if rest == "" {
		return time.Duration(age), nil
	}
	d, err := parseDuration(rest)
	if err != nil {
		return 0, err
	}
	if d < 0 || d > math.MaxInt64/2 {
		return 0, errors.New("out of range")
	}
	return time.Duration(age) + d, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errAge
	}
	return d, nil
}
