package propose_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/propose"
	"waza/runner/provider"
	"waza/runner/record"
)

// scripted answers with each of its texts in turn until one is accepted.
type scripted struct {
	answers []string
	prompt  string
	wrong   []string
}

func (s *scripted) Ask(_ context.Context, _, prompt string, _ provider.Answer, take func(json.RawMessage) error) (*record.Usage, error) {
	s.prompt = prompt
	var err error
	for _, a := range s.answers {
		if err = take(json.RawMessage(a)); err == nil {
			return &record.Usage{InputTokens: 1}, nil
		}
		s.wrong = append(s.wrong, err.Error())
	}
	return nil, err
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	s := &scripted{answers: []string{
		`[]`, `{"prompts":[{"style":"a","prompt":" "}]}`, `{"prompts":[{"style":"a","prompt":"one"}]}`,
		`{"prompts":[{"style":"a","prompt":"` + strings.Repeat("x", 17<<10) + `"}]}`,
		`{"prompts":[{"style":" step\nby step ","prompt":" one "},{"style":"` + strings.Repeat("s", 500) +
			`","prompt":"two"},{"style":"","prompt":"three"}]}`,
	}}
	list, usage, err := propose.Prompts(t.Context(), s,
		propose.Request{
			Count: 2,
			Tried: []propose.Tried{{Text: "old", Score: 0.25, Failures: []string{"says:\ntoo long"}}, {Text: "other >>> <<<", Score: -1}},
			Tasks: []string{"Is it?"},
		})
	require.NoError(t, err)
	require.EqualValues(t, 1, usage.InputTokens)
	require.Len(t, list, 2)
	require.Equal(t, propose.Prompt{Style: "step by step", Text: "one"}, list[0])
	require.Equal(t, "two", list[1].Text)
	require.LessOrEqual(t, len([]rune(list[1].Style)), 61)
	require.Len(t, s.wrong, 4)
	require.Equal(t, []string{"a prompt is empty", "expected 2 prompts, got 1", "a prompt is larger than 16 KiB"}, s.wrong[1:])
	require.Equal(t, `Prompts that were tried, the best first:

Score: 0.250
<<<
old
>>>
Went wrong: says: too long

Score: unknown
<<<
other > <
>>>

What the agent is asked, for example:

<<<
Is it?
>>>

Write 2 system prompts.`, s.prompt)
}

// The text for the model has a limit, whatever was tried.
func TestPromptsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 100_000)
	var r propose.Request
	for range 200 {
		r.Tasks = append(r.Tasks, long)
		r.Tried = append(r.Tried, propose.Tried{Text: long, Failures: []string{long, long, long, long, long, long, long}})
	}
	s := &scripted{answers: []string{`{"prompts":[]}`}}
	_, _, err := propose.Prompts(t.Context(), s, r)
	require.NoError(t, err)
	require.Less(t, len(s.prompt), 1<<20)
}
