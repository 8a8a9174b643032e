package rpc_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/protocol"
)

// languageShapes are the types of what the server says in the Language Server
// Protocol: the params of what it sends, and the results of what it is asked.
var languageShapes = map[string]reflect.Type{
	"textDocument/publishDiagnostics": reflect.TypeFor[protocol.PublishDiagnosticsParams](),
	"textDocument/completion":         reflect.TypeFor[protocol.CompletionList](),
	"textDocument/hover":              reflect.TypeFor[protocol.Hover](),
	"textDocument/definition":         reflect.TypeFor[protocol.DefinitionResult](),
	"textDocument/documentSymbol":     reflect.TypeFor[protocol.DocumentSymbolResult](),
	"textDocument/documentLink":       reflect.TypeFor[[]protocol.DocumentLink](),
	"textDocument/codeAction":         reflect.TypeFor[[]protocol.CommandOrCodeAction](),
}

// checkLanguage holds a line of the server's to the types of the protocol: what
// they do not know does not come back when it is decoded and encoded again.
func checkLanguage(t testing.TB, sent, asked string, params, result json.RawMessage) {
	t.Helper()
	name, raw := sent, params
	if sent == "" {
		name, raw = asked, result
	}
	if raw == nil || string(raw) == "null" {
		return
	}
	shape, ok := languageShapes[name]
	require.True(t, ok, "no type for %s: %s", name, raw)
	v := reflect.New(shape).Interface()
	require.NoError(t, protocol.Unmarshal(raw, v), "%s", raw)
	again, err := protocol.Marshal(v)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(again))
}
