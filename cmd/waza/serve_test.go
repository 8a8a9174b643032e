//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// startServer starts waza serve with its doors at ports that are free, and returns the
// addresses that it logs.
func startServer(t *testing.T, env []string, args ...string) (c *command, agents, jobs string) {
	t.Helper()
	c = startWaza(t, env, append([]string{"serve", "--agents", "127.0.0.1:0", "--jobs", "127.0.0.1:0"}, args...)...)
	address := func(door string) string {
		line := c.says(t, "msg=listening door="+door)
		return regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(line)[1]
	}
	return c, address("agents"), address("jobs")
}

func variable(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// One server runs per state directory, other processes reach it, and its token does not change.
func TestServeOnce(t *testing.T) {
	t.Parallel()
	env := environment(t)
	first, agents, jobs := startServer(t, env)
	require.NotEqual(t, agents, jobs)

	second := startWaza(t, env, "serve", "--agents", "127.0.0.1:0", "--jobs", "off")
	second.says(t, "waza: another waza server (process ")
	require.Equal(t, exit.Usage, second.exitCode(t))
	out, code := waza(t, env, "agents", "--json")
	require.Equal(t, exit.Passed, code)
	require.JSONEq(t, `{"agents": []}`, out)

	file := filepath.Join(variable(env, "WAZA_STATE"), "serve.token")
	token, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{64}\n$`, string(token))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, first.Process.Signal(syscall.SIGTERM))
	log, err := io.ReadAll(first.stderr)
	require.NoError(t, err)
	require.NotContains(t, string(log), strings.TrimSpace(string(token)))
	require.Equal(t, exit.Passed, first.exitCode(t))
	_, code = waza(t, env, "agents")
	require.Equal(t, exit.Error, code)

	again, _, _ := startServer(t, env)
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(token), string(kept))
	require.NoError(t, again.Process.Signal(os.Interrupt))
	require.Equal(t, exit.Passed, again.exitCode(t))
}

// takenAddress returns an address that is in use.
func takenAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// A door whose address is in use stays closed, and the log names its flag. The others open.
func TestServeWithoutATakenAddress(t *testing.T) {
	t.Parallel()
	at := takenAddress(t)
	c := startWaza(t, environment(t), "serve", "--agents", "127.0.0.1:0", "--jobs", "127.0.0.1:0", "--browser", at)
	closed := c.says(t, "door stays closed")
	require.Contains(t, closed, "door=browser address="+at)
	require.Contains(t, closed, "address already in use")
	require.Contains(t, closed, "restart with --browser ADDR or --browser off")
	agents := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(c.says(t, "msg=listening door=agents"))[1]
	conn, err := net.Dial("tcp", agents)
	require.NoError(t, err)
	conn.Close()
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Equal(t, exit.Passed, c.exitCode(t))
}

// Without any door there is no server, and nothing is left behind.
func TestServeWithoutAnyAddress(t *testing.T) {
	t.Parallel()
	at := takenAddress(t)
	env := environment(t)
	c := startWaza(t, env, "serve", "--agents", "off", "--browser", "off", "--router", "off", "--jobs", at)
	c.says(t, "waza: --jobs "+at+": listen tcp")
	require.Equal(t, exit.Usage, c.exitCode(t))
	next, _, _ := startServer(t, env) // the state directory is free
	require.NoError(t, next.Process.Kill())
}

// The token comes from the configuration, and agents do not inherit a key.
func TestServeSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("0123456789abcdef-token\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "waza.yaml"), []byte("jobs: {token_file: token}\n"), 0o600))
	env := environment(t, "WAZA_AGENT_KEY=0123456789abcdef-key")
	c, _, _ := startServer(t, env, "--config", filepath.Join(dir, "waza.yaml"), "--log-level", "debug")
	environ, err := os.ReadDir(variable(env, "WAZA_STATE"))
	require.NoError(t, err)
	for _, e := range environ {
		require.NotEqual(t, "serve.token", e.Name())
	}
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(c.stderr)
	require.NoError(t, err)
	require.Equal(t, exit.Passed, c.exitCode(t))
	require.Contains(t, string(rest), "shutting down")
	require.NotContains(t, string(rest), "0123456789abcdef")
}

// The end of the server interrupts a run that a client of /rpc started, and the next server
// completes it.
func TestServeTakesRunsUpAgain(t *testing.T) {
	t.Parallel()
	h := holdingSuite(t, "")
	env := h.env()
	first, _, jobs := startServer(t, env)
	token, err := os.ReadFile(filepath.Join(variable(env, "WAZA_STATE"), "serve.token"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+jobs+"/rpc", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}},
	})
	require.NoError(t, err)
	defer conn.CloseNow()
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "eval.run", "params": map[string]string{"path": h.suite}})
	require.NoError(t, err)
	require.NoError(t, conn.Write(ctx, websocket.MessageText, request))
	h.started(1)

	require.NoError(t, first.Process.Signal(syscall.SIGTERM))
	for err == nil { // its last messages
		_, _, err = conn.Read(ctx)
	}
	require.NoError(t, ctx.Err(), "the connection stays open")
	require.Equal(t, exit.Interrupted, first.exitCode(t))

	second, _, _ := startServer(t, env)
	second.says(t, "run of an earlier server resumed")
	for range 2 {
		h.started(1)
		h.release()
	}
	out, code := waza(t, append(env, "PWD="+filepath.Dir(h.suite)), "runs", "follow", "latest")
	require.Equal(t, exit.Passed, code, out)
	require.Contains(t, out, "2 of 2 tasks passed")
	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.Passed, second.exitCode(t))
	h.gone()
}

// waza agents shows and disconnects connected agents.
func TestAgentsOfAServer(t *testing.T) {
	t.Parallel()
	const id = "550e8400-e29b-41d4-a716-446655440000"
	env := environment(t, "WAZA_AGENT_KEY=0123456789abcdef")
	_, agents, _ := startServer(t, env)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+agents, nil)
	require.NoError(t, err)
	defer conn.CloseNow()
	next := func() string {
		_, data, err := conn.Read(ctx)
		require.NoError(t, err)
		return string(data)
	}
	require.Contains(t, next(), `"type":"welcome"`)
	require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte(`{"type":"register","clientId":"`+id+`","secretKey":"0123456789abcdef",`+
		`"capabilities":{"tools":["chat"],"maxConcurrency":3,"version":"1.2.3"}}`)))
	require.Contains(t, next(), `"status":"accepted"`)

	watching := exec.CommandContext(ctx, wazaPath(t), "agents", "watch", "--json")
	watching.Env = env
	changes, err := watching.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, watching.Start())
	line, err := bufio.NewReader(changes).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"clientId":"`+id+`","state":"registered"`)

	out, code := waza(t, env, "agents")
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, id+` +registered +0/3 +0 +chat `, out)
	out, code = waza(t, env, "agents", "show", strings.ToUpper(id))
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, `(?m)^Version +1\.2\.3$`, out)
	require.Regexp(t, `(?m)^Address +127\.0\.0\.1:\d+$`, out)
	out, code = waza(t, env, "agents", "kick", id, "--reason", "go away")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, id+" is disconnected\n", out)
	_, _, err = conn.Read(ctx)
	require.ErrorContains(t, err, "go away")
	_, code = waza(t, env, "agents", "kick", id)
	require.Equal(t, exit.Usage, code)

	require.NoError(t, watching.Process.Signal(os.Interrupt))
	require.Error(t, watching.Wait())
	require.Equal(t, exit.Interrupted, watching.ProcessState.ExitCode())
}
