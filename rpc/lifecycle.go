package rpc

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/lsp"
)

// protocolVersion is the version of the methods and notifications. A change that can break
// clients increments its first number.
const protocolVersion = "1.0"

func lifecycleMethods() []*method {
	return []*method{
		dispatch.Define("initialize", dispatch.Quick,
			"Identify the client. Optional, unless the server requires a token: then it must be the first call. "+
				"Afterwards, relative paths are resolved against the first workspace folder. "+
				"On stdio, the daemon ends its runs and itself when the process processId ends.", initialize),
		dispatch.Define("shutdown", dispatch.Quick,
			"Prepare to end: further requests except `exit` get -32007. On stdio the client's runs are cancelled; "+
				"runs of a client that is connected to a socket continue.", shutDown),
		dispatch.Define("exit", dispatch.Quick,
			"End the connection. On stdio the process ends, with exit code 0 after `shutdown` and 1 without.", exit),
		dispatch.Define("ping", dispatch.Quick, "Answer `pong`.", ping),
		dispatch.Define("$/cancelRequest", dispatch.Quick,
			"Cancel a request that has no reply yet. The server then replies with -32800, or with the result if it was ready first. "+
				"To cancel a run that eval.run started, use run.cancel.", cancelRequest),
	}
}

type noParams struct{}

type initializeParams struct {
	Token            string            `json:"token" doc:"Token of the server, if it requires one."`
	ProcessID        int               `json:"processId" jsonschema:"minimum=0" doc:"The client is gone when this process ends; null or 0 for none. Only used on stdio."`
	ClientInfo       clientInfo        `json:"clientInfo" doc:"Name and version of the client."`
	WorkspaceFolders []workspaceFolder `json:"workspaceFolders" doc:"Directories that the client works in; relative paths are resolved against the first."`

	// Members that clients of the Language Server Protocol also send.
	RootURI               string          `json:"rootUri" doc:"The workspace folder when no other is given."`
	RootPath              string          `json:"rootPath" doc:"The workspace folder when no other is given."`
	Capabilities          json.RawMessage `json:"capabilities" doc:"Capabilities of a client of the Language Server Protocol, which include textDocument; otherwise ignored."`
	InitializationOptions any             `json:"initializationOptions" doc:"Ignored."`
	Locale                any             `json:"locale" doc:"Ignored."`
	Trace                 any             `json:"trace" doc:"Ignored."`
	WorkDoneToken         any             `json:"workDoneToken" doc:"Ignored."`
}

type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// workspaceFolder is a path, a file URI, or an object that contains one.
type workspaceFolder struct{ path string }

func (w *workspaceFolder) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &w.path) == nil {
		return nil
	}
	var o struct{ URI, Path string }
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if w.path = o.URI; w.path == "" {
		w.path = o.Path
	}
	return nil
}

func (*workspaceFolder) Expected() string { return "a path, a file URI, or an object with uri or path" }

// JSONSchema describes what UnmarshalJSON accepts.
func (workspaceFolder) JSONSchema() *jsonschema.Schema {
	o := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties()}
	for _, name := range []string{"uri", "path", "name"} {
		o.Properties.Set(name, &jsonschema.Schema{Type: "string"})
	}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, o}}
}

type initializeResult struct {
	ServerInfo      serverInfo   `json:"serverInfo"`
	ProtocolVersion string       `json:"protocolVersion"`
	Capabilities    capabilities `json:"capabilities"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type capabilities struct {
	Methods       []string `json:"methods"`
	Notifications []string `json:"notifications"`
	Executors     []string `json:"executors"`
	// language contains the capabilities for clients of the Language Server Protocol; nil for
	// others.
	language *protocol.ServerCapabilities
}

// MarshalJSON writes the members of language next to its own.
func (c capabilities) MarshalJSON() ([]byte, error) {
	type plain capabilities
	own, err := json.Marshal(plain(c))
	if err != nil || c.language == nil {
		return own, err
	}
	more, err := protocol.Marshal(c.language)
	if err != nil {
		return nil, err
	}
	return append(append(own[:len(own)-1], ','), more[1:]...), nil
}

func initialize(_ context.Context, c *call, p *initializeParams) (*initializeResult, error) {
	if err := c.authorize(p.Token); err != nil {
		return nil, err
	}
	client, isEditor := lsp.ClientOf(p.Capabilities)
	var folders []string
	for _, folder := range p.folders(isEditor) {
		abs, err := absolute("workspaceFolders", folder, "")
		if err != nil {
			return nil, err
		}
		folders = append(folders, abs)
	}
	c.conn.setFolders(folders)
	if c.conn.owner && p.ProcessID > 0 {
		c.conn.watchProcess(p.ProcessID)
	}
	c.server.log.Info("client", "name", p.ClientInfo.Name, "version", p.ClientInfo.Version, "processId", p.ProcessID, "editor", isEditor)
	r := c.server.describe()
	if isEditor {
		c.conn.editor.SetClient(client)
		r.Capabilities.language = client.ServerCapabilities()
	}
	return r, nil
}

// Lenient reports whether the client speaks the Language Server Protocol. Its clients can send
// unlisted members, because that protocol grows.
func (p *initializeParams) Lenient(given []dispatch.Member) bool {
	for _, m := range given {
		if m.Name == "capabilities" {
			_, isEditor := lsp.ClientOf(m.Value)
			return isEditor
		}
	}
	return false
}

// folders returns the client's directories. It ignores folders of an editor that are not on this
// machine, such as those of a virtual workspace.
func (p *initializeParams) folders(isEditor bool) []string {
	given := []string{}
	for _, w := range p.WorkspaceFolders {
		given = append(given, w.path)
	}
	usable := func(list []string) []string {
		return slices.DeleteFunc(list, func(folder string) bool {
			return folder == "" || isEditor && strings.Contains(folder, ":") && !isDirectoryOfThisMachine(folder)
		})
	}
	if folders := usable(given); len(folders) > 0 {
		return folders
	}
	return usable([]string{p.RootURI, p.RootPath})
}

func isDirectoryOfThisMachine(folder string) bool {
	_, ok := lsp.PathOf(uri.URI(folder))
	return ok || filepath.IsAbs(folder)
}

func (s *Server) describe() *initializeResult {
	r := &initializeResult{ServerInfo: serverInfo{"waza", s.o.Version}, ProtocolVersion: protocolVersion}
	for _, k := range s.runner.Planner().Vocabulary().Executors {
		r.Capabilities.Executors = append(r.Capabilities.Executors, k.Name)
	}
	for _, m := range table() {
		r.Capabilities.Methods = append(r.Capabilities.Methods, m.Name)
	}
	for _, n := range notifications {
		r.Capabilities.Notifications = append(r.Capabilities.Notifications, n.Name)
	}
	return r
}

func shutDown(_ context.Context, c *call, _ *noParams) (any, error) {
	c.conn.mu.Lock()
	c.conn.shutdown = true
	c.conn.mu.Unlock()
	if c.conn.owner {
		c.conn.runs.cancel()
	}
	return nil, nil
}

func exit(_ context.Context, c *call, _ *noParams) (any, error) {
	c.closeAfterReply()
	return nil, nil
}

func ping(context.Context, *call, *noParams) (string, error) { return "pong", nil }

type cancelParams struct {
	ID requestID `json:"id" jsonschema:"required" doc:"Id of the request, a string or a number."`
}

// requestID is the client's id of a request, exactly as written.
type requestID struct{ raw json.RawMessage }

func (r *requestID) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch v.(type) {
	case string, float64:
		r.raw = slices.Clone(b)
		return nil
	}
	return &json.UnmarshalTypeError{Value: "id"}
}

func (*requestID) Expected() string { return "a string or a number" }

// JSONSchema describes what UnmarshalJSON accepts.
func (requestID) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}}}
}

func cancelRequest(_ context.Context, c *call, p *cancelParams) (any, error) {
	c.conn.requests.Cancel(p.ID.raw)
	return nil, nil
}
