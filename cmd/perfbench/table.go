package main

import (
	"math"
	"strconv"
	"strings"
)

// cells returns the cells of a row for a figure: name, figure, floor, ratio, target, and whether it
// is reached.
func (r row) cells(f figure) []string {
	cells := []string{r.name, r.text(f.Value), "–", "–", "–", "–"}
	if f.Floor > 0 {
		cells[2], cells[3] = r.text(f.Floor), digits(f.ratio())+" ×"
	}
	if r.target != (target{}) {
		cells[4], cells[5] = r.targetText(), "no"
		if r.target.reached(f) {
			cells[5] = "yes"
		}
	}
	return cells
}

// text formats a value with its unit.
func (r row) text(value float64) string {
	if r.unit == "" {
		return digits(value)
	}
	return digits(value) + " " + r.unit
}

func (r row) targetText() string {
	var parts []string
	if r.target.most > 0 {
		parts = append(parts, "≤ "+r.text(r.target.most))
	}
	if r.target.least > 0 {
		parts = append(parts, "≥ "+r.text(r.target.least))
	}
	if r.target.floors > 0 {
		parts = append(parts, "≤ "+digits(r.target.floors)+" × floor")
	}
	return strings.Join(parts, ", ")
}

// digits formats a number with three digits, and with commas and all digits from 1,000.
func digits(x float64) string {
	if x < 1000 {
		return strconv.FormatFloat(round(x, 3), 'f', -1, 64)
	}
	s := strconv.Itoa(int(math.Round(x)))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// round rounds to the given number of digits.
func round(x float64, digits int) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, float64(digits)-math.Ceil(math.Log10(math.Abs(x))))
	return math.Round(x*unit) / unit
}
