package figure_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/text"
	"waza/runner/figure"
)

// 1/1000 once printed as "1 %, 1–1 %", a confidence of 0.999 as 99 %, and a metric of 0.9483
// as "0.95 missed: expected at least 0.95".
func TestRoundingKeepsVerdicts(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0.1 %, 0–1 %":                         figure.Percent(0.001) + ", " + figure.PercentInterval(0.00018, 0.0056),
		"99.9 %, 99–100 %":                     figure.Percent(0.999) + ", " + figure.PercentInterval(0.9944, 0.99982),
		"0 %, 0–4 %":                           figure.Percent(0) + ", " + figure.PercentInterval(0, 0.0351),
		"100 %, 96–100 %":                      figure.Percent(1) + ", " + figure.PercentInterval(0.9649, 1),
		"33 %":                                 figure.Percent(1. / 3),
		"89.6 %":                               figure.PercentAgainst(0.896, 0.9),
		"90 %":                                 figure.PercentAgainst(0.9, 0.9),
		"99.9 %":                               figure.Confidence(0.999),
		"97.5 %":                               figure.Confidence(0.975),
		"0.948 missed: expected at least 0.95": figure.Score(0.9483, 0.95) + " missed: expected at least " + figure.Threshold(0.95),
		"0.90 at least 0.90":                   figure.Score(0.9, 0.9) + " at least " + figure.Threshold(0.9),
		"0.999":                                figure.Score(0.9993),
		"0.85–1.00":                            figure.ScoreInterval(0.8501, 0.9999),
		"+0.4 [+0.2, +1.0]":                    figure.Points(0.004) + " " + figure.PointsInterval(0.002, 0.0095),
		"0 [-3, +4]":                           figure.Points(0) + " " + figure.PointsInterval(-0.021, 0.031),
		"-12 [-25, 0]":                         figure.Points(-0.12) + " " + figure.PointsInterval(-0.245, 0),
		"+0.001":                               figure.Difference(0.0011),
		"×1.003 [1.001, 1.005]":                figure.Ratio(1.003) + " " + figure.RatioInterval(1.0011, 1.0049),
		"0.0496":                               figure.P(0.0496, 0.05),
		"<0.001":                               figure.P(0.00002, 0.05),
		"$0.5320":                              figure.Cost(0.532),
		"$0.00001":                             figure.Cost(0.00001),
		"[-0.13, 0.41]":                        figure.NumberInterval(-0.125, 0.405),
		"0.9483":                               figure.Threshold(0.9483),
		"12":                                   figure.Tokens(12.4),
		"1 more trial and 2 more trials":       text.Count(1, "more trial", "more trials") + " and " + text.Count(2, "more trial", "more trials"),
	} {
		require.Equal(t, want, got)
	}
}

// A printed interval contains its printed estimate, and a number below a threshold prints as
// less than it.
func TestPrintedComparisons(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x, low, high, limit := r.Float64(), 0., 0., float64(r.IntN(101))/100
		low, high = x*r.Float64(), x+(1-x)*r.Float64()
		var below, above, estimate float64
		_, err := fmt.Sscanf(strings.ReplaceAll(figure.PercentInterval(low, high), "–", " "), "%g %g", &below, &above)
		require.NoError(t, err)
		_, err = fmt.Sscanf(figure.PercentAgainst(x, limit), "%g", &estimate)
		require.NoError(t, err)
		require.LessOrEqual(t, below, estimate)
		require.GreaterOrEqual(t, above, estimate)
		score, err := strconv.ParseFloat(figure.Score(x, limit), 64)
		require.NoError(t, err)
		require.Equal(t, x < limit, score < limit, "%g and %g", x, limit)
		require.Equal(t, x < limit, estimate < limit*100-1e-9, "%g and %g", x, limit)
	}
}
