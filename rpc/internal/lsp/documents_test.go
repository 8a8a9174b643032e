package lsp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/eval/decode"
)

func item(u, text string) protocol.TextDocumentItem {
	return protocol.TextDocumentItem{URI: uri.URI(u), Version: 1, Text: text}
}

func whole(u, text string, version int32) *protocol.DidChangeTextDocumentParams {
	p := &protocol.DidChangeTextDocumentParams{ContentChanges: []protocol.TextDocumentContentChangeEvent{
		&protocol.TextDocumentContentChangeWholeDocument{Text: text},
	}}
	p.TextDocument.URI, p.TextDocument.Version = uri.URI(u), version
	return p
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	const u = "file:///a%20b/eval.yaml"
	var none Documents
	one, path, err := none.Open(item(u, "x"), UTF16)
	require.NoError(t, err)
	require.Equal(t, "/a b/eval.yaml", path)
	two, _, err := one.Change(whole(u, "yy", 2))
	require.NoError(t, err)
	require.Nil(t, none.Get(u))
	require.Equal(t, "x", one.Get(u).Text.String(), "a value never changes")
	require.Equal(t, map[string][]byte{"/a b/eval.yaml": []byte("yy")}, two.Overlay())
	require.Equal(t, int32(2), two.At(path).Version)
	require.Equal(t, uri.URI(u), two.At(path).URI)
	closed, _, err := two.Close(u)
	require.NoError(t, err)
	require.Equal(t, 0, closed.bytes)
	_, _, err = closed.Close(u)
	require.ErrorIs(t, err, errNotOpen)
	_, _, err = closed.Change(whole(u, "", 3))
	require.ErrorIs(t, err, errNotOpen)
	again, _, err := two.Open(item(u, "z"), UTF16)
	require.ErrorIs(t, err, errOpen)
	require.Equal(t, "z", again.Get(u).Text.String(), "the last text counts")
}

// Documents that are not files of this machine are not followed.
func TestOtherSchemes(t *testing.T) {
	t.Parallel()
	for _, u := range []string{
		"", "untitled:Untitled-1", "https://example.com/eval.yaml", "file://host/eval.yaml", "file:eval.yaml",
		"file:///a%00b", "git:/a/eval.yaml?x",
	} {
		_, _, err := Documents{}.Open(item(u, "x"), UTF16)
		require.ErrorIs(t, err, errNotFile, u)
	}
}

// A text that is too long is not kept, and the file applies until a shorter text arrives.
func TestDocumentTooLarge(t *testing.T) {
	t.Parallel()
	const u = "file:///eval.yaml"
	large, _, err := Documents{}.Open(item(u, strings.Repeat("x", decode.MaxTextBytes+1)), UTF16)
	require.ErrorIs(t, err, errTooLarge)
	require.Nil(t, large.Get(u))
	require.Empty(t, large.Overlay())
	partly := whole(u, "", 2)
	partly.ContentChanges = []protocol.TextDocumentContentChangeEvent{&protocol.TextDocumentContentChangePartial{Text: "x"}}
	large, _, err = large.Change(partly)
	require.ErrorIs(t, err, errTooLarge, "a part of a text that is not known")
	small, _, err := large.Change(whole(u, "short", 3))
	require.NoError(t, err)
	require.Equal(t, "short", small.Get(u).Text.String())
}

// Changes that would keep the server busy for long are refused.
func TestTooManyChanges(t *testing.T) {
	t.Parallel()
	const u = "file:///eval.yaml"
	open, _, err := Documents{}.Open(item(u, strings.Repeat("x", decode.MaxTextBytes-1)), UTF16)
	require.NoError(t, err)
	many := whole(u, "", 2)
	many.ContentChanges = nil
	for range 100_000 {
		many.ContentChanges = append(many.ContentChanges, &protocol.TextDocumentContentChangePartial{})
	}
	open, _, err = open.Change(many)
	require.ErrorIs(t, err, errTooMuch)
	require.Nil(t, open.Get(u))
}

func TestTooManyDocuments(t *testing.T) {
	t.Parallel()
	var open Documents
	var err error
	for i := range maxDocuments {
		open, _, err = open.Open(item(fmt.Sprintf("file:///%d", i), "x"), UTF16)
		require.NoError(t, err)
	}
	_, _, err = open.Open(item("file:///more", "x"), UTF16)
	require.ErrorIs(t, err, errTooMany)
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	for raw, speaks := range map[string]bool{
		``: false, `null`: false, `true`: false, `{}`: false, `{"textDocument":null}`: false, `{"textDocument":1}`: false,
		`{"textDocument":{}}`: true, `{"textDocument":{"hover":7},"general":3}`: true,
	} {
		_, ok := ClientOf([]byte(raw))
		require.Equal(t, speaks, ok, raw)
	}
	c, _ := ClientOf([]byte(`{"textDocument":{},"general":{"positionEncodings":["utf-7","utf-8","utf-16"]},` +
		`"workspace":{"codeLens":{"refreshSupport":true}},"window":{"workDoneProgress":true,"showDocument":{"support":true}}}`))
	require.Equal(t, UTF8, c.Encoding)
	require.True(t, c.RefreshesLenses() && c.ShowsProgress() && c.ShowsDocuments())
	require.False(t, Client{}.RefreshesLenses() || Client{}.ShowsProgress() || Client{}.ShowsDocuments())
}
