package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/doortest"
	"waza/rpc/gateway/jobs/token"
	"waza/runner/routing"
)

// doorOf are the doors by the ports of docs/doors.md.
var doorOf = map[string]string{"8080": "agents", "8501": "jobs", "8000": "browser", "9473": "router"}

var conversation = regexp.MustCompile("(?s)```text\nconnect (.*?)```")

// TestConversations has the conversations of docs/doors.md with a server.
func TestConversations(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../docs/doors.md")
	require.NoError(t, err)
	all := conversation.FindAllStringSubmatch(string(doc), -1)
	require.Len(t, all, len(doorOf))
	for _, found := range all {
		lines := strings.Split(strings.TrimSpace(found[1]), "\n")
		t.Run(lines[0], func(t *testing.T) {
			t.Parallel()
			s, _ := served(t)
			converse(t, s, lines)
		})
	}
}

var (
	port     = regexp.MustCompile(`(?:127\.0\.0\.1|localhost):(\d+)`)
	anything = regexp.MustCompile(`"…"|…`)
)

// converse has the conversation of lines, whose first is an address.
func converse(t *testing.T, s *Server, lines []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	address := port.ReplaceAllStringFunc(lines[0], func(at string) string {
		_, number, _ := strings.Cut(at, ":")
		return s.addresses[doorOf[number]].String()
	})
	if strings.Contains(address, "TOKEN") {
		tokens, err := token.New(ctx, s.store)
		require.NoError(t, err)
		pair, err := tokens.Create(ctx, token.Grant{TTL: time.Hour})
		require.NoError(t, err)
		address = strings.Replace(address, "TOKEN", pair.Access, 1)
	}
	ws, _, err := websocket.Dial(ctx, address, nil)
	require.NoError(t, err)
	defer ws.CloseNow()
	last := map[string]any{}
	for _, line := range lines[1:] {
		said, text, _ := strings.Cut(line, " ")
		switch said {
		case "→":
			require.NoError(t, ws.Write(ctx, websocket.MessageText, []byte(fill(text, last))), line)
		case "←":
			_, got, err := ws.Read(ctx)
			require.NoError(t, err, line)
			n := 0
			want := anything.ReplaceAllStringFunc(text, func(string) string {
				n++
				return fmt.Sprintf(`"$%d"`, n)
			})
			doortest.Names{}.Compare(t, line, want, got)
			require.NoError(t, json.Unmarshal(got, &last))
		case "$":
			message, ok := strings.CutPrefix(text, "waza send ")
			require.True(t, ok, line)
			_, err := s.router.Messenger().Post(ctx, &routing.Message{Text: strings.Trim(message, `"`)})
			require.NoError(t, err)
		default:
			t.Fatalf("unknown step %s", line)
		}
	}
}

// fill inserts ids of the last received message into the next one.
func fill(text string, last map[string]any) string {
	payload, _ := last["payload"].(map[string]any)
	if payload == nil {
		return text
	}
	for _, key := range []string{"messageId", "assistant_id"} {
		id, _ := payload["id"].(string)
		if a, ok := payload["assistant"].(map[string]any); ok {
			id, _ = a["id"].(string)
		}
		text = strings.Replace(text, `"`+key+`":"…"`, `"`+key+`":"`+id+`"`, 1)
	}
	return text
}
