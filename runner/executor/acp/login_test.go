//go:build unix

package acp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
)

// An agent without a logged-in user stops the run. The error quotes the agent.
func TestLoggedOut(t *testing.T) {
	t.Parallel()
	login := "    preset: codex\n    login: fake login\n"
	for name, c := range map[string]struct{ mode, prompt, says string }{
		"the protocol's answer to session/new": {"auth", "say x", "Authentication required"},
		"the protocol's answer to a prompt":    {"", "fail -32000 who are you", "who are you"},
		"the provider's status":                {"", "fail 401 Incorrect API key provided", "Incorrect API key provided"},
		"a different answer":                   {"", "fail -32603 You are not logged in.", "You are not logged in."},
		"last words":                           {"", "stderr Error: not logged in\ndie 1", "Error: not logged in"},
		"a key in the message":                 {"", "fail -32000 bad key sk-very-secret", "bad key [redacted]"},
	} {
		f := open(t, setup{mode: c.mode, agent: login})
		_, err := f.exec.Execute(t.Context(), f.trial(t, c.prompt))
		stop := executor.AsStop(err)
		require.NotNil(t, stop, "%s: %v", name, err)
		require.False(t, stop.Orderly)
		require.EqualError(t, stop, "codex: the agent is not logged in: "+c.says+"; to log in: fake login", name)
	}
	// An agent that prints the message instead of answering fails within the time limit.
	var err error
	for _, seconds := range []int{4, 20, 90} { // a busy machine can take too long to start it
		f := open(t, setup{mode: "login-prompt", agent: login, config: fmt.Sprintf("  first_event_timeout_seconds: %d\n", seconds)})
		if _, err = f.exec.Execute(t.Context(), f.trial(t, "say x")); executor.AsStop(err) != nil {
			break
		}
	}
	require.NotNil(t, executor.AsStop(err), "%v", err)
}

// A task can make an agent write anything. After a successful turn a user is logged in, so such
// texts no longer stop the run.
func TestWordsOfATaskStopNoRun(t *testing.T) {
	t.Parallel()
	f := open(t, setup{agent: "    preset: codex\n"})
	require.Equal(t, "fine", f.do(t, "say fine"))
	for _, prompt := range []string{"fail -32000 boom", "fail -32603 not logged in", "stderr not logged in\ndie 1"} {
		_, err := f.exec.Execute(t.Context(), f.trial(t, prompt))
		require.Error(t, err)
		require.Nil(t, executor.AsStop(err), "%v", err)
		require.False(t, executor.IsPermanent(err))
	}
	require.Equal(t, "fine", f.do(t, "say fine"))
}
