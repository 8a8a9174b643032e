//go:build unix

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// framed is the editor of a language server. It sends a Content-Length header before each
// message.
type framed struct {
	*testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

func (f *framed) send(format string, args ...any) {
	f.Helper()
	body := fmt.Sprintf(format, args...)
	_, err := fmt.Fprintf(f.in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(f, err)
}

// receive reads messages up to the reply to a request, or a notification of that name.
func (f *framed) receive(wanted string) json.RawMessage {
	f.Helper()
	for {
		header, err := textproto.NewReader(f.out).ReadMIMEHeader()
		require.NoError(f, err)
		length, err := strconv.Atoi(header.Get("Content-Length"))
		require.NoError(f, err)
		body := make([]byte, length)
		_, err = io.ReadFull(f.out, body)
		require.NoError(f, err)
		var m struct {
			ID             json.RawMessage
			Method         string
			Result, Params json.RawMessage
		}
		require.NoError(f, json.Unmarshal(body, &m), "%s", body)
		switch wanted {
		case m.Method:
			return m.Params
		case string(m.ID):
			require.NotNil(f, m.Result, "%s", body)
			return m.Result
		}
	}
}

// Either command gives an editor a language server, and the daemon's methods on the same
// connection.
func TestLanguageServer(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"lsp"}, {"lsp", "--stdio"}, {"jsonrpc"}} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			suite := filepath.Join(dir, "eval.yaml")
			require.NoError(t, os.WriteFile(suite, []byte("name: demo\nconfig: {executor: mock}\ntasks: [{id: a, prompt: hi}]\n"), 0o600))
			cmd := exec.Command("waza", args...)
			cmd.Env = append(os.Environ(), "WAZA_STATE="+t.TempDir())
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			require.NoError(t, out.(*os.File).SetReadDeadline(time.Now().Add(patience)))
			converse(&framed{T: t, in: in, out: bufio.NewReader(out)}, suite)
			require.NoError(t, cmd.Wait())
		})
	}
}

// converse plays an editor's session: it gets a finding, fixes it, runs the suite and exits.
func converse(f *framed, suite string) {
	uri := "file://" + suite
	f.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":%d,"rootUri":"file://%s",`+
		`"trace":"off","capabilities":{"textDocument":{"codeAction":{}},"general":{"positionEncodings":["utf-32","utf-16"]}},"somethingNew":{}}}`,
		os.Getpid(), filepath.Dir(suite))
	var hello struct {
		ServerInfo   struct{ Name string }
		Capabilities struct {
			PositionEncoding string
			Methods          []string
			TextDocumentSync struct{ Change int }
		}
	}
	require.NoError(f, json.Unmarshal(f.receive("1"), &hello))
	require.Equal(f, "waza", hello.ServerInfo.Name)
	require.Equal(f, "utf-32", hello.Capabilities.PositionEncoding)
	require.Equal(f, 2, hello.Capabilities.TextDocumentSync.Change)
	require.Contains(f, hello.Capabilities.Methods, "eval.run")

	f.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	f.send(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":%q,"languageId":"yaml",`+
		`"version":1,"text":"name: \"😀\" \nconfig: {exekutor: mock}\ntasks: [{id: a, prompt: hi}]\n"}}}`,
		uri)
	require.Contains(f, string(f.receive("textDocument/publishDiagnostics")),
		`"range":{"start":{"line":1,"character":9},"end":{"line":1,"character":17}}`)
	f.send(`{"jsonrpc":"2.0","id":2,"method":"textDocument/codeAction","params":{"textDocument":{"uri":%q},`+
		`"range":{"start":{"line":1,"character":9},"end":{"line":1,"character":9}},"context":{"diagnostics":[]}}}`,
		uri)
	require.Contains(f, string(f.receive("2")), "Change to `executor`")
	f.send(`{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":%q,"version":2},`+
		`"contentChanges":[{"range":{"start":{"line":1,"character":9},"end":{"line":1,"character":17}},"text":"executor"}]}}`,
		uri)
	require.NotContains(f, string(f.receive("textDocument/publishDiagnostics")), "exekutor")

	f.send(`{"jsonrpc":"2.0","id":3,"method":"workspace/executeCommand","params":{"command":"waza.run","arguments":[{"path":%q}]}}`, uri)
	require.Contains(f, string(f.receive("3")), `"status":"running"`)
	require.Contains(f, string(f.receive("eval.complete")), `"status":"completed"`)
	f.send(`{"jsonrpc":"2.0","id":4,"method":"shutdown"}`)
	require.JSONEq(f, "null", string(f.receive("4")))
	f.send(`{"jsonrpc":"2.0","method":"exit"}`)
}
