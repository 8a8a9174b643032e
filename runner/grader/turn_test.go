package grader_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

// seen is what a grader saw of a subject.
type seen struct {
	Prompt, Output string
	Tools, Skills  []string
	Errors         []string
	Duration       time.Duration
	Usage          bool
}

type lookingGrader struct{ saw *seen }

func (g lookingGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	*g.saw = seen{s.Prompt, s.Output, s.ToolNames(), s.Skills, s.Errors, s.Duration, s.Usage != nil}
	return grader.Score{Score: 1, Passed: true}, nil
}

// twoTurns is a trial with two prompts.
func twoTurns(change ...func(*grader.Subject)) *grader.Subject {
	at := func(ms int64, e record.Entry) record.Entry {
		e.AtMS = ms
		return e
	}
	s := gradertest.Subject("second", append([]func(*grader.Subject){func(s *grader.Subject) {
		s.Prompt, s.Duration, s.Usage = "one", 900*time.Millisecond, &record.Usage{InputTokens: 3}
		s.Transcript = []record.Entry{
			at(5, record.Entry{Type: record.EntryMessage, Role: "system", Text: "be good"}),
			at(10, record.Entry{Type: record.EntryMessage, Role: "user", Text: "one"}),
			at(20, record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "view"}}),
			at(30, record.Entry{Type: record.EntryMessage, Role: "assistant", Text: "hm"}),
			at(40, record.Entry{Type: record.EntryMessage, Role: "assistant", Text: "first"}),
			at(300, record.Entry{Type: record.EntryMessage, Role: "user", Text: "two"}),
			at(310, record.Entry{Type: record.EntrySkill, Text: "explainer"}),
			at(320, record.Entry{Type: record.EntryError, Text: "no network"}),
			at(330, record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "edit"}}),
			at(350, record.Entry{Type: record.EntryMessage, Role: "assistant", Text: "second, as recorded"}),
		}
	}}, change...)...)
	return s
}

// cutShort marks the transcript as incomplete.
func cutShort(s *grader.Subject) {
	s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryDropped, Text: "dropped 3 entries", AtMS: 800})
}

// A grader of a turn sees only that turn.
func TestTurn(t *testing.T) {
	t.Parallel()
	first := seen{"one", "first", []string{"view"}, nil, nil, 30 * time.Millisecond, false}
	second := seen{"two", "second", []string{"edit"}, []string{"explainer"}, []string{"no network"}, 50 * time.Millisecond, false}
	for _, c := range []struct {
		name    string
		turn    int
		subject *grader.Subject
		want    seen
	}{
		{"the first", 1, twoTurns(), first},
		{"the last", 2, twoTurns(), second},
		{"an incomplete transcript", 2, twoTurns(cutShort), second},
		{"the whole trial", 0, twoTurns(), seen{"one", "second", []string{"view", "edit"}, []string{"explainer"}, []string{"no network"}, 900 * time.Millisecond, true}},
		{"the only one", 1, twoTurns(func(s *grader.Subject) { s.Transcript = s.Transcript[:5] }), seen{"one", "second", []string{"view"}, nil, nil, 900 * time.Millisecond, true}},
		{"no recorded prompt", 1, twoTurns(func(s *grader.Subject) { s.Transcript = s.Transcript[8:9] }), seen{"one", "second", []string{"edit"}, nil, nil, 900 * time.Millisecond, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var saw seen
			b := grader.NewBound("g", "looking", 1, lookingGrader{&saw})
			b.Turn = c.turn
			grade, err := b.Grade(t.Context(), c.subject)
			require.NoError(t, err)
			require.True(t, grade.Passed)
			require.Empty(t, cmp.Diff(c.want, saw))
		})
	}
}

// A turn that did not happen is not passed. If the transcript lacks entries, nobody knows.
func TestTurnThatDidNotHappen(t *testing.T) {
	t.Parallel()
	var saw seen
	b := grader.NewBound("g", "looking", 2, lookingGrader{&saw})
	b.Turn = 3
	grade, err := b.Grade(t.Context(), twoTurns())
	require.NoError(t, err)
	require.Equal(t, record.Grade{Name: "g", Type: "looking", Weight: 2, Feedback: "turn 3 did not happen: the agent got 2 prompts"}, grade)
	negated := grader.NewBoundAs(&eval.Grader{Name: "g", Turn: 3, Negate: true}, "looking", lookingGrader{&saw})
	grade, err = negated.Grade(t.Context(), twoTurns())
	require.NoError(t, err)
	require.False(t, grade.Passed)
	require.Zero(t, grade.Score)
	_, err = b.Grade(t.Context(), twoTurns(cutShort))
	require.ErrorContains(t, err, "dropped 3 entries")
	b.Turn = 1
	_, err = b.Grade(t.Context(), twoTurns(cutShort, func(s *grader.Subject) {
		s.Transcript = append(s.Transcript[:3:3], s.Transcript[5:]...) // without the answer
	}))
	require.ErrorContains(t, err, "dropped 3 entries")
	require.Equal(t, seen{}, saw)
}
