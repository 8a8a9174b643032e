//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/pause"
	"waza/runner/runnertest"
)

// taker is a client of the message router. It calls work for each message, in a separate
// goroutine.
type taker struct {
	name, description string
	// work returns the type and payload of the answer; "" sends none.
	work func(text string) (kind string, payload map[string]any)

	mu   sync.Mutex // guards the fields below
	got  []delivered
	here bool // it is registered
}

// delivered is a message that a taker got.
type delivered struct{ id, text, reason string }

// serve connects until ctx ends, as clients do.
func (c *taker) serve(ctx context.Context, address string) {
	var answering sync.WaitGroup
	defer answering.Wait()
	for ctx.Err() == nil {
		if ws, _, err := websocket.Dial(ctx, "ws://"+address, nil); err == nil {
			c.speak(ctx, ws, &answering)
			_ = ws.CloseNow()
			c.registered(false)
		}
		_ = pause.For(ctx, 10*time.Millisecond)
	}
}

func (c *taker) registered(here bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here = here
}

func (c *taker) speak(ctx context.Context, ws *websocket.Conn, answering *sync.WaitGroup) {
	say := func(message any) bool {
		data, err := json.Marshal(message)
		return err == nil && ws.Write(ctx, websocket.MessageText, data) == nil
	}
	type object = map[string]any
	if !say(object{"type": "registration", "payload": object{"name": c.name, "description": c.description}}) {
		return
	}
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			Type    string
			Payload struct {
				ID, Text, Code string
				Metadata       struct{ RoutingReason string }
			}
		}
		if json.Unmarshal(data, &m) != nil || m.Payload.Code != "" {
			return // the name is that of the connection before, for a moment
		}
		if m.Type != "message" {
			c.registered(true)
			continue
		}
		c.mu.Lock()
		c.got = append(c.got, delivered{m.Payload.ID, m.Payload.Text, m.Payload.Metadata.RoutingReason})
		c.mu.Unlock()
		answering.Go(func() {
			if kind, payload := c.work(m.Payload.Text); kind != "" {
				say(object{"type": "response", "payload": object{"messageId": m.Payload.ID, "type": kind, "payload": payload}})
			}
		})
	}
}

func (c *taker) messages() []delivered {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]delivered(nil), c.got...)
}

func (c *taker) isHere() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here
}

// takes is the work of a client that takes all messages.
func takes(string) (string, map[string]any) { return "ack", nil }

// startTakers lets clients live until the test ends.
func startTakers(t *testing.T, address string, clients ...*taker) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var live sync.WaitGroup
	for _, c := range clients {
		live.Go(func() { c.serve(ctx, address) })
	}
	t.Cleanup(func() {
		cancel()
		live.Wait()
	})
}

// waitFor polls for a state.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		require.True(t, time.Now().Before(deadline), "not in time: %s", what)
	}
}

// Messages come from waza send and JSON-RPC, words choose their receivers, and the last line
// shows the outcome.
func TestServeMessages(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server, _, jobs := startServer(t, env, "--router", "localhost:0")
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(server.says(t, "msg=listening door=router"))[1]

	out, code := waza(t, env, "send", "notebook: buy milk")
	require.Equal(t, exit.Failed, code)
	require.Empty(t, out)

	notebook := &taker{name: "notebook", description: "Keeps notes and shopping lists.", work: func(text string) (string, map[string]any) {
		if strings.Contains(text, "meeting") {
			return "reject", map[string]any{"reason": "Not a note"}
		}
		return "notification", map[string]any{"title": "Saved", "body": "To the list."}
	}}
	calendar := &taker{name: "calendar", description: "Knows dates.", work: takes}
	startTakers(t, address, notebook, calendar)
	waitFor(t, "the clients", func() bool { return notebook.isHere() && calendar.isHere() })

	out, code = waza(t, env, "send", "notebook:", "buy", "milk")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, "to notebook, named in the message\nnotebook: Saved: To the list.\n", out)
	out, code = waza(t, env, "send", "Put the meeting on the shopping list, whatever the dates")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, "to notebook, chosen by words: Its description shares words with the message: list, "+
		"shopping\nnotebook: rejected: Not a note\n"+
		"to calendar, chosen by words: Its description shares words with the message: dates\ncalendar: acknowledged\n", out)
	out, code = waza(t, env, "send", "notebok: a list")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, "to notebook, chosen by words: No client has the name \"notebok\"; did you mean \"notebook\"? "+
		"Its description shares words with the message: list\nnotebook: Saved: To the list.\n",
		out)
	out, code = waza(t, env, "send", "--json", "--voice", "0.95", "calendar, hello")
	require.Equal(t, exit.Passed, code)
	var sent struct {
		ID, Status string
		Confidence float64
	}
	require.NoError(t, json.Unmarshal([]byte(out), &sent))
	require.Equal(t, "taken", sent.Status)
	require.InDelta(t, 0.95, sent.Confidence, 0)
	out, code = waza(t, env, "send", "--no-wait", "calendar: hello")
	require.Equal(t, exit.Passed, code)
	require.Regexp(t, `^msg-[0-9a-f-]{36}\n$`, out)

	token, err := os.ReadFile(filepath.Join(variable(env, "WAZA_STATE"), "serve.token"))
	require.NoError(t, err)
	owner := dialRPC(t, jobs, strings.TrimSpace(string(token)))
	require.Equal(t, "taken", owner.must("message.send", map[string]any{"text": "calendar: hello", "voice": 0.5})["status"])
	require.Len(t, owner.must("message.clients", map[string]any{})["clients"], 2)
	require.Len(t, owner.must("message.list", map[string]any{})["messages"], 7)
	admin := dialRPC(t, jobs, userToken(t, env, "--user", "eve", "--role", "admin"))
	require.Len(t, admin.must("message.list", map[string]any{})["messages"], 7)
	user := dialRPC(t, jobs, userToken(t, env, "--user", "ann", "--role", "user"))
	require.Empty(t, user.must("message.list", map[string]any{})["messages"])
	require.Empty(t, user.must("message.clients", map[string]any{})["clients"])
	_, failure := user.call("message.send", map[string]any{"text": "calendar: hello"})
	require.Contains(t, failure, "-32006")

	ws, _, err := websocket.Dial(t.Context(), "ws://"+address, nil)
	require.NoError(t, err)
	defer ws.CloseNow()
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	_, _, err = ws.Read(t.Context())
	var closed websocket.CloseError
	require.True(t, errors.As(err, &closed), err)
	require.Equal(t, "Server shutting down", closed.Reason)
	require.Equal(t, websocket.StatusGoingAway, closed.Code)
	require.Equal(t, exit.Passed, server.exitCode(t))
	_, code = waza(t, env, "send", "notebook: buy milk")
	require.Equal(t, exit.Error, code)
}

// The text can come from standard input. Ctrl-C ends the wait of waza send, and the message is
// still delivered.
func TestSendFromStdinAndInterrupted(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server, _, _ := startServer(t, env, "--router", "localhost:0")
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(server.says(t, "msg=listening door=router"))[1]
	answer := make(chan struct{})
	slow := &taker{name: "slow", description: "Takes its time.", work: func(string) (string, map[string]any) {
		<-answer
		return "ack", nil
	}}
	startTakers(t, address, slow)
	waitFor(t, "the client", slow.isHere)

	c := &command{Cmd: exec.Command(wazaPath(t), "send", "-")}
	c.Env, c.Stdin = env, strings.NewReader("slow: from a pipe\n")
	var stderr strings.Builder
	c.Stderr = &stderr
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	waitFor(t, "the message", func() bool { return len(slow.messages()) == 1 })
	within(t, "waza send does not print its choice", func() {
		line, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "to slow, named in the message\n", line)
	})
	require.Equal(t, "from a pipe", slow.messages()[0].text)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	within(t, "waza send does not end", func() { _ = c.Wait() })
	require.Equal(t, exit.Interrupted, c.ProcessState.ExitCode())
	require.Regexp(t, `^waza: stopped waiting; message msg-[0-9a-f-]{36} is still being delivered\n$`, stderr.String())
	close(answer)
	large := exec.Command(wazaPath(t), "send", "-")
	large.Env, large.Stdin = env, strings.NewReader("slow: "+strings.Repeat("x", 2<<20))
	refused, err := large.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, "waza: standard input must not have more than 1048576 bytes\n", string(refused))
	out, code := waza(t, env, "send", "--json", "slow: next")
	require.Equal(t, exit.Passed, code)
	require.Contains(t, out, `"taken"`)
}

// startLights starts a server whose router asks a model, with a client for lamps.
func startLights(t *testing.T, model string) (server *command, env []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "waza.yaml")
	require.NoError(t, os.WriteFile(file,
		[]byte("model: {executor: openai, model: small, base_url: "+model+"}\nrouter: {listen: 'localhost:0'}\n"),
		0o600))
	env = environment(t, "WAZA_SERVE_ROUTER_LISTEN=", "OPENAI_API_KEY=sk-test-0123456789")
	server, _, _ = startServer(t, env, "--config", file)
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(server.says(t, "msg=listening door=router"))[1]
	lights := &taker{name: "lights", description: "Switches lamps.", work: takes}
	startTakers(t, address, lights)
	waitFor(t, "the client", lights.isHere)
	return server, env
}

// The model of the configuration chooses, and words do if it fails.
func TestServeMessagesWithModel(t *testing.T) {
	t.Parallel()
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		if strings.Contains(a.Prompt, "broken") {
			return runnertest.Answer{Status: 400}
		}
		return runnertest.Answer{Tool: "route_message", Arguments: map[string]any{"clients": []string{"lights"}, "reason": "It is about light."}}
	})
	_, env := startLights(t, model.URL)
	out, code := waza(t, env, "send", "Too dark here")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, "to lights, chosen by the model: It is about light.\nlights: acknowledged\n", out)
	out, code = waza(t, env, "send", "The lamps are broken")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, "to lights, chosen by words: The model could not be asked, so words decided. Its description "+
		"shares words with the message: lamps\nlights: acknowledged\n",
		out)
}

// When the provider refuses a request, words choose. The router does not wait until the provider
// allows a second request, although it would wait as long for an answer.
func TestServeMessagesWithBusyModel(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "15")
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
	}))
	defer model.Close()
	server, env := startLights(t, model.URL+"/v1")
	out, code := waza(t, env, "send", "The lamps are too bright")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, "to lights, chosen by words: The model could not be asked, so words decided. Its description "+
		"shares words with the message: lamps\nlights: acknowledged\n",
		out)
	server.says(t, "words choose the receivers of messages")
	require.LessOrEqual(t, requests.Load(), int64(1))
}
