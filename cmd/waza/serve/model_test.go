package serve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/config"
	"waza/cmd/waza/serve"
	"waza/runner/provider"
	"waza/runner/runnertest"
)

// The doors ask the model of the configuration, or another of the same API.
func TestModels(t *testing.T) {
	t.Parallel()
	server := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer { return runnertest.Answer{Text: "I am " + a.Model} })
	m := serve.NewModels(config.Model{Executor: "openai", Model: "large", Endpoint: provider.Endpoint{BaseURL: server.URL}})
	defer m.Close()
	for name, want := range map[string]string{"": "I am large", "small": "I am small"} {
		client, err := m.Client(t.Context(), name)
		require.NoError(t, err)
		reply, err := client.Complete(t.Context(), &provider.Request{Messages: []provider.Message{{Role: provider.User, Text: "Who?"}}})
		require.NoError(t, err)
		require.Equal(t, want, reply.Message.Text)
	}
	_, err := serve.NewModels(config.Model{}).Client(t.Context(), "")
	require.ErrorIs(t, err, serve.ErrNoModel)
}
