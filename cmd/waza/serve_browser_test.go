//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
	"waza/runner/runnertest"
)

// browserMessage is a message of the door of browser assistants, as far as these tests read it.
type browserMessage struct {
	Type          string `json:"type"`
	ID            string `json:"id"`
	CorrelationID string `json:"correlation_id"`
	Payload       struct {
		Status, Result, Error, Code, Tool string
		Assistant                         struct{ ID string }
		Assistants                        []struct{ ID, Name, Status string }
	} `json:"payload"`
}

// browserClient is an extension that speaks to a server.
type browserClient struct {
	t *testing.T
	*websocket.Conn
}

// connectBrowser connects as soon as the server takes connections.
func connectBrowser(t *testing.T, addr string) *browserClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+addr+"/ws?version=1.0.0&extension_id=550e8400-e29b-41d4-a716-446655440000", nil)
	require.NoError(t, err)
	b := &browserClient{t, c}
	require.Equal(t, "connected", b.hear().Type)
	return b
}

func (b *browserClient) say(kind, id, correlation string, payload any) {
	data, err := json.Marshal(map[string]any{"type": kind, "id": id, "timestamp": 1, "correlation_id": correlation, "payload": payload})
	require.NoError(b.t, err)
	require.NoError(b.t, b.Write(b.t.Context(), websocket.MessageText, data))
}

func (b *browserClient) hear() browserMessage {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	_, data, err := b.Read(ctx)
	require.NoError(b.t, err)
	var m browserMessage
	require.NoError(b.t, json.Unmarshal(data, &m), "%s", data)
	return m
}

// until reads messages until one fits.
func (b *browserClient) until(kind, correlation, status string) browserMessage {
	b.t.Helper()
	for {
		m := b.hear()
		require.NotEqual(b.t, "error", m.Type, "%+v", m)
		if m.Type == kind && m.CorrelationID == correlation && (status == "" || m.Payload.Status == status) {
			return m
		}
	}
}

// A server is killed during a command. The running command has failed and is not repeated. The
// next server runs the waiting commands in order, as soon as the extension is back.
func TestCrashServeBrowser(t *testing.T) {
	t.Parallel()
	used := make(chan struct{}, 100)
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		switch {
		case a.Prompt != "first" || len(a.Results) > 0:
			return runnertest.Answer{Text: "done: " + a.Prompt}
		default:
			used <- struct{}{}
			return runnertest.Answer{Tool: "navigate", Arguments: map[string]any{"url": "https://example.com"}}
		}
	})
	addr := proctest.FreeAddress(t)
	config := filepath.Join(t.TempDir(), "serve.yaml")
	require.NoError(t, os.WriteFile(config, []byte("model: {executor: openai, model: m, base_url: "+model.URL+"}\n"), 0o600))
	env := environment(t, "WAZA_SERVE_BROWSER_LISTEN="+addr, "OPENAI_API_KEY=")
	serve := func() *command {
		c := startWaza(t, env, "serve", "--agents", "off", "--jobs", "off", "--config", config)
		require.Regexp(t, regexp.MustCompile(`address=\S+`), c.says(t, "msg=listening door=browser"))
		return c
	}
	server := serve()
	b := connectBrowser(t, addr)
	b.say("create_assistant", "1", "", map[string]any{"name": "Bob", "instructions": "You are Bob.", "capabilities": []string{"navigate"}})
	bob := b.until("assistant_created", "1", "").Payload.Assistant.ID
	b.say("activate_assistant", "2", "", map[string]any{"assistant_id": bob})
	b.until("assistant_updated", "2", "active")
	command := func(id string) {
		b.say("command", id, "", map[string]any{"text": id, "assistant_id": bob})
		b.until("status_update", id, "queued")
	}
	command("first")
	b.until("tool_execution", "first", "")
	command("second")
	command("third")

	require.NoError(t, server.Process.Signal(syscall.SIGKILL))
	_ = server.Wait()
	server = serve()
	b = connectBrowser(t, addr)
	first := b.until("status_update", "first", "")
	require.Equal(t, "failed", first.Payload.Status)
	require.Equal(t, "interrupted: the server stopped during the command", first.Payload.Error)
	require.Equal(t, "done: second", b.until("status_update", "second", "completed").Payload.Result)
	require.Equal(t, "done: third", b.until("status_update", "third", "completed").Payload.Result)
	b.say("list_assistants", "3", "", map[string]any{})
	list := b.until("assistant_list", "3", "").Payload.Assistants
	require.Len(t, list, 1)
	require.Equal(t, "active", list[0].Status)
	// A client that sends its command again gets the command's outcome.
	b.say("command", "first", "", map[string]any{"text": "first", "assistant_id": bob})
	require.Equal(t, "failed", b.until("status_update", "first", "").Payload.Status)
	require.Len(t, used, 1, "the model was asked once")
	require.NoError(t, b.CloseNow())
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, server.exitCode(t))
}

// A server is killed again and again while commands come. Each ends once: completed, or interrupted.
func TestCrashServeBrowserAnywhere(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	rounds := 4
	if os.Getenv("WAZA_TEST_CRASH") != "" {
		rounds = 20
	}
	asked := make(chan string, 10_000)
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		asked <- a.Prompt
		return runnertest.Answer{Text: "done: " + a.Prompt}
	})
	addr := proctest.FreeAddress(t)
	config := filepath.Join(t.TempDir(), "serve.yaml")
	require.NoError(t, os.WriteFile(config,
		[]byte("model: {executor: openai, model: m, base_url: "+model.URL+"}\nbrowser: {reconnects_per_minute: 1000}\n"),
		0o600))
	env := environment(t, "WAZA_SERVE_BROWSER_LISTEN="+addr, "OPENAI_API_KEY=")
	bob := ""
	ended := map[string]string{}
	accepted := map[string]bool{}
	for round := range rounds {
		c := startWaza(t, env, "serve", "--agents", "off", "--jobs", "off", "--config", config)
		c.says(t, "msg=listening door=browser")
		b := connectBrowser(t, addr)
		if bob == "" {
			b.say("create_assistant", "1", "", map[string]any{"name": "Bob", "instructions": "You are Bob.", "capabilities": []string{"navigate"}})
			bob = b.until("assistant_created", "1", "").Payload.Assistant.ID
			b.say("activate_assistant", "2", "", map[string]any{"assistant_id": bob})
		}
		last := round == rounds-1
		if last { // after a kill, a client gets unread results by sending the command again
			for id := range accepted {
				if isOpen(id, ended) {
					b.say("command", id, "", map[string]any{"text": id, "assistant_id": bob})
				}
			}
		}
		if !last {
			time.AfterFunc(upTo(r, 60*time.Millisecond), func() { _ = c.Process.Signal(syscall.SIGKILL) })
		}
		for i := 0; ; i++ {
			if !last && i < 8 {
				data := fmt.Sprintf(`{"type":"command","id":"c%d-%d","timestamp":1,"payload":{"text":"c%[1]d-%[2]d","assistant_id":%[3]q}}`,
					round, i, bob)
				_ = b.Write(t.Context(), websocket.MessageText, []byte(data))
			}
			if last && countOpen(accepted, ended) == 0 {
				break
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			_, data, err := b.Read(ctx)
			cancel()
			if err != nil {
				require.False(t, last, "%v\naccepted: %v\nended: %v", err, accepted, ended)
				break
			}
			var m browserMessage
			require.NoError(t, json.Unmarshal(data, &m))
			switch {
			case m.Type == "ack":
				accepted[m.CorrelationID] = true
			case m.Type == "status_update" && m.Payload.Status != "queued" && m.Payload.Status != "executing":
				if before := ended[m.CorrelationID]; before != "" {
					require.Equal(t, before, m.Payload.Status, "%s ended twice", m.CorrelationID)
				}
				ended[m.CorrelationID] = m.Payload.Status
			}
		}
		_ = b.CloseNow()
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	counts := map[string]int{}
	for len(asked) > 0 {
		counts[<-asked]++
	}
	for id, n := range counts {
		require.Equal(t, 1, n, "%s was done twice", id)
	}
	for id, status := range ended {
		require.Contains(t, []string{"completed", "failed"}, status, id)
	}
}

// isOpen reports whether a command of this test has not ended.
func isOpen(id string, ended map[string]string) bool {
	return len(id) > 1 && id[0] == 'c' && ended[id] == ""
}

// countOpen counts commands that were accepted and have not ended.
func countOpen(accepted map[string]bool, ended map[string]string) (n int) {
	for id := range accepted {
		if isOpen(id, ended) {
			n++
		}
	}
	return n
}
