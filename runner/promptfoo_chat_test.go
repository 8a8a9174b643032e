package runner_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/runnertest"
)

// Models get the earlier messages of a chat as messages. Executors that cannot send them end the trial in an error,
// and programs get the chat as a text.
func TestPromptfooChats(t *testing.T) {
	t.Parallel()
	var got []any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Messages []any `json:"messages"`
			System   any   `json:"system"`
		}
		_ = json.Unmarshal(body, &request)
		got = request.Messages
		if request.System != nil {
			got = append([]any{request.System}, got...)
		}
		w.WriteHeader(http.StatusBadRequest) // the answer does not matter
	}))
	t.Cleanup(srv.Close)
	const chat = `prompts: ['[{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "{{word}}"}]']
tests: [{vars: {word: "{{x}}"}, assert: [{type: javascript, value: "JSON.parse(output)[2].content === 'b'"}]}]
`
	for _, service := range []string{"openai:gpt-4o", "anthropic:messages:claude-sonnet-4-5", "ollama:chat:llama3"} {
		t.Run(service, func(t *testing.T) {
			got = nil
			res, _ := runnertest.Run(t, "-- eval.yaml --\ndescription: chats\nproviders: [{id: '"+service+"', config: {apiBaseUrl: '"+srv.URL+"', apiKeyEnvar: HOME}}]\n"+chat, record.Request{})
			require.Len(t, res.Tasks, 1)
			data, err := json.Marshal(got)
			require.NoError(t, err)
			require.Equal(t, wantedMessages[service], string(data))
		})
	}
	require.Equal(t, map[string]string{"1": "passed"}, promptfooAlone(t, "-- eval.yaml --\ndescription: chats\nproviders: [echo]\n"+chat))
	res, _ := runnertest.RunAgent(t, "-- eval.yaml --\ndescription: chats\nproviders: [openai:gpt-4o]\n"+chat, record.Request{Executor: "agent"}, answers)
	require.Equal(t, "inputs.history: the executor agent cannot start a conversation with earlier messages", res.Tasks[0].Trial(t, 1).Error)
}

// wantedMessages are the system prompt and the messages that each API gets.
var wantedMessages = map[string]string{
	"openai:gpt-4o":      openAIMessages,
	"ollama:chat:llama3": openAIMessages,
	"anthropic:messages:claude-sonnet-4-5": `[[{"text":"s","type":"text"}],{"content":[{"text":"a","type":"text"}],"role":"user"},` +
		`{"content":[{"text":"b","type":"text"}],"role":"assistant"},{"content":[{"text":"{{x}}","type":"text"}],"role":"user"}]`,
}

const openAIMessages = `[{"content":"s","role":"system"},{"content":"a","role":"user"},{"content":"b","role":"assistant"},{"content":"{{x}}","role":"user"}]`
