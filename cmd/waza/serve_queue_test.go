//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// The queue keeps its order when the server is killed: the active run runs again, and waiting
// runs wait.
func TestQueueSurvivesKill(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server, _, jobs := startServer(t, env, "--max-jobs", "1")
	owner := accessToken(t, env)
	suite, err := filepath.Abs("../../docs/examples/remote/eval.yaml") // waits for an agent
	require.NoError(t, err)
	client := dialRPC(t, jobs, owner)
	var ids []string
	for range 3 {
		started := client.must("eval.run", map[string]any{"path": suite})
		require.Equal(t, "running", started["status"])
		ids = append(ids, started["runId"].(string))
	}
	// becomes waits until the active jobs have these states, in the order of their starts.
	becomes := func(want ...string) {
		t.Helper()
		for start := time.Now(); ; {
			var answer struct{ Jobs []struct{ ID, Status string } }
			require.Equal(t, http.StatusOK, ask(t, http.MethodGet, "http://"+jobs+"/api/jobs", owner, &answer))
			var got []string
			for _, id := range ids {
				for _, j := range answer.Jobs {
					if j.ID == id {
						got = append(got, j.Status)
					}
				}
			}
			if slices.Equal(got, want) {
				return
			}
			require.Less(t, time.Since(start), patience, "%v", got)
		}
	}
	becomes("running", "queued", "queued")
	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
	_, _, jobs = startServer(t, env, "--max-jobs", "1")
	becomes("running", "queued", "queued")
	client = dialRPC(t, jobs, owner)
	client.must("run.cancel", map[string]any{"runId": ids[0]})
	becomes("cancelled", "running", "queued")
	client.must("run.cancel", map[string]any{"runId": ids[2]})
	becomes("cancelled", "running", "cancelled")
	client.must("run.cancel", map[string]any{"runId": ids[1]})
	becomes("cancelled", "cancelled", "cancelled")
}

// A token that another process revokes ends the connections that were opened with it.
func TestRevokedTokenEndsConnections(t *testing.T) {
	t.Parallel()
	env := environment(t)
	_, _, jobs := startServer(t, env)
	ann, bob := userToken(t, env, "--user", "ann"), userToken(t, env, "--user", "bob")
	stream, _ := watchJobs(t, jobs, ann)
	client, other := dialRPC(t, jobs, ann), dialRPC(t, jobs, bob)
	out, code := waza(t, env, "token", "list", "--json")
	require.Equal(t, exit.Passed, code)
	var list struct{ Tokens []struct{ ID, User string } }
	require.NoError(t, json.Unmarshal([]byte(out), &list), out)
	for _, l := range list.Tokens {
		if l.User == "ann" {
			_, code = waza(t, env, "token", "revoke", l.ID)
			require.Equal(t, exit.Passed, code)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, ws := range []*websocket.Conn{stream, client.ws} {
		_, _, err := ws.Read(ctx)
		require.EqualValues(t, 4001, websocket.CloseStatus(err))
		require.ErrorContains(t, err, "the token was revoked")
	}
	require.Empty(t, other.runs())
}
