package router

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waza/runner/routing"
)

// For any input, the stored data is within the limits, and a registration either follows the
// rules or gets an error code of the protocol.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"type":"registration","payload":{"name":"my-client","description":"Tasks.","version":"1.0.0","capabilities":["tasks"]}}`,
		`{"type":"registration","payload":{"name":"1","description":" "}}`, `{"type":"registration","payload":7}`, `{"type":"registration"}`,
		`{"type":"response","payload":{"messageId":"msg-1","type":"ack","payload":{}}}`,
		`{"type":"response","payload":{"messageId":"msg-1","type":"reject","payload":{"reason":"no"}}}`,
		`{"type":"response","payload":{"messageId":"msg-1","type":"notification","payload":{"title":"t","body":null,"priority":"low"}}}`,
		`{"type":"response","payload":null}`, `{"t\u0079pe":"response"}`, `[]`, `"`, ``,
	} {
		f.Add([]byte(seed))
	}
	c := Defaults()
	f.Fuzz(func(t *testing.T, data []byte) {
		m, ok := parse(data)
		if !ok {
			require.Empty(t, m)
			return
		}
		require.True(t, json.Valid(data))
		if m.kind == typeRegistration {
			client, fault := c.registration(m.payload)
			if fault != nil {
				require.Contains(t, []string{codeName, codeDescription, codeValidation}, fault.Code)
				require.NotEmpty(t, fault.Message)
				return
			}
			require.Regexp(t, `^[A-Za-z][A-Za-z0-9_-]{0,63}$`, client.Name)
			require.NotEmpty(t, strings.TrimSpace(client.Description))
			require.LessOrEqual(t, utf8.RuneCountInString(client.Description), 1024)
			require.LessOrEqual(t, len(client.Capabilities), maxCapabilities)
			return
		}
		id, answer, ok := response(m.payload, "notebook")
		if !ok {
			return
		}
		require.LessOrEqual(t, len(id), maxMessageID)
		require.Contains(t, []string{routing.Acknowledged, routing.Rejected, routing.Notified}, answer.Kind)
		require.Equal(t, answer.Kind == routing.Notified, answer.Notification != nil)
		require.LessOrEqual(t, len(answer.Reason), maxReason+3)
		if n := answer.Notification; n != nil {
			require.NotEmpty(t, n.Title)
			require.Contains(t, []string{"low", "normal", "high"}, n.Priority)
			require.LessOrEqual(t, len(n.Body), maxNotificationBody+3)
		}
	})
}
