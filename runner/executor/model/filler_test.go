package model

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/text"
)

// fillerToken matches the tokens that filler counts.
var fillerToken = text.Pattern(`[A-Za-z]+|\.|\n\n`)

// A filler is prose of exactly the requested length, as filler counts tokens.
func TestFiller(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 11, 100, 5000, 100_000} {
		for seed := range uint64(5) {
			text := filler(n, seed)
			require.Len(t, fillerToken().FindAllString(text, -1), n)
			require.Equal(t, text, filler(n, seed))
			require.Equal(t, text, strings.TrimSpace(text))
			if n > 100 {
				require.NotEqual(t, text[:40], filler(n, seed+1)[:40], "they differ from the start")
				require.Regexp(t, `^([A-Z][a-z]*( [a-z]+)*\.( |\n\n|$))+$`, text)
			}
		}
	}
}

// The filler precedes only the first prompt, differs between trials and attempts, and is not
// recorded.
func TestContextTokens(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(http.ResponseWriter, int) []string { return []string{says("fine")} }}
	asked := func(config string, run func(ask func(num, attempt int, followUps ...string))) (prompts []string) {
		e, suite, err := setup(t, s, config)
		require.NoError(t, err)
		from := len(s.bodies)
		run(func(num, attempt int, followUps ...string) {
			tr := trial(t, suite, followUps...)
			tr.Num, tr.Attempt = num, attempt
			_, err := e.Execute(context.Background(), tr)
			require.NoError(t, err)
			entries := tr.Transcript.Close()
			require.Equal(t, "do it", entries[0].Text)
		})
		for _, body := range s.bodies[from:] {
			var m struct {
				Messages []struct{ Role, Content string }
			}
			require.NoError(t, json.Unmarshal([]byte(body), &m))
			prompts = append(prompts, m.Messages[len(m.Messages)-1].Content)
		}
		return prompts
	}
	three := func(ask func(num, attempt int, followUps ...string)) { ask(1, 1, "and then"); ask(2, 1); ask(2, 2) }
	prompts := asked("  context_tokens: 300\n", three)
	require.Len(t, prompts, 4)
	require.Equal(t, "and then", prompts[1])
	seen := map[string]bool{}
	for _, i := range []int{0, 2, 3} {
		text, ok := strings.CutSuffix(prompts[i], "\n\ndo it")
		require.True(t, ok)
		require.Len(t, fillerToken().FindAllString(text, -1), 300)
		seen[text] = true
	}
	require.Len(t, seen, 3)
	prompts = asked("  context_tokens: 300\n  context_shared: true\n", three)
	require.Equal(t, prompts[0], prompts[2])
	require.Equal(t, prompts[0], prompts[3])
	require.Equal(t, []string{"do it", "and then", "do it", "do it"}, asked("", three))
}
