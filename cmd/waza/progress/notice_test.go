package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/interrupt"
	"waza/runner/record"
	"waza/runner/report"
)

// The notice always shows the number of running trials and their longest remaining time.
func TestNotice(t *testing.T) {
	t.Parallel()
	p := exampleProgress() // two trials since 6 and 9 s, one since 4 s
	require.Empty(t, p.notice(at(10)))
	p.interrupted(interrupt.Stop, at(10))
	require.Equal(t, "interrupted: waiting for 3 trials (Ctrl-C again cancels them)", p.notice(at(10)), "an older record")

	p.limits = []time.Duration{time.Hour, time.Minute, 4 * time.Minute}
	require.Equal(t, "interrupted: waiting for 3 trials, at most 3 min 54 s (Ctrl-C again cancels them)", p.notice(at(10)))
	p.run.Apply(&record.Event{Type: record.TrialComplete, TaskNum: 3, TrialNum: 2, Verdict: record.Passed})
	require.Equal(t, "interrupted: waiting for 2 trials, at most 49.0 s (Ctrl-C again cancels them)", p.notice(at(20)))
	p.run.Apply(&record.Event{Type: record.TrialComplete, TaskNum: 2, TrialNum: 3, Verdict: record.Passed})
	require.Equal(t, "interrupted: waiting for 1 trial, at most 46.0 s (Ctrl-C again cancels it)", p.notice(at(20)))
	// A repeated attempt started at an unknown time before the run was stopped.
	p.run.Apply(&record.Event{Type: record.Log, TaskNum: 2, TrialNum: 1, Attempt: 2})
	require.Equal(t, "interrupted: waiting for 1 trial, at most 50.0 s (Ctrl-C again cancels it)", p.notice(at(20)))
	require.Equal(t, "interrupted: waiting for 1 trial (Ctrl-C again cancels it)", p.notice(at(71)))
	p.run.Apply(&record.Event{Type: record.TrialComplete, TaskNum: 2, TrialNum: 1, Verdict: record.TimedOut})
	require.Equal(t, "interrupted: no trials are running, the run is about to end (Ctrl-C again cancels the remaining work)", p.notice(at(72)))
	p.interrupted(interrupt.Cancel, at(73))
	require.Contains(t, p.notice(at(73)), "cancelling running trials (Ctrl-C again exits at once)")
}

// Where the display is lines, the notice comes again from time to time.
func TestNoticeInLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := &lines{w: &out, options: report.Options{}, progress: exampleProgress()}
	l.draw(at(10))
	l.interrupted(interrupt.Stop, at(11))
	l.draw(at(12))
	require.Equal(t, 1, strings.Count(out.String(), "waza: interrupted: waiting for 3 trials"), out.String())
	l.draw(at(21))
	require.Equal(t, 2, strings.Count(out.String(), "waza: interrupted: waiting for 3 trials"), out.String())
	l.interrupted(interrupt.Cancel, at(22))
	l.draw(at(40))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
}
