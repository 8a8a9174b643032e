//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// rpcClient is a client of /rpc.
type rpcClient struct {
	t  *testing.T
	ws *websocket.Conn
	id int
}

func dialRPC(t *testing.T, jobs, token string) *rpcClient {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), "ws://"+jobs+"/rpc?token="+token, nil)
	require.NoError(t, err)
	ws.SetReadLimit(1 << 20)
	t.Cleanup(func() { ws.CloseNow() })
	return &rpcClient{t: t, ws: ws}
}

// call returns the result of a method, or its error with the code.
func (c *rpcClient) call(method string, params map[string]any) (result map[string]any, failure string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	c.id++
	msg, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	require.NoError(c.t, err)
	require.NoError(c.t, c.ws.Write(ctx, websocket.MessageText, msg))
	for {
		_, data, err := c.ws.Read(ctx)
		require.NoError(c.t, err, method)
		var reply struct {
			ID     int
			Result map[string]any
			Error  json.RawMessage
		}
		require.NoError(c.t, json.Unmarshal(data, &reply), string(data))
		if reply.ID == c.id {
			return reply.Result, string(reply.Error)
		}
	}
}

// must is call for a method that does not fail.
func (c *rpcClient) must(method string, params map[string]any) map[string]any {
	c.t.Helper()
	result, failure := c.call(method, params)
	require.Empty(c.t, failure, method)
	return result
}

// runs lists the ids of the runs that the client sees.
func (c *rpcClient) runs() (ids []string) {
	c.t.Helper()
	for _, r := range c.must("run.list", map[string]any{})["runs"].([]any) {
		ids = append(ids, r.(map[string]any)["runId"].(string))
	}
	return ids
}

// userToken makes an access token for a user.
func userToken(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, code := waza(t, env, append([]string{"token", "create", "--ttl", "1d", "--json"}, args...)...)
	require.Equal(t, exit.Passed, code)
	var pair struct {
		Access string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &pair))
	return pair.Access
}

// watchJobs connects to /ws, and returns the jobs that are active.
func watchJobs(t *testing.T, jobs, token string) (ws *websocket.Conn, active []string) {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), "ws://"+jobs+"/ws?token="+token, nil)
	require.NoError(t, err)
	t.Cleanup(func() { ws.CloseNow() })
	for _, j := range until(t, ws, "sync")["active_jobs"].([]any) {
		active = append(active, j.(map[string]any)["id"].(string))
	}
	return ws, active
}

// jobsOf asks for the jobs by HTTP.
func jobsOf(t *testing.T, jobs, token string) (ids []string) {
	t.Helper()
	var answer struct{ Jobs []struct{ ID string } }
	status := ask(t, http.MethodGet, "http://"+jobs+"/api/jobs", token, &answer)
	require.Equal(t, http.StatusOK, status)
	for _, j := range answer.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func ask(t *testing.T, method, url, token string, answer any) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, json.NewDecoder(response.Body).Decode(answer))
	return response.StatusCode
}

// Only admins see the runs of others, through any door or method. Existing and missing runs of
// others have the same answers.
func TestAttackRunsOfOthers(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server, _, jobs := startServer(t, env)
	ann, bob, admin, owner := userToken(t, env, "--user", "ann"), userToken(t, env, "--user", "bob"), userToken(t,
		env, "--user", "root", "--role", "admin"), userToken(t, env)
	file, err := os.ReadFile(filepath.Join(variable(env, "WAZA_STATE"), "serve.token"))
	require.NoError(t, err)
	suite, err := filepath.Abs("../../docs/examples/remote/eval.yaml") // waits for an agent
	require.NoError(t, err)
	adminSees, _ := watchJobs(t, jobs, admin)
	bobSees, _ := watchJobs(t, jobs, bob)
	ownerSees, _ := watchJobs(t, jobs, owner)

	id := dialRPC(t, jobs, ann).must("eval.run", map[string]any{"path": suite})["runId"].(string)
	created := until(t, adminSees, "job_created")
	require.Equal(t, []any{id, "ann"}, []any{created["job_id"], created["user"]})
	until(t, adminSees, "job_started")
	unknown := id[:len(id)-1] + "-"
	for name, token := range map[string]string{"bob": bob, "owner": owner} {
		c := dialRPC(t, jobs, token)
		require.Empty(t, c.runs(), name)
		for method, params := range map[string]map[string]any{
			"run.status": nil, "run.result": nil, "run.subscribe": nil, "run.unsubscribe": nil, "run.cancel": nil, "run.resume": nil,
			"run.page": nil, "run.export": nil, "run.grade": nil, "run.pending": nil, "run.rm": nil,
			"run.trial":   {"taskId": "greet", "trial": 1},
			"run.review":  {"taskId": "greet", "trial": 1, "score": 1},
			"run.compare": {"runIds": []string{"ID", "ID"}}, "task.history": {"path": suite},
		} {
			var answers []string
			for _, run := range []string{id, unknown} {
				p := map[string]any{"runId": run}
				for k, v := range params {
					if p[k] = v; k == "runIds" || k == "path" {
						delete(p, "runId")
					}
				}
				if p["runIds"] != nil {
					p["runIds"] = []string{run, run}
				}
				_, failure := c.call(method, p)
				require.NotEmpty(t, failure, method)
				answers = append(answers, strings.ReplaceAll(failure, run, "RUN"))
			}
			require.Equal(t, answers[1], answers[0], "%s: %s", name, method)
		}
		_, failure := c.call("run.compare", map[string]any{"runIds": []string{"latest"}})
		require.Contains(t, failure, "-32003", "%s: not found", name)
		require.EqualValues(t, 0, c.must("run.gc", map[string]any{"keep": 0})["totalRemoved"])
		require.Empty(t, jobsOf(t, jobs, token))
		var refused map[string]any
		require.Equal(t, http.StatusNotFound, ask(t, http.MethodPost, "http://"+jobs+"/api/jobs/"+id+"/cancel", token, &refused))
	}
	require.NoError(t, bobSees.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":"cancel","job_id":%q}`, id)))
	require.Equal(t, "unknown_job", until(t, bobSees, "error")["code"])
	for _, token := range []string{ann, admin, strings.TrimSpace(string(file))} {
		require.Equal(t, []string{id}, dialRPC(t, jobs, token).runs())
	}
	require.Equal(t, []string{id}, jobsOf(t, jobs, ann))

	// The first notifications of others are about their own runs.
	bobs := dialRPC(t, jobs, bob)
	bobsID := bobs.must("eval.run", map[string]any{"path": suite})["runId"].(string)
	require.Equal(t, bobsID, until(t, bobSees, "job_created")["job_id"])
	_, code := waza(t, env, "run", "../../testdata/suites/hello")
	require.Equal(t, exit.Passed, code)
	require.NotContains(t, []string{id, bobsID}, until(t, ownerSees, "job_created")["job_id"])

	// This is also true after a kill of the server.
	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
	_, _, jobs = startServer(t, env)
	adminSees, _ = watchJobs(t, jobs, admin)
	all := dialRPC(t, jobs, strings.TrimSpace(string(file)))
	for _, run := range []string{id, bobsID} {
		for status := any(nil); status != "running"; {
			status = all.must("run.status", map[string]any{"runId": run})["status"]
		}
	}
	bobs = dialRPC(t, jobs, bob)
	require.Equal(t, []string{bobsID}, bobs.runs())
	require.Equal(t, []string{id}, dialRPC(t, jobs, ann).runs())
	require.Len(t, dialRPC(t, jobs, admin).runs(), 3)
	require.Len(t, dialRPC(t, jobs, owner).runs(), 1)
	require.Equal(t, "cancelled", bobs.must("run.cancel", map[string]any{"runId": bobsID})["status"])
	until(t, adminSees, "job_cancelled")
	for m := map[string]any(nil); m["runId"] != bobsID; {
		m, _ = bobs.call("run.rm", map[string]any{"runId": bobsID}) // until it has ended
	}
	require.Empty(t, bobs.runs())
	require.Equal(t, "cancelled", dialRPC(t, jobs, admin).must("run.cancel", map[string]any{"runId": id})["status"])
}
