//go:build linux

package main

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/pause"
	"waza/runner/proc/proctest"
	"waza/runner/routing"
	"waza/runner/runnertest"
)

// newRouted is a server with a message router, and its address.
func newRouted(t *testing.T, env ...string) (s *served, address string) {
	t.Helper()
	address = proctest.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	s = newServed(t, wazaPath(t), append(env, "WAZA_SERVE_ROUTER_LISTEN=localhost:"+port)...)
	return s, address
}

// messagesOf are the messages of the server, by text.
func messagesOf(s *served) map[string]*routing.Routed {
	s.Helper()
	var list struct{ Messages []*routing.Routed }
	s.call("message.list", map[string]any{}, &list)
	all := map[string]*routing.Routed{}
	for _, r := range list.Messages {
		all[r.Text] = r
	}
	return all
}

// A server is killed while a model chooses, while a client has a message, and after an
// acknowledgement. The next server routes the first message, gives the second to another client,
// and does not send the third again. waza send keeps waiting and gets the outcome.
func TestCrashMessages(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	choosing, never := make(chan struct{}, 1), make(chan struct{})
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		if strings.Contains(a.Prompt, "first") && asked.Add(1) == 1 {
			choosing <- struct{}{}
			<-never
		}
		return runnertest.Answer{Tool: "route_message", Arguments: map[string]any{"clients": []string{"other"}, "reason": "It is left."}}
	})
	t.Cleanup(func() { close(never) }) // before the model ends
	s, address := newRouted(t, "OPENAI_API_KEY=sk-test-0123456789", "WAZA_SERVE_MODEL_EXECUTOR=openai", "WAZA_SERVE_MODEL_MODEL=small",
		"WAZA_SERVE_MODEL_BASE_URL="+model.URL, "WAZA_SERVE_ROUTER_RECONNECT_WAIT=2s")
	silent := &taker{name: "silent", description: "Never answers.", work: func(string) (string, map[string]any) { return "", nil }}
	eager := &taker{name: "eager", description: "Answers at once.", work: takes}
	other := &taker{name: "other", description: "Takes the rest.", work: takes}
	startTakers(t, address, silent, eager, other)
	s.start()
	waitFor(t, "the clients", func() bool { return silent.isHere() && eager.isHere() && other.isHere() })

	send := func(text string) (outcome chan string) {
		cmd := exec.Command(s.waza, "send", text)
		cmd.Env = s.env
		outcome = make(chan string, 1)
		go func() {
			out, err := cmd.CombinedOutput()
			outcome <- fmt.Sprint(string(out), err)
		}()
		return outcome
	}
	first := send("first")
	<-choosing
	second := send("silent: second")
	third := send("eager: third")
	require.Contains(t, <-third, "eager: acknowledged")
	waitFor(t, "the message", func() bool { return len(silent.messages()) == 1 })

	s.kill()
	s.start()
	require.Equal(t, "to other, chosen by the model: It is left.\nother: acknowledged\n<nil>", <-first)
	require.Equal(t, "to silent, named in the message\nsilent: rejected: The router was restarted before it answered\n"+
		"to other, chosen by the model: It is left.\nother: acknowledged\n<nil>", <-second)
	require.Len(t, silent.messages(), 1)
	require.Len(t, eager.messages(), 1, "one that was acknowledged is not sent again")
	require.Len(t, other.messages(), 2)
	for text, r := range messagesOf(s) {
		require.Equal(t, routing.Taken, r.Status, text)
	}
	requireIntact(t, s.state)
}

// A server is killed repeatedly while messages are sent. No accepted message is lost, no client
// gets one twice, and no acknowledged message is sent again.
func TestCrashManyMessages(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	kills, _ := serveSize()
	kills = min(kills, 40)
	s, address := newRouted(t, "WAZA_SERVE_ROUTER_RECONNECT_WAIT=300ms", "WAZA_SERVE_ROUTER_HISTORY=100000",
		"WAZA_SERVE_ROUTER_RESPONSE_TIMEOUT=1s")
	var clients []*taker
	for i := range 4 {
		clients = append(clients, &taker{name: fmt.Sprintf("client-%d", i), description: "Takes messages with numbers.", work: func(
			string,
		) (string, map[string]any) {
			_ = pause.For(t.Context(), upTo(r, 20*time.Millisecond))
			switch r.IntN(4) {
			case 0:
				return "reject", nil
			case 1:
				return "", nil // until it is too late
			}
			return "ack", nil
		}})
	}
	startTakers(t, address, clients...)
	s.start()
	accepted, taken := map[string]bool{}, map[string]int{}
	for kill := range kills {
		for i := range 5 {
			text := fmt.Sprintf("numbers %d %d", kill, i)
			if i == 0 {
				text = fmt.Sprintf("client-%d: %s", kill%4, text)
			}
			out, code := waza(t, s.env, "send", "--no-wait", text)
			require.Equal(t, exit.Passed, code, out)
			accepted[text] = true
		}
		require.NoError(t, pause.For(t.Context(), upTo(r, 300*time.Millisecond)))
		for text, m := range messagesOf(s) {
			if _, known := taken[text]; !known && m.Has(routing.Acknowledged) {
				taken[text] = len(m.Recipients)
			}
		}
		s.kill()
		s.start()
	}
	s.until("all messages are over", func() bool {
		for _, r := range messagesOf(s) {
			if !r.IsOver() {
				return false
			}
		}
		return true
	})
	all := messagesOf(s)
	for text := range accepted {
		require.NotNil(t, all[text], "%s is lost", text)
	}
	for text, recipients := range taken {
		require.Equal(t, routing.Taken, all[text].Status, text)
		require.Len(t, all[text].Recipients, recipients, "%s was sent again after it was acknowledged", text)
	}
	for _, c := range clients {
		seen := map[string]bool{}
		for _, m := range c.messages() {
			require.False(t, seen[m.id], "%s got %s twice", c.name, m.text)
			seen[m.id] = true
			require.NotNil(t, func() *routing.Recipient {
				for _, r := range all {
					if r.ID == m.id {
						return r.Recipient(c.name)
					}
				}
				return nil
			}(), "the server knows nothing of %s and %s", m.text, c.name)
		}
	}
	requireIntact(t, s.state)
}
