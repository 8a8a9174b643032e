package browser

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The token of a connection is replaced after a day, and ids never repeat.
func TestTokenRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &connection{speaker: &speaker{server: &Server{config: Defaults()}}}
		seen := map[string]bool{}
		next := func() [32]byte {
			id := s.NewID()
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
			require.False(t, seen[id])
			seen[id] = true
			return s.token
		}
		first := next()
		time.Sleep(24*time.Hour - time.Second)
		require.Equal(t, first, next())
		time.Sleep(time.Second)
		second := next()
		require.NotEqual(t, first, second)
		require.Equal(t, second, next())
	})
}

// Each input is ignored, refused with a code, or has the fields that its type requires. An
// accepted message gives the same result when it is nested in a command.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"type":"ping","id":"1","timestamp":1,"payload":{}}`,
		`{"type":"command","id":"1","timestamp":1,"payload":{"text":"x","assistant_id":"y"}}`,
		`{"type":"command","id":"1","timestamp":1,"payload":{"type":"list_assistants"}}`,
		`{"type":"command","id":"1","timestamp":1,"payload":{"type":"delete_assistant","id":"2","timestamp":1,"payload":{"assistant_id":"x"}}}`,
		`{"type":"tool_result","id":"1","timestamp":1,"correlation_id":"c","payload":{"tool":"navigate","success":true,"result":{"a":[1]}}}`,
		`{"type":"create_assistant","id":"1","timestamp":1,"payload":{"name":"a","capabilities":["x",7]}}`,
		`[1]`, `null`, `{"type":null}`, `{"type":"ping","type":"command","id":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse(data)
		var refused *fault
		switch {
		case errors.Is(err, errNoJSON):
			require.False(t, json.Valid(data))
			return
		case errors.As(err, &refused):
			_, err := serverSchemas.Encode("error", &outgoing{
				Type: "error", ID: "550e8400-e29b-41d4-a716-446655440000", CorrelationID: refused.ID,
				Payload: faultObject(refused),
			})
			require.NoError(t, err)
			return
		}
		require.NoError(t, err)
		require.NotEmpty(t, shapes[m.kind])
		require.NotEmpty(t, m.id)
		require.LessOrEqual(t, len(m.id), mostID)
		if m.nested || !json.Valid(m.data) {
			require.True(t, json.Valid(m.data))
			return
		}
		kind, _ := json.Marshal(m.kind)
		id, _ := json.Marshal(m.id)
		if m.kind == typeToolResult {
			return // its correlation_id belongs to the outer message
		}
		payload, err := json.Marshal(m.payload)
		require.NoError(t, err)
		if m.payload == nil {
			payload = []byte("null")
		}
		again, err := parse([]byte(`{"type":"command","id":` + string(id) + `,"timestamp":1,"payload":{"type":` +
			string(kind) + `,"payload":` + string(payload) + `}}`))
		require.NoError(t, err)
		require.Equal(t, m.kind, again.kind)
		require.Equal(t, m.payload, again.payload)
	})
}
