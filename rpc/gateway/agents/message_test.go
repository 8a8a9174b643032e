package agents

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/rpc/gateway/internal/message"
	"waza/runner/executor/remote"
)

func TestQuickChecksAcceptNothingElse(t *testing.T) {
	t.Parallel()
	value := rapid.SampledFrom([]string{
		`null`, `0`, `1.5`, `-1`, `""`, `"x"`, `"success"`, `true`, `[]`, `{}`, `[1]`, `[{"tool":"x"}]`,
		`[{"tool":1}]`, `{"status":1}`, `{"a":{}}`,
	})
	rapid.Check(t, func(t *rapid.T) {
		object := func(label string, fields ...string) []byte {
			b := []byte{'{'}
			for _, field := range fields {
				if rapid.Bool().Draw(t, label+" has "+field) {
					b = append(b, `"`+field+`":`+value.Draw(t, field)+","...)
				}
			}
			return append(bytes.TrimSuffix(b, []byte(",")), '}')
		}
		result := rapid.SampledFrom([]string{
			string(object("result", "status", "executionTime", "toolCalls", "metadata", "output")),
			value.Draw(t, "value"),
		}).Draw(t,
			"result")
		version := rapid.SampledFrom([]string{"", `"jsonrpc":"2.0",`, `"jsonrpc":"1.0",`, `"jsonrpc":2,`}).Draw(t, "version")
		data := []byte(`{` + version + `"id":` + value.Draw(t, "id") + `,"result":` + result + `,"error":` + value.Draw(t, "error") + `}`)
		m, f := parse(data)
		require.Nil(t, f)
		if m.isResult() {
			_, err := clientSchemas.Check(kindResponse, data)
			require.NoError(t, err, "%s", data)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "x", "\xff", "a\"b"})
		raw := rapid.SampledFrom([]string{"", "null", "1", `{"a":[]}`, `{"a"`, `"\ud800"`})
		e := &remote.Evaluation{
			ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), URL: text.Draw(t, "url"), Tool: text.Draw(t, "tool"),
			Input: json.RawMessage(raw.Draw(t, "input")), Model: json.RawMessage(raw.Draw(t, "model")),
			Timeout: rapid.Int64Range(-1, 2).Draw(t, "timeout"),
			Metadata: remote.Metadata{
				Tags: rapid.SliceOf(text).Draw(t, "tags"), Retries: rapid.IntRange(-1, 1).Draw(t, "retries"),
				Priority: rapid.SampledFrom([]string{"", "low", "normal", "high", "top"}).Draw(t, "priority"),
			},
		}
		data, err := encodeEvaluation(text.Draw(t, "request"), e)
		if err == nil {
			_, err = serverSchemas.Check(methodEvaluate, data)
			require.NoError(t, err, "%s", data)
			var got evaluate
			require.NoError(t, json.Unmarshal(data, &got))
			again, err := json.Marshal(&got)
			require.NoError(t, err)
			require.JSONEq(t, string(again), string(data))
			require.Equal(t, strings.ToValidUTF8(e.Name, "\ufffd"), got.Params.Name)
			require.Equal(t, e.Timeout, got.Params.Timeout)
		}
	})
}

// Every input is a message of a known kind, or gets an error with a documented code that matches
// its schema.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"register","clientId":"550e8400-e29b-41d4-a716-446655440000:tab","secretKey":"k",` +
			`"capabilities":{"tools":["a"],"maxConcurrency":3,"version":"1"}}`,
		`{"type":"ready","timestamp":"2024-01-01T00:00:00Z"}`, `{"type":"ping"}`,
		`{"type":"status","evaluationId":"x","status":"running","progress":0.5,"message":"m"}`,
		`{"id":1,"method":"auth","params":{"secretKey":"k"}}`, `{"jsonrpc":"2.0","id":"x","method":"configure_llm"}`,
		`{"jsonrpc":"2.0","id":{},"method":1}`,
		`{"id":"x","result":{"status":"success","toolCalls":[{"tool":"t"}],"executionTime":1}}`,
		`{"id":"x","error":{"code":-32003,"message":"m","data":{"retryAfter":1}}}`,
		`{"id":"x","result":null,"error":null}`, `{"type":1}`, `[]`, `null`, `{`, `{"id":1e999,"result":0}`,
		`{"type":"ping","type":"ready"}`, `{"Type":"ping"}`, " {\"\\u0074ype\" : \"ping\" , \"\\ud800\":1} ",
		"{\"\xff\":1,\"type\":\"ping\"}", `{"":1,"type":"ping"}`, `{"id":"` + strings.Repeat("t", maxID) + `","result":0}`,
	} {
		f.Add([]byte(seed))
	}
	documented := []int{codeParse, codeInvalidRequest, codeNoMethod, codeInvalidParams}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, fault := parse(data)
		if fault != nil {
			require.Contains(t, documented, fault.Code)
			_, err := serverSchemas.Encode("error", failureOf(fault))
			require.NoError(t, err)
			return
		}
		var names map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &names))
		for _, name := range []string{"type", "jsonrpc", "method", "id", "result", "error"} {
			value := names[name]
			require.Equal(t, string(value), string(m.fields.Get(name)), "%q", name)
		}
		switch m.kind {
		case kindRequest:
			name, ok := message.Text(names["method"])
			require.True(t, ok)
			require.Equal(t, name, m.method)
			if m.method == methodAuth {
				_, fault = checked(methodAuth, m)
			}
		case kindResponse:
			id, answer, bad := m.answer()
			require.True(t, (answer.Error == nil) != (answer.Result == nil))
			require.True(t, bad == nil || answer.Error != nil)
			if want, ok := message.Text(names["id"]); ok && len(names["id"]) <= maxID {
				require.Equal(t, want, id)
			}
			if answer.Error == nil {
				_, err := clientSchemas.Check(kindResponse, data)
				require.NoError(t, err)
			}
			_, err := json.Marshal(answer)
			require.NoError(t, err)
			fault = bad
		default:
			name, _ := message.Text(names["type"])
			require.Equal(t, name, m.kind)
			require.True(t, slices.Contains([]string{kindRegister, kindReady, kindPing, kindStatus, kindAuthVerify}, m.kind))
			_, fault = checked(m.kind, m)
		}
		if fault != nil {
			require.Contains(t, documented, fault.Code)
			_, err := serverSchemas.Encode("error", failureOf(fault))
			require.NoError(t, err)
		}
	})
}

// Members without a schema cost no memory: a client can send 8 MB of them.
func TestUnknownFieldsAreNotDecoded(t *testing.T) {
	t.Parallel()
	junk := "[" + strings.Repeat("{},", 100_000) + "{}]"
	for kind, message := range map[string]string{
		kindStatus:   `{"type":"status","evaluationId":"x","status":"running","junk":` + junk + `}`,
		kindPing:     `{"type":"ping",` + strings.Repeat(`"x":{},`, 100_000) + `"x":1}`,
		kindRequest:  `{"id":1,"method":"x","params":` + junk + `}`,
		kindResponse: `{"id":"x","result":{"status":"success","toolCalls":[{"tool":"x","args":` + junk + `}],"output":` + junk + `}}`,
		"items":      `{"id":"x","result":{"status":"success","toolCalls":[{"tool":"x"},` + junk[1:] + `}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := kind
			if kind == "items" {
				name = kindResponse
			}
			m, fault := parse([]byte(message))
			require.Nil(t, fault)
			require.Less(t, cap(m.fields), 10)
			tree, err := clientSchemas.Check(name, m.data)
			if kind == "items" {
				require.ErrorContains(t, err, "result.toolCalls.1.tool: is missing")
				return
			}
			require.NoError(t, err)
			b, err := json.Marshal(tree)
			require.NoError(t, err)
			require.Less(t, len(b), 200)
		})
	}
}
