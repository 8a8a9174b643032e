// Package figure formats figures for people. Rounding never contradicts a decision that was made
// with the exact number. A share other than 0 or 1 does not print as 0 or 100 %. A number below
// a threshold prints as less than the threshold. An interval contains its estimate, because its
// bounds are rounded outward.
package figure

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// same is the largest difference of numbers that count as equal, because a mean of floats is
	// not exact.
	same = 1e-9
	// mostDigits is the most decimals that distinguish a number from a limit.
	mostDigits = 9
)

// apart formats x with that many decimals. It adds decimals while the printed number compares
// differently with one of the limits than x.
func apart(x float64, decimals int, limits ...float64) string {
	for ; ; decimals++ {
		text := fixed(x, decimals)
		if decimals >= mostDigits || comparesAlike(x, text, limits) {
			return text
		}
	}
}

func comparesAlike(x float64, text string, limits []float64) bool {
	printed, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return true // infinite
	}
	return !slices.ContainsFunc(limits, func(l float64) bool { return compare(x, l) != compare(printed, l) })
}

func compare(x, y float64) int {
	switch {
	case x < y-same:
		return -1
	case x > y+same:
		return 1
	}
	return 0
}

// fixed formats x with that many decimals; a rounded 0 has no sign.
func fixed(x float64, decimals int) string {
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.HasPrefix(text, "-") && strings.Trim(text, "-0.") == "" {
		return text[1:]
	}
	return text
}

// outward formats the bounds of an interval with that many decimals, rounded outward. It adds
// decimals while one of the limits is within the printed interval but not within the exact one.
func outward(low, high float64, decimals int, limits ...float64) (string, string) {
	for ; ; decimals++ {
		unit := math.Pow(10, float64(decimals))
		below, above := math.Floor(low*unit+same)/unit, math.Ceil(high*unit-same)/unit
		alike := true
		for _, l := range limits {
			alike = alike && compare(low, l) == compare(below, l) && compare(high, l) == compare(above, l)
		}
		if alike || decimals >= mostDigits {
			return fixed(below, decimals), fixed(above, decimals)
		}
	}
}

// Percent formats a share in whole per cent, with decimals close to 0 or 1: 33 %, 0.1 %, 99.9 %.
func Percent(share float64) string { return PercentAgainst(share) }

// PercentAgainst is like [Percent], but also adds decimals close to one of the thresholds.
func PercentAgainst(share float64, thresholds ...float64) string {
	limits := []float64{0, 100}
	for _, t := range thresholds {
		limits = append(limits, t*100)
	}
	return apart(share*100, 0, limits...) + " %"
}

// PercentInterval formats an interval of shares in whole per cent: 0–1 %.
func PercentInterval(low, high float64) string {
	below, above := outward(low*100, high*100, 0)
	return below + "–" + above + " %"
}

// Confidence formats a confidence with all its digits: 95 %, 99.9 %.
func Confidence(c float64) string { return strconv.FormatFloat(c*100, 'g', 6, 64) + " %" }

// Score formats a score with two decimals, and with more close to 0, to 1 or to one of the
// thresholds.
func Score(s float64, thresholds ...float64) string {
	return apart(s, 2, append([]float64{0, 1}, thresholds...)...)
}

// ScoreInterval formats an interval of scores: 0.81–0.94.
func ScoreInterval(low, high float64) string {
	below, above := outward(low, high, 2)
	return below + "–" + above
}

// Threshold formats a required minimum with all its digits, and at least two decimals.
func Threshold(t float64) string {
	text := strconv.FormatFloat(t, 'f', -1, 64)
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) < 2 {
		return fixed(t, 2)
	}
	return text
}

// Number formats a number other than a score, such as kappa, with two decimals.
func Number(x float64) string { return fixed(x, 2) }

// NumberInterval formats an interval of such numbers: [-0.12, 0.40].
func NumberInterval(low, high float64) string {
	below, above := outward(low, high, 2, 0)
	return "[" + below + ", " + above + "]"
}

// PercentPoints formats a number of percentage points without a plus sign: 12, 0.3. The printed
// number stays on the same side of the limits.
func PercentPoints(points float64, limits ...float64) string {
	return apart(points, 0, append(limits, 0)...)
}

// Points formats a difference of shares in percentage points, with its sign: +12, 0, -0.3.
func Points(d float64) string { return signed(apart(d*100, 0, 0)) }

// PointsInterval formats an interval of such differences: [-3, +12]. The printed interval
// excludes 0 if the exact one does.
func PointsInterval(low, high float64) string { return signedInterval(low*100, high*100, 0) }

// Tenths formats a difference of shares in percentage points with one decimal: +9.1, -0.4.
func Tenths(d float64) string { return signed(apart(d*100, 1, 0)) }

// TenthsInterval formats an interval of such differences: [+2.0, +16.2]. The printed interval
// excludes 0 if the exact one does.
func TenthsInterval(low, high float64) string { return signedInterval(low*100, high*100, 1) }

// Difference formats a difference of scores with its sign: +0.12, 0.00.
func Difference(d float64) string { return signed(apart(d, 2, 0)) }

// DifferenceInterval formats an interval of such differences: [-0.03, +0.12].
func DifferenceInterval(low, high float64) string { return signedInterval(low, high, 2) }

func signedInterval(low, high float64, decimals int) string {
	below, above := outward(low, high, decimals, 0)
	return "[" + signed(below) + ", " + signed(above) + "]"
}

// signed adds a plus to a positive number.
func signed(text string) string {
	if strings.HasPrefix(text, "-") || strings.Trim(text, "0.") == "" {
		return text
	}
	return "+" + text
}

// Ratio formats a ratio of two numbers: ×1.25.
func Ratio(x float64) string { return "×" + apart(x, 2, 0, 1) }

// RatioInterval formats an interval of ratios: [0.90, 1.31]. The printed interval excludes 1 if
// the exact one does.
func RatioInterval(low, high float64) string {
	below, above := outward(low, high, 2, 1)
	return "[" + below + ", " + above + "]"
}

// P formats a p-value with three decimals, and with more close to one of the levels that it is
// compared with.
func P(p float64, levels ...float64) string {
	switch {
	case p < 0.001:
		return "<0.001"
	case p > 1-same:
		return "1"
	}
	return apart(p, 3, append([]float64{1}, levels...)...)
}

// Cost formats US dollars with four decimals, and with more below $0.0001.
func Cost(usd float64) string { return "$" + apart(usd, 4, 0) }

// Tokens formats a number of tokens, which can be a mean.
func Tokens(n float64) string { return apart(n, 0, 0) }
