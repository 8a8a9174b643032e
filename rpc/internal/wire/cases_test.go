package wire

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	parseErr   = `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}`
	invalidErr = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":null}`
)

func invalidID(id string) string {
	return strings.Replace(invalidErr, "null", id, 1)
}

// cases are exchanges on a fresh connection. Before the input ends, the test sends a probe,
// which must be answered last, unless cut is set.
var cases = []struct {
	name string
	in   string
	out  []string
	cut  bool
}{
	// The examples of the specification's last section.
	{name: "spec positional", in: `{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}
{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}
`, out: []string{`{"jsonrpc": "2.0", "result": 19, "id": 1}`, `{"jsonrpc": "2.0", "result": -19, "id": 2}`}},
	{name: "spec named", in: `{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}
{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}
`, out: []string{`{"jsonrpc": "2.0", "result": 19, "id": 3}`, `{"jsonrpc": "2.0", "result": 19, "id": 4}`}},
	{name: "spec notifications", in: `{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}
{"jsonrpc": "2.0", "method": "foobar"}
`},
	{name: "spec unknown method", in: `{"jsonrpc": "2.0", "method": "foobar", "id": "1"}` + "\n",
		out: []string{`{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}`}},
	{name: "spec invalid JSON", in: `{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]` + "\n", out: []string{parseErr}},
	{name: "spec invalid request", in: `{"jsonrpc": "2.0", "method": 1, "params": "bar"}` + "\n", out: []string{invalidErr}},
	{
		name: "spec batch invalid JSON",
		in:   `[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method"]` + "\n",
		out:  []string{parseErr},
	},
	{name: "spec empty array", in: "[]\n", out: []string{invalidErr}},
	{name: "spec batch of one invalid", in: "[1]\n", out: []string{"[" + invalidErr + "]"}},
	{name: "spec invalid batch", in: "[1,2,3]\n", out: []string{"[" + invalidErr + "," + invalidErr + "," + invalidErr + "]"}},
	{name: "spec batch", in: `[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": ` +
		`"2.0", "method": "notify_hello", "params": [7]}, {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], ` +
		`"id": "2"}, {"foo": "boo"}, {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": ` +
		`"5"}, {"jsonrpc": "2.0", "method": "get_data", "id": "9"} ]` + "\n",
		out: []string{
			`[ {"jsonrpc": "2.0", "result": 7, "id": "1"}, {"jsonrpc": "2.0", "result": 19, "id": "2"}, ` + invalidErr +
				`, {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"}, {"jsonrpc": ` +
				`"2.0", "result": ["hello", 5], "id": "9"} ]`,
		}},
	{
		name: "spec batch of notifications",
		in: `[ {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]}, {"jsonrpc": "2.0", "method": ` +
			`"notify_hello", "params": [7]} ]` + "\n",
	},

	// Ids.
	{name: "id null", in: ping("null"), out: pong("null")},
	{name: "id with odd characters", in: ping(`"é<1>"`), out: pong(`"é<1>"`)},
	{name: "id negative", in: ping("-1"), out: pong("-1")},
	{name: "id fraction", in: ping("1.5"), out: pong("1.5")},
	{name: "id large", in: ping("1180591620717411303424"), out: pong("1180591620717411303424")},
	{name: "id beyond floats", in: ping("1e999"), out: pong("1e999")},
	{name: "id empty string", in: ping(`""`), out: pong(`""`)},
	{name: "id object", in: ping("{}"), out: []string{invalidErr}},
	{name: "id true", in: ping("true"), out: []string{invalidErr}},
	{name: "id array", in: ping("[1]"), out: []string{invalidErr}},

	// Envelopes.
	{name: "params scalar", in: `{"jsonrpc":"2.0","id":1,"method":"echo","params":5}` + "\n", out: []string{invalidID("1")}},
	{name: "params null", in: `{"jsonrpc":"2.0","id":1,"method":"echo","params":null}` + "\n", out: []string{invalidID("1")}},
	{name: "params scalar without id", in: `{"jsonrpc":"2.0","method":"echo","params":5}` + "\n", out: []string{invalidErr}},
	{name: "jsonrpc missing", in: `{"id":1,"method":"ping"}` + "\n", out: []string{invalidID("1")}},
	{name: "jsonrpc 1.0", in: `{"jsonrpc":"1.0","id":1,"method":"ping"}` + "\n", out: []string{invalidID("1")}},
	{name: "jsonrpc number", in: `{"jsonrpc":2.0,"id":1,"method":"ping"}` + "\n", out: []string{invalidID("1")}},
	{name: "method missing", in: `{"jsonrpc":"2.0","id":1}` + "\n", out: []string{invalidID("1")}},
	{name: "method null", in: `{"jsonrpc":"2.0","id":1,"method":null}` + "\n", out: []string{invalidID("1")}},
	{name: "method empty", in: `{"jsonrpc":"2.0","id":1,"method":""}` + "\n",
		out: []string{`{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}`}},
	{name: "empty object", in: "{}\n", out: []string{invalidErr}},
	{name: "number", in: "1\n", out: []string{invalidErr}},
	{name: "null", in: "null\n", out: []string{invalidErr}},
	{name: "string", in: `"ping"` + "\n", out: []string{invalidErr}},
	{name: "two values", in: "1 2\n", out: []string{parseErr}},
	{name: "duplicate id", in: `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}` + "\n", out: []string{invalidErr}},
	{name: "duplicate method", in: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"echo"}` + "\n", out: []string{invalidID("1")}},
	{name: "duplicate escaped", in: `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"echo"}` + "\n", out: []string{invalidID("1")}},
	{name: "duplicate unknown", in: `{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":1}` + "\n", out: []string{invalidID("1")}},
	{name: "many unknown", in: `{"jsonrpc":"2.0","id":1,"method":"ping"` + manyMembers(40) + "}\n", out: []string{invalidID("1")}},
	{name: "some unknown", in: `{"jsonrpc":"2.0","id":1,"method":"ping"` + manyMembers(30) + "}\n", out: pong("1")},
	{name: "escaped names", in: `{"js\u006fnrpc":"\u0032.0","\u0069d":1,"method":"p\u0069ng"}` + "\n", out: pong("1")},
	{name: "wrong case of method", in: `{"jsonrpc":"2.0","id":1,"Method":"ping"}` + "\n", out: []string{invalidID("1")}},
	{name: "wrong case of id", in: `{"jsonrpc":"2.0","ID":1,"method":"ping"}` + "\n"},
	{name: "wrong case of jsonrpc", in: `{"JSONRPC":"2.0","id":1,"method":"ping"}` + "\n", out: []string{invalidID("1")}},
	{name: "wrong case beside", in: `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"echo","ID":7}` + "\n", out: pong("1")},
	{
		name: "stray response",
		in:   `{"jsonrpc":"2.0","id":1,"result":5}` + "\n" + `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""}}` + "\n",
	},
	{name: "stray responses in batch", in: `[{"jsonrpc":"2.0","id":1,"result":null}]` + "\n"},
	{name: "result null", in: `{"jsonrpc":"2.0","id":1,"method":"null"}` + "\n", out: []string{`{"jsonrpc":"2.0","id":1,"result":null}`}},
	{name: "params untouched", in: `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"b":1e400,"a":["\u003c", ` +
		`18446744073709551616 ]}}` + "\n",
		out: []string{`{"jsonrpc":"2.0","id":1,"result":{"b":1e400,"a":["<",18446744073709551616]}}`}},

	// Lines.
	{name: "CRLF", in: strings.ReplaceAll(ping("1")+ping("2"), "\n", "\r\n"), out: append(pong("1"), pong("2")...)},
	{name: "blank lines", in: "\n\r\n \t\n" + ping("1") + "\n\n", out: pong("1")},
	{name: "invalid UTF-8", in: "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}\n", out: []string{parseErr}},
	{name: "BOM at the start", in: "\ufeff" + ping("1"), out: pong("1")},
	{name: "BOM later", in: ping("1") + "\ufeff" + ping("2"), out: append(pong("1"), parseErr)},
	{name: "NUL bytes", in: "\x00\n" + `{"jsonrpc":"2.0","id":1,"method":"pi` + "\x00" + `ng"}` + "\n", out: []string{parseErr, parseErr}},
	{name: "UTF-16", in: "\xff\xfe{\x00}\x00\n", out: []string{parseErr}},
	{name: "binary", in: "\x16\x03\x01\x02\x00\x01\x00\n", out: []string{parseErr}},
	{name: "header later", in: ping("1") + "Content-Length: 5\n", out: append(pong("1"), parseErr)},
	{name: "HTTP where allowed", in: "GET / HTTP/1.1\r\n\r\n", out: []string{parseErr}},
	{name: "empty"},
	{name: "empty stdin", cut: true},
	{name: "blank stdin", in: "\n", cut: true},
	{name: "truncated at EOF", in: ping("1") + `{"jsonrpc":"2.0","id":1,"method":"pi`, out: append(pong("1"), parseErr), cut: true},
	{name: "truncated batch at EOF", in: `[` + strings.TrimSpace(ping("1")), out: []string{parseErr}, cut: true},
	{name: "no final newline", in: strings.TrimSpace(ping("1")), out: pong("1"), cut: true},

	// Requests in flight.
	{
		name: "duplicate ids in flight", in: slow("1") + slow("1") + slow("1"),
		out: []string{slowDone("1"), slowDone("1"), slowDone("1"), probed}, cut: true,
	},
	{name: "slow then EOF", in: slow("1"), out: []string{slowDone("1")}, cut: true},
	{name: "slow without newline then EOF", in: strings.TrimSpace(slow("1")), out: []string{slowDone("1")}, cut: true},
	{name: "slow batch then EOF", in: "[" + strings.TrimSpace(slow("1")) + "," + strings.TrimSpace(ping("2")) + "]",
		out: []string{"[" + slowDone("1") + "," + pong("2")[0] + "]"}, cut: true},

	// Batches.
	{name: "batch of 100", in: "[" + strings.Repeat(strings.TrimSpace(ping("1"))+",", 99) + strings.TrimSpace(ping("1")) + "]\n",
		out: []string{"[" + strings.Repeat(pong("1")[0]+",", 99) + pong("1")[0] + "]"}},
	{name: "batch of 101", in: "[" + strings.Repeat("1,", 100) + "1]\n",
		out: []string{`{"jsonrpc":"2.0","error":{"code":-32005,"message":"Server busy or limit exceeded"},"id":null}`}},
	{name: "batch in a batch", in: "[[" + strings.TrimSpace(ping("1")) + "]]\n", out: []string{"[" + invalidErr + "]"}},
}

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n" }
func pong(id string) []string {
	return []string{`{"jsonrpc":"2.0","id":` + id + `,"result":"pong"}`}
}
func slow(id string) string     { return `{"jsonrpc":"2.0","id":` + id + `,"method":"slow"}` + "\n" }
func slowDone(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":"slow done"}` }

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"x%d":1`, i)
	}
	return b.String()
}

func TestCases(t *testing.T) {
	t.Parallel()
	for name, tr := range transports {
		for _, c := range cases {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				in, want := c.in, c.out
				if c.name == "duplicate ids in flight" {
					in += probe // the probe is answered first, because the others wait for the end
					want = []string{probed, slowDone("1"), slowDone("1"), slowDone("1")}
				} else if !c.cut {
					in, want = in+probe, append(want[:len(want):len(want)], probed)
				}
				got := talk(t, tr, Options{}, strings.NewReader(in))
				require.Equal(t, simplifyAll(t, want), simplifyAll(t, got))
			})
		}
	}
}

// Ids come back byte for byte. Comparing decoded replies would not show that.
func TestIDBytes(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`"é<1>&"`, `"\u00e9\/"`, `-0`, `1.50`, `1E+2`, `1180591620717411303424`, `"\ud800"`, `null`} {
		got := talk(t, ioPipe, Options{}, strings.NewReader(ping(id)))
		require.Equal(t, pong(id), got)
	}
}

// nested returns a request with params of the given depth.
func nested(depth int) string {
	return `{"jsonrpc":"2.0","id":7,"method":"echo","params":` +
		strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}\n"
}

func TestLarge(t *testing.T) {
	t.Parallel()
	tooLong := invalidErr
	for _, c := range []struct {
		name string
		in   func() io.Reader
		want func(got []string)
	}{
		{"depth 9,000", text(nested(9000)), func(got []string) {
			require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+"}", got[0])
		}},
		{"depth 2,000,000", text(nested(2_000_000)), func(got []string) {
			require.Equal(t, simplify(t, invalidID("7")), simplify(t, got[0]))
		}},
		{"brackets alone", text(strings.Repeat("[", 2_000_000) + strings.Repeat("]", 2_000_000) + "\n"), func(got []string) {
			require.Equal(t, simplify(t, "["+invalidErr+"]"), simplify(t, got[0]))
		}},
		{"open brackets", text(strings.Repeat("[", 2_000_000) + "\n"), func(got []string) {
			require.Equal(t, simplify(t, parseErr), simplify(t, got[0]))
		}},
		{"50 MB line", func() io.Reader {
			return io.MultiReader(io.LimitReader(letters{}, 50e6), strings.NewReader("\n"))
		}, func(got []string) {
			require.Equal(t, simplify(t, tooLong), simplify(t, got[0]))
		}},
		{"line of the limit", text(padded(DefaultMaxLine)), func(got []string) {
			require.Equal(t, pong("1")[0], got[0])
		}},
		{"line over the limit", text(padded(DefaultMaxLine + 1)), func(got []string) {
			require.Equal(t, simplify(t, tooLong), simplify(t, got[0]))
		}},
		{"10 MB of batch", text("[" + strings.Repeat("1,", 5e6) + "1]\n"), func(got []string) {
			require.Contains(t, got[0], "-32005")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := talk(t, transports["tcp"], Options{}, io.MultiReader(c.in(), strings.NewReader(probe)))
			require.Len(t, got, 2)
			c.want(got)
			require.Equal(t, probed, got[1])
		})
	}
}

func text(s string) func() io.Reader {
	return func() io.Reader { return strings.NewReader(s) }
}

// letters is an endless line.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// padded returns a request on a line of n bytes.
func padded(n int) string {
	req := strings.TrimSpace(ping("1"))
	return req + strings.Repeat(" ", n-len(req)) + "\n"
}

// A last line that is too long and has no newline gets a reply, too.
func TestLongLastLine(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("a", 200)
	got := talk(t, ioPipe, Options{MaxLine: 100}, strings.NewReader(in))
	require.Equal(t, simplifyAll(t, []string{invalidErr}), simplifyAll(t, got))
	got = talk(t, ioPipe, Options{MaxLine: 200}, strings.NewReader(in))
	require.Equal(t, simplifyAll(t, []string{parseErr}), simplifyAll(t, got))
}
