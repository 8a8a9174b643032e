package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func framed(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// unframe splits framed output.
func unframe(t *testing.T, out string) []string {
	var bodies []string
	for out != "" {
		head, rest, ok := strings.Cut(out, "\r\n\r\n")
		require.True(t, ok, out)
		n, err := strconv.Atoi(strings.TrimPrefix(head, "Content-Length: "))
		require.NoError(t, err)
		bodies, out = append(bodies, rest[:n]), rest[n:]
	}
	return bodies
}

func TestContentLength(t *testing.T) {
	t.Parallel()
	body := strings.TrimSpace(ping("1"))
	end := framed(strings.TrimSpace(probe))
	for _, c := range []struct {
		name string
		in   string
		out  []string
		cut  bool
	}{
		{name: "one", in: framed(body), out: pong("1")},
		{name: "two", in: framed(body) + framed(body), out: append(pong("1"), pong("1")...)},
		{name: "pretty body", in: framed("{\n\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"method\":\"ping\"}\n"), out: pong("1")},
		{name: "letter case, type, bare newlines", in: fmt.Sprintf("content-type: x\ncontent-LENGTH:%d\n\n%s", len(body), body), out: pong("1")},
		{name: "blank lines between", in: "\r\n" + framed(body) + "\r\n\r\n", out: pong("1")},
		{name: "BOM", in: "\ufeff" + framed(body), out: pong("1")},
		{name: "batch", in: framed("[" + body + "," + body + "]"), out: []string{"[" + pong("1")[0] + "," + pong("1")[0] + "]"}},
		{name: "params null", in: framed(`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`), out: pong("1")},
		{name: "empty body", in: framed(""), out: []string{parseErr}},
		{name: "not JSON", in: framed("x"), out: []string{parseErr}},
		{name: "too long", in: framed(strings.Repeat("x", 200_000)), out: []string{invalidErr}},
		{name: "several pieces", in: framed(body + strings.Repeat(" ", 90_000)), out: pong("1")},
		{name: "bad length", in: "Content-Length: x\r\n\r\n", out: []string{parseErr}},
		{name: "negative length", in: "Content-Length: -5\r\n\r\n", out: []string{parseErr}},
		{name: "huge length", in: "Content-Length: 99999999999999999999\r\n\r\n", out: []string{parseErr}},
		{name: "two lengths", in: "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", out: []string{parseErr}},
		{name: "same length twice", in: fmt.Sprintf("Content-Length: %d\r\n", len(body)) + framed(body), out: pong("1")},
		{name: "no length", in: "Content-Type: x\r\n\r\n", out: []string{parseErr}},
		{name: "no header", in: framed(body) + "junk\r\n\r\n", out: append(pong("1"), parseErr)},
		{name: "long header", in: framed(body) + strings.Repeat("x", 100_000) + "\r\n\r\n", out: append(pong("1"), parseErr)},
		{name: "ends in body", in: "Content-Length: 10\r\n\r\n{}", out: []string{parseErr}, cut: true},
		{name: "ends before body", in: "Content-Length: 10\r\n\r\n", out: []string{parseErr}, cut: true},
		{name: "ends in header", in: "Content-Length: 10\r\n", out: []string{parseErr}, cut: true},
		{name: "slow then EOF", in: framed(strings.TrimSpace(slow("1"))), out: []string{slowDone("1")}, cut: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, want := c.in, c.out
			if !c.cut {
				in, want = in+end, append(want[:len(want):len(want)], probed)
			}
			for name, tr := range transports {
				got := strings.Join(talk(t, tr, Options{MaxLine: 100_000}, strings.NewReader(in)), "\n")
				require.Equal(t, simplifyAll(t, want), simplifyAll(t, unframe(t, got)), name)
			}
		})
	}
}

// Input of other protocols got a parse error, and its next line was served. That line could be a
// TLS session ticket, which browsers send back and which can contain requests.
func TestAttackRefuseForeign(t *testing.T) {
	t.Parallel()
	for in, refused := range map[string]bool{
		"\x16\x03\x01\x02\x00\x01\n" + ping("1") + "\n": true,
		"\x16":                      true,
		" \r\n\t\x00\n" + ping("1"): true,
		"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + ping("1"):           true,
		"\r\nGET / HTTP/1.1\r\n\r\n":                               true,
		"\ufeffGET / HTTP/1.1\r\n\r\n":                             true,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                         true,
		"CONNECT x HTTP/1.1\r\n\r\n" + ping("1"):                   true,
		"1 / HTTP/1.1\r\n\r\n" + ping("1"):                         true,
		"nonsense\n" + ping("1"):                                   true,
		"get / HTTP/1.1\r\n\r\n" + ping("1"):                       true,
		"POST /" + strings.Repeat("a", 300_000) + "\n" + ping("1"): true,
		ping("1"):                false,
		" \r\n" + ping("1"):      false,
		"\ufeff" + ping("1"):     false,
		"null\n" + ping("1"):     false,
		"-1.5\n" + ping("1"):     false,
		"{rubbish\n" + ping("1"): false,
		ping("1") + "\x16\x03\n": false,
		"[" + ping(`"GET / HTTP/1.1"`)[:40] + "\n" + ping("1"): false,
		ping("1") + "GET / HTTP/1.1\r\n":                       false,
	} {
		t.Run(fmt.Sprintf("%.20q", in), func(t *testing.T) {
			t.Parallel()
			got, _, err := session(t, ioPipe, Options{RefuseForeign: true, MaxLine: 100_000}, strings.NewReader(in))
			if refused {
				require.ErrorIs(t, err, ErrForeign)
				require.Equal(t, simplifyAll(t, []string{parseErr}), simplifyAll(t, got))
			} else {
				require.Equal(t, ErrClosed, err)
				require.Contains(t, got, pong("1")[0])
			}
		})
	}
}
