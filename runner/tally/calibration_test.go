package tally

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// Only the labels before the first gap of their part are a random sample.
func TestDrawnLabelsInOrder(t *testing.T) {
	t.Parallel()
	var l drawnLabels
	for _, x := range []struct {
		place                   int
		judged, labeled, passed bool
	}{{6, true, true, false}, {4, true, false, false}, {1, true, true, true}, {5, true, true, false}, {2, false, true, false}, {3, false, true, true}} {
		g := &record.Grade{NeedsReview: !x.labeled, Passed: x.passed}
		if x.passed {
			g.Score = 1
		}
		l.add(g, &record.LabelDraw{Place: x.place, Passed: x.judged, Trials: 10, TrialsPassed: 6})
	}
	c := l.result(&presentScores{passed: 3, scores: []float64{1, 1, 1, 0, 0, 0, 0, 0, 0}})
	require.Equal(t, []int{6, 3, 2}, []int{c.Drawn, c.Labels, c.Waiting})
	require.InDelta(t, 0.6*1+0.4*0.5, *c.PassRate, 1e-12)
	require.InDelta(t, 1.0/3, c.Judged, 1e-12)
	require.Equal(t, 9, *c.JudgedTrials)
}
