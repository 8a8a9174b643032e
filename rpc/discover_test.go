package rpc_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waza/rpc"
)

// schemas are the schemas of the OpenRPC document.
type schemas struct {
	results       map[string]*jsonschema.Schema
	notifications map[string]*jsonschema.Schema
}

// loadSchemas compiles every schema of the document, which also checks that all references
// resolve.
func loadSchemas(t testing.TB) *schemas {
	t.Helper()
	raw, err := rpc.Protocol().OpenRPC("test")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("mem:openrpc.json", doc))
	compile := func(pointer string) *jsonschema.Schema {
		s, err := compiler.Compile("mem:openrpc.json#" + pointer)
		require.NoError(t, err, pointer)
		return s
	}
	s := &schemas{map[string]*jsonschema.Schema{}, map[string]*jsonschema.Schema{}}
	at := func(list string, i int, rest string) string {
		return "/" + list + "/" + string(json.Number(jsonNumber(i))) + rest
	}
	for i, m := range doc.(map[string]any)["methods"].([]any) {
		m := m.(map[string]any)
		s.results[m["name"].(string)] = compile(at("methods", i, "/result/schema"))
		for j := range m["params"].([]any) {
			compile(at("methods", i, "/params/"+jsonNumber(j)+"/schema"))
		}
	}
	for i, n := range doc.(map[string]any)["x-notifications"].([]any) {
		s.notifications[n.(map[string]any)["name"].(string)] = compile(at("x-notifications", i, "/params"))
	}
	return s
}

func jsonNumber(i int) string {
	b, _ := json.Marshal(i)
	return string(b)
}

// check validates a line of the server. methods contains the method of each request by id.
func (s *schemas) check(t testing.TB, line string, methods map[string]string) {
	t.Helper()
	if strings.HasPrefix(line, "[") {
		return
	}
	var m struct {
		ID             json.RawMessage
		Method         string
		Result, Params json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(line), &m), line)
	switch {
	case strings.Contains(m.Method, "/") || strings.Contains(methods[string(m.ID)], "/"):
		checkLanguage(t, m.Method, methods[string(m.ID)], m.Params, m.Result)
	case m.Method != "":
		s.validate(t, s.notifications[m.Method], m.Params)
	case m.Result != nil && methods[string(m.ID)] != "":
		s.validate(t, s.results[methods[string(m.ID)]], m.Result)
	}
}

func (s *schemas) validate(t testing.TB, schema *jsonschema.Schema, raw json.RawMessage) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	require.NotNil(t, schema, "%s", raw)
	require.NoError(t, schema.Validate(v), "%s", raw)
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	var doc struct {
		OpenRPC string
		Info    struct{ Version string }
		Methods []struct {
			Name, Summary string
			Params        []struct{ Name, Description string }
		}
	}
	c.must("rpc.discover", nil, &doc)
	require.Equal(t, "1.3.2", doc.OpenRPC)
	require.Equal(t, "test", doc.Info.Version)
	names := map[string]bool{}
	for _, m := range doc.Methods {
		names[m.Name] = true
		require.NotEmpty(t, m.Summary, m.Name)
		for _, p := range m.Params {
			require.NotEmpty(t, p.Description, "%s: %s", m.Name, p.Name)
		}
	}
	for _, want := range []string{
		"eval.run", "eval.list", "eval.get", "eval.validate", "eval.plan", "task.list", "task.get", "task.run",
		"run.status", "run.cancel", "run.list", "run.result", "run.grade", "run.subscribe", "run.unsubscribe",
		"initialize", "shutdown", "exit", "ping", "$/cancelRequest", "rpc.discover",
	} {
		require.True(t, names[want], want)
	}
}
