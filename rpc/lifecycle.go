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

	"waza/rpc/dispatch"
	"waza/rpc/lsp"
)

// protocolVersion is that of the methods and notifications as a whole. It
// changes its first number when a client could break.
const protocolVersion = "1.0"

func lifecycleMethods() []*method {
	return []*method{
		dispatch.Define("initialize", dispatch.Quick,
			"Tell who the client is. Optional, but where the server asks for a token it must be the first call. "+
				"Relative paths are then meant from the first workspace folder. "+
				"On stdio, the daemon ends its runs and itself when the process processId ends.", initialize),
		dispatch.Define("shutdown", dispatch.Quick,
			"Prepare to end: further requests but `exit` get -32007. On stdio the client's runs are cancelled; "+
				"runs of a client that is connected to a socket go on.", shutDown),
		dispatch.Define("exit", dispatch.Quick,
			"End the connection. On stdio the process ends, with exit code 0 after `shutdown` and 1 without.", exit),
		dispatch.Define("ping", dispatch.Quick, "Answer `pong`.", ping),
		dispatch.Define("$/cancelRequest", dispatch.Quick,
			"Cancel a request that has no reply yet; it is then answered with -32800, or with its result if that was quicker. "+
				"A run that eval.run has started is cancelled with run.cancel.", cancelRequest),
	}
}

type noParams struct{}

type initializeParams struct {
	Token            string            `json:"token" doc:"What the server was told to ask for."`
	ProcessID        int               `json:"processId" jsonschema:"minimum=0" doc:"Process whose end is the client's end; null or 0 for none. Only heeded on stdio."`
	ClientInfo       clientInfo        `json:"clientInfo" doc:"Name and version of the client."`
	WorkspaceFolders []workspaceFolder `json:"workspaceFolders" doc:"Directories the client works in; relative paths are meant from the first."`

	// What clients of the Language Server Protocol send beside.
	RootURI               string          `json:"rootUri" doc:"Taken as the workspace folder when there is no other."`
	RootPath              string          `json:"rootPath" doc:"Taken as the workspace folder when there is no other."`
	Capabilities          json.RawMessage `json:"capabilities" doc:"Those of a client of the Language Server Protocol, which has textDocument among them; else ignored."`
	InitializationOptions any             `json:"initializationOptions" doc:"Ignored."`
	Locale                any             `json:"locale" doc:"Ignored."`
	Trace                 any             `json:"trace" doc:"Ignored."`
	WorkDoneToken         any             `json:"workDoneToken" doc:"Ignored."`
}

type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// workspaceFolder is a path, a file URI, or an object that holds one.
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

// JSONSchema describes what UnmarshalJSON takes.
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
	// language is what clients of the Language Server Protocol are offered beside; nil for others.
	language *protocol.ServerCapabilities
}

// MarshalJSON writes the members of language among its own.
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
	if err := authorise(c, p.Token); err != nil {
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
		c.conn.editor.Begin(client)
		r.Capabilities.language = client.ServerCapabilities()
	}
	return r, nil
}

// lenient says that clients of the Language Server Protocol may send members that
// are not listed: it grows.
func (p *initializeParams) Lenient(given []dispatch.Member) bool {
	for _, m := range given {
		if m.Name == "capabilities" {
			_, isEditor := lsp.ClientOf(m.Value)
			return isEditor
		}
	}
	return false
}

// folders are those that the client works in. An editor may have some that are no
// directories of this machine, which it cannot help.
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
	leaveAfterReply(c)
	return nil, nil
}

func ping(context.Context, *call, *noParams) (string, error) { return "pong", nil }

type cancelParams struct {
	ID requestID `json:"id" jsonschema:"required" doc:"Id of the request, a string or a number."`
}

// requestID is the client's id of a request as it wrote it.
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

// JSONSchema describes what UnmarshalJSON takes.
func (requestID) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}}}
}

func cancelRequest(_ context.Context, c *call, p *cancelParams) (any, error) {
	c.conn.requests.Cancel(p.ID.raw)
	return nil, nil
}
