package language_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/internal/language"
	"waza/rpc/internal/lsp"
)

const (
	valid = "name: x\nconfig: {executor: mock}\ntasks: [{id: a, prompt: p, expected: {output_contains: [a]}}]\n"
	wrong = "name: x\nconfig: {executor: mok}\ntasks: [{id: a, prompt: p, expected: {output_contains: [a]}}]\n"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func open(t *testing.T, e *language.Editor, path, text string) {
	t.Helper()
	require.Empty(t, call(t, e, "textDocument/didOpen", encode(t, map[string]any{
		"textDocument": map[string]any{"uri": "file://" + path, "languageId": "yaml", "version": 1, "text": text},
	})))
}

// change sends a change of a document: the whole text, or the text of a range.
func change(t *testing.T, e *language.Editor, path string, version int, changes ...map[string]any) {
	t.Helper()
	require.Empty(t, call(t, e, "textDocument/didChange", encode(t, map[string]any{
		"textDocument": map[string]any{"uri": "file://" + path, "version": version}, "contentChanges": changes,
	})))
}

// named returns the parameters of a request or a notification about a document as a whole.
func named(path string) string { return `{"textDocument":{"uri":"file://` + path + `"}}` }

// The text in the editor applies, saved or not. Its findings go when the document is closed.
func TestUnsavedDocument(t *testing.T) {
	t.Parallel()
	c := &client{}
	e := start(t, c, nil)
	path := filepath.Join(t.TempDir(), "eval.yaml") // never saved
	open(t, e, path, wrong)
	sent := c.take(t, e)
	require.Len(t, sent, 1)
	require.Contains(t, sent[0], `unknown executor`)
	change(t, e, path, 2, map[string]any{"text": valid})
	sent = c.take(t, e)
	require.Len(t, sent, 1)
	require.Contains(t, sent[0], `"version":2,"diagnostics":[]`)
	require.Contains(t, call(t, e, "textDocument/codeLens", named(path)), "waza.run")

	write(t, path, wrong) // a different program writes the file
	call(t, e, "workspace/didChangeWatchedFiles", `{"changes":[{"uri":"file://`+path+`","type":1}]}`)
	require.Empty(t, c.take(t, e), "the file does not apply while the document is open")
	change(t, e, path, 3, map[string]any{"text": wrong})
	require.Contains(t, fmt.Sprint(c.take(t, e)), `unknown executor`)
	call(t, e, "textDocument/didClose", named(path))
	require.Contains(t, fmt.Sprint(c.take(t, e)), `"diagnostics":[]`)
}

// A file of a suite that vanishes becomes a finding, and its text in the editor still applies.
func TestVanishedDocument(t *testing.T) {
	t.Parallel()
	c := &client{}
	e := start(t, c, nil)
	dir := t.TempDir()
	suite, task := filepath.Join(dir, "eval.yaml"), filepath.Join(dir, "tasks", "a.yaml")
	text := "name: x\nconfig: {executor: mock}\ntasks: [tasks/*.yaml]\n"
	write(t, suite, text)
	write(t, task, "id: a\nprompt: p\nexpected: {output_contains: [a]}\n")
	open(t, e, suite, text)
	open(t, e, task, "id: a\nprompt: p\nexpected: {output_contains: [a]}\n")
	for _, line := range c.take(t, e) {
		require.Contains(t, line, `"diagnostics":[]`)
	}
	require.NoError(t, os.RemoveAll(filepath.Dir(task)))
	require.NoError(t, os.Remove(suite))
	gone := fmt.Sprintf(`{"changes":[{"uri":"file://%s","type":3},{"uri":"file://%s","type":3}]}`, suite, task)
	call(t, e, "workspace/didChangeWatchedFiles", gone)
	require.Empty(t, c.take(t, e), "the texts in the editor still apply")
	require.Contains(t, call(t, e, "textDocument/documentSymbol", named(task)), `"a"`)
	call(t, e, "textDocument/didClose", named(task))
	sent := c.take(t, e)
	require.NotEmpty(t, sent)
	require.Contains(t, fmt.Sprint(sent), "no file matches")
	call(t, e, "textDocument/didClose", named(suite))
	require.Contains(t, fmt.Sprint(c.take(t, e)), `"diagnostics":[]`)
	require.Empty(t, call(t, e, "textDocument/codeLens", named(suite)))
}

// Requests for documents that are not open have no result, whether they were open before or not.
// Their changes have no effect.
func TestClosedDocument(t *testing.T) {
	t.Parallel()
	c := &client{}
	e := start(t, c, nil)
	path := filepath.Join(t.TempDir(), "eval.yaml")
	write(t, path, valid)
	ask := func() {
		t.Helper()
		at := `{"textDocument":{"uri":"file://` + path + `"},"position":{"line":1,"character":10}}`
		for name, params := range map[string]string{
			"textDocument/hover": at, "textDocument/completion": at, "textDocument/definition": at,
			"textDocument/codeLens": named(path), "textDocument/documentSymbol": named(path), "textDocument/documentLink": named(path),
			"textDocument/codeAction": `{"textDocument":{"uri":"file://` + path + `"},"context":{"diagnostics":[]},` +
				`"range":{"start":{"line":0,"character":0},"end":{"line":9,"character":0}}}`,
		} {
			require.Empty(t, call(t, e, name, params), name)
		}
		change(t, e, path, 9, map[string]any{"text": wrong})
		call(t, e, "textDocument/didClose", named(path))
	}
	ask()
	require.Empty(t, c.take(t, e))
	open(t, e, path, valid)
	require.NotEmpty(t, call(t, e, "textDocument/codeLens", named(path)))
	call(t, e, "textDocument/didClose", named(path))
	c.take(t, e)
	ask()
	require.Empty(t, c.take(t, e))
}

// A cancelled request does not wait until the suite is read, and disturbs no other request.
func TestCancelledRequest(t *testing.T) {
	t.Parallel()
	c, reading, hold := &client{}, make(chan struct{}, 100), make(chan struct{})
	e := start(t, c, func(o *language.Options) {
		o.Turn = func(ctx context.Context) (func(), error) {
			reading <- struct{}{}
			select {
			case <-hold:
				return func() {}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	path := filepath.Join(t.TempDir(), "eval.yaml")
	open(t, e, path, valid)
	<-reading
	ctx, cancel := context.WithCancel(t.Context())
	cancelled, other := make(chan error, 1), make(chan string, 1)
	go func() {
		_, err := serve(ctx, t, e, "textDocument/codeLens", named(path))
		cancelled <- err
	}()
	go func() {
		result, _ := serve(t.Context(), t, e, "textDocument/codeLens", named(path))
		other <- result
	}()
	cancel()
	select {
	case err := <-cancelled:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(time.Minute):
		t.Fatal("the request still waits")
	}
	close(hold)
	require.Contains(t, <-other, "waza.run")
}

// Ranges of changes, positions of requests and ranges of findings count the units of the client.
func TestMultiByteCharacters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encoding lsp.Encoding
		face     int // units of 😀é
	}{"utf-8": {lsp.UTF8, 6}, "utf-16": {lsp.UTF16, 3}, "utf-32": {lsp.UTF32, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := &client{}
			e := start(t, to, nil)
			e.SetClient(lsp.Client{Encoding: c.encoding})
			path := filepath.Join(t.TempDir(), "eval.yaml")
			const head = `name: "`
			open(t, e, path, head+"😀é\"\nconfig: {executor: mock}\ntasks: [{id: a, prompt: p}]\n")
			to.take(t, e)
			before := len(`config: {model: "`)
			change(t, e, path, 2,
				map[string]any{"range": within(0, len(head)+c.face, len(head)+c.face), "text": "😀é"},
				map[string]any{"range": within(1, 9, len("config: {executor: mock")), "text": `model: "😀é", executor: mok`})
			sent := to.take(t, e)
			require.Len(t, sent, 1)
			at := before + c.face + len(`", executor: `)
			require.Contains(t, sent[0], encode(t, within(1, at, at+len("mok"))))
			position := fmt.Sprintf(`{"textDocument":{"uri":"file://%s"},"position":{"line":1,"character":%d}}`, path, before+c.face+len(`", ex`))
			require.Contains(t, call(t, e, "textDocument/hover", position), "executor")
		})
	}
}

// place is a position, and span a range, of the protocol.
type place struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start place `json:"start"`
	End   place `json:"end"`
}

// within returns a range of a line.
func within(line, start, end int) span { return span{place{line, start}, place{line, end}} }
