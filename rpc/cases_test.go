package rpc_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waza/rpc"
)

const (
	probe      = `{"jsonrpc":"2.0","id":"probe","method":"ping"}` + "\n"
	probed     = `{"jsonrpc":"2.0","id":"probe","result":"pong"}`
	parseError = `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}`
	badRequest = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":null}`
)

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n" }
func pong(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":"pong"}` }
func bad(id string) string  { return strings.Replace(badRequest, "null", id, 1) }
func unknown(id string) string {
	return `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":` + id + `}`
}

// cases are input bytes and output lines, with replies in any order and without error data. A
// probe follows the input and must be answered, unless cut is set: those cases end the input
// themselves. On a socket, foreign input gets one parse error, and the connection ends. $EMPTY
// is an empty directory.
var cases = []struct {
	name    string
	in      string
	out     []string
	cut     bool
	foreign bool
}{
	// The examples of the last section of the specification. The server does not have their
	// methods.
	{name: "spec positional", in: `{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}` + "\n" +
		`{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}` + "\n",
		out: []string{unknown("1"), unknown("2")}},
	{
		name: "spec named",
		in:   `{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}` + "\n",
		out:  []string{unknown("3")},
	},
	{
		name: "spec notifications",
		in:   `{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}` + "\n" + `{"jsonrpc": "2.0", "method": "foobar"}` + "\n",
	},
	{name: "spec unknown method", in: `{"jsonrpc": "2.0", "method": "foobar", "id": "1"}` + "\n", out: []string{unknown(`"1"`)}},
	{name: "spec invalid JSON", in: `{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]` + "\n", out: []string{parseError}},
	{name: "spec invalid request", in: `{"jsonrpc": "2.0", "method": 1, "params": "bar"}` + "\n", out: []string{badRequest}},
	{
		name: "spec batch invalid JSON",
		in:   `[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method" ]` + "\n",
		out:  []string{parseError},
	},
	{name: "spec empty array", in: "[]\n", out: []string{badRequest}},
	{name: "spec batch of one invalid", in: "[1]\n", out: []string{"[" + badRequest + "]"}},
	{name: "spec invalid batch", in: "[1,2,3]\n", out: []string{"[" + badRequest + "," + badRequest + "," + badRequest + "]"}},
	{name: "spec batch", in: `[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": ` +
		`"2.0", "method": "notify_hello", "params": [7]}, {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], ` +
		`"id": "2"}, {"foo": "boo"}, {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": ` +
		`"5"}, {"jsonrpc": "2.0", "method": "get_data", "id": "9"} ]` + "\n",
		out: []string{"[" + strings.Join([]string{unknown(`"1"`), unknown(`"2"`), badRequest, unknown(`"5"`), unknown(`"9"`)}, ",") + "]"}},
	{
		name: "spec batch of notifications",
		in: `[ {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]}, {"jsonrpc": "2.0", "method": ` +
			`"notify_hello", "params": [7]} ]` + "\n",
	},

	{name: "id null", in: ping("null"), out: []string{pong("null")}},
	{name: "id text", in: ping(`"é<1>"`), out: []string{pong(`"é<1>"`)}},
	{name: "id -1", in: ping("-1"), out: []string{pong("-1")}},
	{name: "id 1.5", in: ping("1.5"), out: []string{pong("1.5")}},
	{name: "id 2^70", in: ping("1180591620717411303424"), out: []string{pong("1180591620717411303424")}},
	{name: "id object", in: ping("{}"), out: []string{badRequest}},
	{name: "id true", in: ping("true"), out: []string{badRequest}},
	{name: "params scalar", in: `{"jsonrpc":"2.0","id":1,"method":"ping","params":7}` + "\n", out: []string{bad("1")}},
	{name: "params null", in: `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}` + "\n", out: []string{bad("1")}},
	{name: "jsonrpc missing", in: `{"id":1,"method":"ping"}` + "\n", out: []string{bad("1")}},
	{name: "jsonrpc 1.0", in: `{"jsonrpc":"1.0","id":1,"method":"ping"}` + "\n", out: []string{bad("1")}},
	{name: "jsonrpc number", in: `{"jsonrpc":2.0,"id":1,"method":"ping"}` + "\n", out: []string{bad("1")}},
	{name: "method missing", in: `{"jsonrpc":"2.0","id":1}` + "\n", out: []string{bad("1")}},
	{name: "method empty", in: `{"jsonrpc":"2.0","id":1,"method":""}` + "\n", out: []string{unknown("1")}},
	{name: "number", in: "1\n", out: []string{badRequest}},
	{name: "null", in: "null\n", out: []string{badRequest}},
	{name: "CRLF", in: strings.ReplaceAll(ping("1")+ping("2"), "\n", "\r\n"), out: []string{pong("1"), pong("2")}},
	{name: "blank lines", in: "\n\r\n \t\n" + ping("1") + "\n", out: []string{pong("1")}},
	{name: "invalid UTF-8", in: "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}\n", out: []string{parseError}},
	{name: "BOM", in: "\ufeff" + ping("1"), out: []string{pong("1")}},
	{name: "NUL bytes", in: "\x00\x00\n", out: []string{parseError}, foreign: true},
	{name: "binary rubbish", in: "\x16\x03\x01\x02\x00\x01\xfc\n\x89PNG\r\n", out: []string{parseError, parseError}, foreign: true},
	{name: "binary rubbish later", in: ping("1") + "\x16\x03\x01\x02\x00\x01\xfc\n", out: []string{pong("1"), parseError}},
	{name: "duplicate ids", in: list("1") + list("1"), out: []string{listed("1"), listed("1")}},
	{name: "duplicate members", in: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"exit"}` + "\n", out: []string{bad("1")}},
	{
		name: "wrong letter case",
		in:   `{"jsonrpc":"2.0","id":1,"Method":"ping"}` + "\n" + `{"JSONRPC":"2.0","id":2,"method":"ping"}` + "\n",
		out:  []string{bad("1"), bad("2")},
	},
	{
		name: "depth 9,000", in: nested(9000),
		out: []string{`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: unknown parameter \"x\""}}`},
	},
	{name: "depth 2,000,000", in: nested(2_000_000), out: []string{bad("7")}},
	{name: "50 MB line", in: "{" + strings.Repeat("a", 50_000_000) + "\n", out: []string{badRequest}},
	{
		name: "stray response",
		in:   `{"jsonrpc":"2.0","id":1,"result":5}` + "\n" + `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""}}` + "\n",
	},
	{
		name: "result null", in: `{"jsonrpc":"2.0","id":1,"method":"$/cancelRequest","params":{"id":5}}` + "\n",
		out: []string{`{"jsonrpc":"2.0","id":1,"result":null}`},
	},
	{name: "truncated at EOF", in: ping("1") + `{"jsonrpc":"2.0","id":2,"meth`, out: []string{pong("1"), parseError}, cut: true},
	{name: "no final newline", in: strings.TrimSpace(ping("1")), out: []string{pong("1")}, cut: true},
	{name: "slow request then EOF", in: list("1"), out: []string{listed("1")}, cut: true},
	{name: "slow batch then EOF", in: "[" + strings.TrimSpace(list("1")) + "," + strings.TrimSpace(list("2")) + "]",
		out: []string{"[" + listed("1") + "," + listed("2") + "]"}, cut: true},
	{name: "empty", cut: true},
	{name: "blank", in: "\n", cut: true},
}

// list returns a request that takes time.
func list(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"eval.list","params":{"directory":"$EMPTY"}}` + "\n"
}
func listed(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"evals":[]}}` }

func nested(depth int) string {
	return `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}}\n"
}

func TestCases(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				in, want := strings.ReplaceAll(c.in, "$EMPTY", t.TempDir()), c.out
				if !c.cut {
					in, want = in+probe, append(want[:len(want):len(want)], probed)
				}
				s := newServer(t, rpc.Options{})
				cl := connect(t, s)
				if c.foreign && cl.ended == nil {
					want = []string{parseError}
				}
				go func() {
					_, _ = io.WriteString(cl.w, in)
					cl.w.Close()
				}()
				got := cl.rest()
				require.ElementsMatch(t, simplify(t, want), simplify(t, got))
				if cl.ended != nil {
					require.NoError(t, cl.exit())
				}
				connect(t, s).must("ping", nil, nil) // the server still works
			})
		}
	})
}

// simplify returns replies with their members in order and without error data, which must be an
// object.
func simplify(t testing.TB, lines []string) []string {
	t.Helper()
	out := []string{}
	for _, line := range lines {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var v any
		require.NoError(t, dec.Decode(&v), "%.200q", line)
		replies, batch := v.([]any)
		if !batch {
			replies = []any{v}
		}
		for _, r := range replies {
			if e, ok := r.(map[string]any)["error"].(map[string]any); ok && e["data"] != nil {
				require.IsType(t, map[string]any{}, e["data"])
				delete(e, "data")
			}
		}
		b, err := json.Marshal(v)
		require.NoError(t, err)
		out = append(out, string(b))
	}
	return out
}

// FuzzServe sends arbitrary bytes and then a probe. Each output line must be a reply, a batch of
// replies or a notification. The number of replies must match the requests, and the probe must
// be answered.
func FuzzServe(f *testing.F) {
	for _, c := range cases {
		if len(c.in) < 10_000 {
			f.Add([]byte(c.in))
		}
	}
	for _, m := range []string{"eval.run", "eval.get", "task.get", "run.status", "run.subscribe", "initialize", "rpc.discover", "run.result"} {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + m + `","params":{"path":"x","taskId":"y"}}`))
		f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"` + m + `","params":{"runId":"x"}}]`))
	}
	s := newServer(f, rpc.Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, word := range []string{"shutdown", "exit", "processId", `\u`, "eval.list"} {
			if bytes.Contains(data, []byte(word)) {
				t.Skip("would end the server, or search the disk")
			}
		}
		if len(data) > 10_000 || bytes.HasPrefix(bytes.ToLower(bytes.TrimLeft(data, " \t\r\n\ufeff")), []byte("content-")) {
			t.Skip("covered by another test")
		}
		var out bytes.Buffer
		in := io.MultiReader(bytes.NewReader(data), strings.NewReader("\n"+probe))
		require.NoError(t, s.ServeStdio(t.Context(), in, &out))
		replies, answered := 0, false
		for line := range strings.Lines(out.String()) {
			answered = answered || line == probed+"\n"
			replies += countReplies(t, line)
		}
		require.True(t, answered, "%q", out.String())
		require.Equal(t, owed(data)+1, replies, "%q", out.String())
	})
}

// countReplies checks a line and counts its replies.
func countReplies(t *testing.T, line string) int {
	require.True(t, utf8.ValidString(line))
	var list []map[string]json.RawMessage
	if !strings.HasPrefix(line, "[") {
		line = "[" + line + "]"
	}
	require.NoError(t, json.Unmarshal([]byte(line), &list))
	replies := 0
	for _, m := range list {
		require.Len(t, m, 3)
		require.Equal(t, `"2.0"`, string(m["jsonrpc"]))
		if _, ok := m["id"]; ok {
			require.True(t, (m["result"] == nil) != (m["error"] == nil))
			replies++
		} else {
			require.NotNil(t, m["method"])
		}
	}
	return replies
}

// owed returns the number of replies that the lines of data require.
func owed(data []byte) int {
	n := 0
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	first := true
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		line = bytes.Trim(line, " \t\r")
		if first && len(line) > 0 {
			line, first = bytes.TrimPrefix(line, []byte("\ufeff")), false
		}
		if len(line) == 0 {
			continue
		}
		var list []json.RawMessage
		switch {
		case !utf8.Valid(line) || !json.Valid(line):
			n++
		case json.Unmarshal(line, &list) == nil && line[0] == '[':
			if len(list) == 0 || len(list) > 100 {
				n++
				continue
			}
			for _, m := range list {
				n += owedTo(m)
			}
		default:
			n += owedTo(line)
		}
	}
	return n
}

// owedTo returns the number of replies that one message requires: none for a notification or a
// response.
func owedTo(raw json.RawMessage) int {
	dec := json.NewDecoder(bytes.NewReader(raw))
	token, err := dec.Token()
	if err != nil || token != json.Delim('{') {
		return 1
	}
	seen, valid := map[string]json.RawMessage{}, true
	for dec.More() {
		name, _ := dec.Token()
		var v json.RawMessage
		_ = dec.Decode(&v)
		if _, twice := seen[name.(string)]; twice {
			valid = false
		}
		seen[name.(string)] = v
	}
	if seen["method"] == nil && (seen["result"] != nil || seen["error"] != nil) {
		return 0
	}
	var version, method string
	valid = valid && json.Unmarshal(seen["jsonrpc"], &version) == nil && version == "2.0" &&
		json.Unmarshal(seen["method"], &method) == nil && seen["method"] != nil && seen["method"][0] == '"'
	if p := seen["params"]; p != nil && p[0] != '{' && p[0] != '[' {
		valid = false
	}
	if id := seen["id"]; id != nil || !valid || len(seen) > 30 {
		return 1
	}
	return 0
}
