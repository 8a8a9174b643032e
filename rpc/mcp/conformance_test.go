package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

// sdkConformance returns the directory of the SDK's conformance tests for servers. They are
// archives of the client's messages (client), the server's messages (server), and the features
// of the server.
func sdkConformance(t *testing.T) []string {
	t.Helper()
	out, err := proctest.Output(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/modelcontextprotocol/go-sdk"))
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "mcp", "testdata", "conformance", "server", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// TestSDKConformance runs the SDK's conformance tests with their server and our transport. The
// transport's refusals and its end do not change the protocol.
func TestSDKConformance(t *testing.T) {
	t.Parallel()
	for _, file := range sdkConformance(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			got := talk(t, theirServer(t, archive, filepath.Base(file)), messages(t, section(archive, "client")))
			if diff := cmp.Diff(values(t, messages(t, section(archive, "server"))), values(t, got)); diff != "" {
				t.Errorf("the server's messages differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConformance sends the client messages of these tests to our own server, and compares
// everything that does not depend on the features of a server: errors and the version.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, file := range sdkConformance(t) {
		name := filepath.Base(file)
		if !slices.Contains([]string{"bad_requests.txtar", "lifecycle.txtar", "discover.txtar", "version-latest.txtar", "version-older.txtar"},
			name) {
			continue // these test the tools, prompts and resources of their server
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			s := newTestServer(t, t.TempDir())
			got := talk(t, s.mcp, messages(t, section(archive, "client")))
			want := values(t, messages(t, section(archive, "server")))
			if diff := cmp.Diff(normalise(want), normalise(values(t, got))); diff != "" {
				t.Errorf("the server's messages differ (-want +got):\n%s", diff)
			}
		})
	}
}

// normalise removes members that differ between servers.
func normalise(list []any) []any {
	for _, m := range list {
		if r, ok := m.(map[string]any)["result"].(map[string]any); ok {
			for _, own := range []string{"serverInfo", "capabilities", "instructions", "tools", "_meta"} {
				delete(r, own)
			}
		}
		if e, ok := m.(map[string]any)["error"].(map[string]any); ok && strings.Contains(e["message"].(string), "logging/setLevel") {
			delete(e, "message") // differs without logging
		}
	}
	return list
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// messages splits a stream of JSON values, each on one line.
func messages(t *testing.T, text string) []json.RawMessage {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	var list []json.RawMessage
	for dec.More() {
		var raw json.RawMessage
		require.NoError(t, dec.Decode(&raw))
		var line bytes.Buffer
		require.NoError(t, json.Compact(&line, raw))
		list = append(list, line.Bytes())
	}
	return list
}

func values(t *testing.T, list []json.RawMessage) []any {
	t.Helper()
	var all []any
	for _, raw := range list {
		var v any
		require.NoError(t, json.Unmarshal(raw, &v))
		all = append(all, v)
	}
	return all
}

// talk sends requests to a server through our transport, each after the reply to the previous
// one. It answers the server's requests with the responses among them, and returns the server's
// messages up to the end of its output.
func talk(t *testing.T, server *sdk.Server, sent []json.RawMessage) (got []json.RawMessage) {
	t.Helper()
	theirIn, ours := io.Pipe()
	from, theirOut := io.Pipe()
	session, err := server.Connect(context.Background(), &stdio{in: theirIn, out: theirOut, ended: func() {}}, nil)
	require.NoError(t, err)
	limit := time.AfterFunc(time.Minute, func() { ours.Close(); from.Close() })
	defer limit.Stop()
	type envelope struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	var answers []map[string]json.RawMessage
	of := func(raw json.RawMessage) (e envelope) {
		require.NoError(t, json.Unmarshal(raw, &e))
		return e
	}
	for _, m := range sent {
		if of(m).Method == "" {
			var answer map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(m, &answer))
			answers = append(answers, answer)
		}
	}
	dec := json.NewDecoder(from)
	for _, m := range sent {
		e := of(m)
		if e.Method == "" {
			continue
		}
		_, err := ours.Write(append(m, '\n'))
		require.NoError(t, err)
		for done := e.ID == nil; !done; {
			var raw json.RawMessage
			require.NoError(t, dec.Decode(&raw), "%s", m)
			got = append(got, raw)
			if asked := of(raw); asked.Method != "" && asked.ID != nil {
				answers[0]["id"] = asked.ID
				line, err := json.Marshal(answers[0])
				require.NoError(t, err)
				answers = answers[1:]
				_, err = ours.Write(append(line, '\n'))
				require.NoError(t, err)
			} else {
				done = asked.Method == ""
			}
		}
	}
	require.NoError(t, ours.Close())
	for {
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			break
		}
		got = append(got, raw)
	}
	_ = session.Wait()
	return got
}

type named struct{ Name string }

type greeted struct {
	Out string `jsonschema:"the output"`
}

// theirServer returns the server of an SDK test, with the features that the test names.
func theirServer(t *testing.T, archive *txtar.Archive, name string) *sdk.Server {
	t.Helper()
	icon := []sdk.Icon{{Source: "foobar", MIMEType: "image/png", Sizes: []string{"48x48", "96x96"}, Theme: sdk.IconThemeLight}}
	impl := &sdk.Implementation{Name: "testServer", Version: "v1.0.0"}
	if name == "spec-sep-973-additional-metadata.txtar" {
		impl.Icons, impl.WebsiteURL = icon, "https://github.com/modelcontextprotocol/go-sdk"
	}
	s := sdk.NewServer(impl, nil)
	text := func(text string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	}
	greet := func(ctx context.Context, req *sdk.CallToolRequest, in named) (*sdk.CallToolResult, any, error) {
		if err := req.Session.Ping(ctx, nil); err != nil {
			return nil, nil, err
		}
		return text("hi " + in.Name), nil, nil
	}
	tools := map[string]func(){
		"greet":         func() { sdk.AddTool(s, &sdk.Tool{Name: "greet", Description: "say hi"}, greet) },
		"greetWithIcon": func() { sdk.AddTool(s, &sdk.Tool{Name: "greetWithIcon", Description: "say hi", Icons: icon}, greet) },
		"structured": func() {
			type input struct {
				In string `jsonschema:"the input"`
			}
			sdk.AddTool(s, &sdk.Tool{Name: "structured"}, func(
				_ context.Context, _ *sdk.CallToolRequest, in *input,
			) (*sdk.CallToolResult, *greeted, error) {
				return nil, &greeted{"Ack " + in.In}, nil
			})
		},
		"tomorrow": func() {
			type input struct{ Now time.Time }
			type output struct{ Tomorrow time.Time }
			sdk.AddTool(s, &sdk.Tool{Name: "tomorrow"}, func(
				_ context.Context, _ *sdk.CallToolRequest, in input,
			) (*sdk.CallToolResult, output, error) {
				return nil, output{in.Now.Add(24 * time.Hour)}, nil
			})
		},
		"inc": func() {
			type input struct {
				X int `json:"x,omitempty"`
			}
			type output struct {
				Y int `json:"y"`
			}
			schema := json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer","default":6}},"additionalProperties":false}`)
			sdk.AddTool(s, &sdk.Tool{Name: "inc", InputSchema: schema}, func(
				_ context.Context, _ *sdk.CallToolRequest, in input,
			) (*sdk.CallToolResult, output, error) {
				return nil, output{in.X + 1}, nil
			})
		},
		"contentTool": func() {
			type input struct {
				In string `jsonschema:"the input"`
			}
			sdk.AddTool(s, &sdk.Tool{
				Name: "contentTool", Title: "contentTool", Description: "return resourceLink content with Icon",
			}, func(_ context.Context, _ *sdk.CallToolRequest, in *input) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ResourceLink{
					Name: "Example Resource Link with Icons", MIMEType: "text/plain", URI: "https://example.com/resource/" + in.In, Icons: icon,
				}}}, nil, nil
			})
		},
		"confirmThenGreet": func() {
			sdk.AddTool(s, &sdk.Tool{Name: "confirmThenGreet", Description: "ask the user for their name via elicitation, then greet them"},
				func(_ context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
					if len(req.Params.InputResponses) > 0 {
						return text("hello " + req.Params.InputResponses["who"].(*sdk.ElicitResult).Content["name"].(string)), nil, nil
					}
					return &sdk.CallToolResult{RequestState: "step=1", InputRequests: sdk.InputRequestMap{"who": &sdk.ElicitParams{
						Message:         "What is your name?",
						RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
					}}}, nil, nil
				})
		},
		"code_review": func() { review(s, nil) }, "code_reviewWithIcon": func() { review(s, icon) },
		"info": func() { info(s, nil) }, "infoWithIcon": func() { info(s, icon) },
		"info.txt": func() {
			s.AddResource(&sdk.Resource{
				Name: "public", MIMEType: "text/plain", URI: "file:///info.txt",
			}, func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				if _, err := req.Session.ListRoots(ctx, nil); err != nil { //nolint:staticcheck // their test requests roots
					return nil, err
				}
				return &sdk.ReadResourceResult{
					Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Blob: []byte("Contents\n")}},
				}, nil
			})
		},
	}
	for _, kind := range []string{"tools", "prompts", "resources"} {
		for _, feature := range strings.Fields(section(archive, kind)) {
			require.Contains(t, tools, feature)
			tools[feature]()
		}
	}
	return s
}

func review(s *sdk.Server, icon []sdk.Icon) {
	s.AddPrompt(&sdk.Prompt{
		Name: "code_review", Description: "do a code review",
		Arguments: []*sdk.PromptArgument{{Name: "Code", Required: true}}, Icons: icon,
	},
		func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{}, nil
		})
}

func info(s *sdk.Server, icon []sdk.Icon) {
	s.AddResource(&sdk.Resource{
		Name: "info", MIMEType: "text/plain", URI: "embedded:info", Icons: icon,
	}, func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{
			Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: "This is the MCP test server."}},
		}, nil
	})
}
