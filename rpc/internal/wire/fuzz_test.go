package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/require"
)

// FuzzScan compares the scanner with encoding/json, at depths that encoding/json reads.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-0,1.5e+9,"\u00e9\n",true,false,null,{}],"b":{"c":[]}}`, `[`, `]`, `{"a"`, `{"a":}`, `[1,]`, `01`, `1.`, `1e`, `-`,
		`"\x"`, `"\u12g4"`, "\"\x01\"", `nul`, `nulll`, ` 1 `, `{"a":1,}`, `[1 2]`, `{1:2}`, ``, `tru`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) >= MaxDepth {
			t.Skip()
		}
		s := scanner{data: data}
		end, depth, ok := s.value(s.space(0))
		require.Equal(t, json.Valid(data), ok && s.space(end) == len(data))
		require.LessOrEqual(t, depth, len(data))
	})
}

// FuzzServe sends arbitrary bytes and then a probe. Each output line must be a reply or a batch
// of replies, the number of replies must match the requests, and the probe must be answered
// last.
func FuzzServe(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) >= MaxDepth/2 {
			t.Skip("encoding/json, which counts the expected replies, may not read this")
		}
		want, ok := owed(data)
		if !ok {
			t.Skip("uses Content-Length")
		}
		in := string(data) + "\n" + probe
		got := talkInLine(t, in)
		require.NotEmpty(t, got)
		require.Equal(t, probed, got[len(got)-1])
		var replies []int
		for _, line := range got[:len(got)-1] {
			replies = append(replies, countReplies(t, line))
		}
		require.Equal(t, want, replies)
	})
}

// talkInLine is like talk, but its handler answers everything at once, even "slow".
func talkInLine(t *testing.T, in string) []string {
	r, w, cw, cr := ioPipe(t)
	s := NewStream(r, w, Options{})
	s.Connect(t.Context(), handler{s: s, extra: func(ctx context.Context, s *Stream, req *jsonrpc2.Request) bool {
		reply(s, req, "")
		return true
	}})
	go func() {
		io.WriteString(cw, in)
		cw.Close()
	}()
	data, err := io.ReadAll(cr)
	require.NoError(t, err)
	<-s.Done()
	require.Equal(t, ErrClosed, s.Err())
	return lines(data)
}

// countReplies checks a line of output and returns its number of replies: 0 for a reply that is
// not in an array.
func countReplies(t *testing.T, line string) int {
	require.True(t, utf8.ValidString(line))
	if !strings.HasPrefix(line, "[") {
		checkReply(t, []byte(line))
		return 0
	}
	var list []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(line), &list))
	require.NotEmpty(t, list)
	for _, r := range list {
		checkReply(t, r)
	}
	return len(list)
}

func checkReply(t *testing.T, raw []byte) {
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &m))
	require.Len(t, m, 3)
	require.Equal(t, `"2.0"`, string(m["jsonrpc"]))
	require.Contains(t, `"-0123456789n`, string(m["id"][:1]))
	if fault, ok := m["error"]; ok {
		var e struct {
			Code    int
			Message string
			Data    map[string]any
		}
		require.NoError(t, json.Unmarshal(fault, &e))
		require.NotZero(t, e.Code)
		require.NotEmpty(t, e.Message)
	} else {
		require.Contains(t, m, "result")
	}
}

// owed uses encoding/json to find the replies that the lines of data require. For each reply it
// returns the number of members, 0 for a single reply. ok is false for data that starts with a
// header.
func owed(data []byte) (replies []int, ok bool) {
	first := true
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		line = bytes.Trim(line, " \t\r")
		if len(line) == 0 {
			continue
		}
		if lower := bytes.ToLower(line); first && bytes.HasPrefix(lower, []byte("content-")) {
			return nil, false
		}
		first = false
		replies = append(replies, owedTo(line)...)
	}
	return replies, true
}

func owedTo(line []byte) []int {
	var list []json.RawMessage
	switch {
	case !utf8.Valid(line) || !json.Valid(line):
		return []int{0}
	case line[0] != '[':
		if owesOne(line) {
			return []int{0}
		}
		return nil
	case json.Unmarshal(line, &list) != nil || len(list) == 0 || len(list) > 100:
		return []int{0}
	}
	n := 0
	for _, m := range list {
		if owesOne(m) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []int{n}
}

// owesOne reports whether a message must get a reply. All messages must, except valid
// notifications and responses.
func owesOne(message []byte) bool {
	if message[0] != '{' {
		return true
	}
	values, twice := map[string]any{}, false
	dec := json.NewDecoder(bytes.NewReader(message))
	dec.UseNumber()
	dec.Token()
	for dec.More() {
		name, _ := dec.Token()
		var v any
		dec.Decode(&v)
		_, has := values[name.(string)]
		twice = twice || has
		values[name.(string)] = v
	}
	has := func(name string) bool { _, ok := values[name]; return ok }
	if !has("method") && (has("result") || has("error")) {
		return false
	}
	_, isString := values["method"].(string)
	_, isArray := values["params"].([]any)
	_, isObject := values["params"].(map[string]any)
	valid := values["jsonrpc"] == "2.0" && isString && (!has("params") || isArray || isObject)
	unknown := len(values)
	for _, name := range []string{"jsonrpc", "method", "params", "id", "result", "error"} {
		if has(name) {
			unknown--
		}
	}
	return !valid || twice || has("id") || unknown > maxUnknown
}
