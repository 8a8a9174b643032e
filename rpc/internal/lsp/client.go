// Package lsp converts suites to the types of the Language Server Protocol: texts and positions,
// findings as diagnostics, suggestions as code actions, results as code lenses. It has no
// connection and no goroutines: package language calls it with the documents that the client has
// open.
//
// Start with [Documents], which contains the texts, and [ClientOf], which returns the
// capabilities of a client.
package lsp

import (
	"encoding/json"

	"go.lsp.dev/protocol"
)

// A Client describes the capabilities of a client. The zero value has only the capabilities that
// every client has.
type Client struct {
	Encoding Encoding
	// Capabilities contains all capabilities that the client sent.
	Capabilities protocol.ClientCapabilities
}

// ClientOf parses the capabilities of initialize. It returns false for clients that do not speak
// the Language Server Protocol, which have no textDocument. If other members are invalid, it
// returns the zero Client.
func ClientOf(raw json.RawMessage) (Client, bool) {
	var seen struct {
		TextDocument *map[string]json.RawMessage `json:"textDocument"`
	}
	if json.Unmarshal(raw, &seen) != nil || seen.TextDocument == nil {
		return Client{}, false
	}
	var c Client
	if protocol.Unmarshal(raw, &c.Capabilities) != nil {
		return Client{}, true
	}
	if g := c.Capabilities.General; g != nil {
		c.Encoding = encodingOf(g.PositionEncodings)
	}
	return c, true
}

// ServerCapabilities returns the server's capabilities for the client.
func (c Client) ServerCapabilities() *protocol.ServerCapabilities {
	yes, incremental := true, protocol.TextDocumentSyncKindIncremental
	return &protocol.ServerCapabilities{
		PositionEncoding:       c.Encoding.kind(),
		TextDocumentSync:       &protocol.TextDocumentSyncOptions{OpenClose: &yes, Change: &incremental, Save: protocol.Boolean(true)},
		CompletionProvider:     &protocol.CompletionOptions{TriggerCharacters: []string{" ", "-", "/", "{", ".", "\"", "'"}},
		HoverProvider:          protocol.Boolean(true),
		DefinitionProvider:     protocol.Boolean(true),
		DocumentSymbolProvider: protocol.Boolean(true),
		DocumentLinkProvider:   &protocol.DocumentLinkOptions{},
		CodeActionProvider:     &protocol.CodeActionOptions{CodeActionKinds: []protocol.CodeActionKind{protocol.CodeActionKindQuickFix, fixAll}},
		CodeLensProvider:       &protocol.CodeLensOptions{},
		ExecuteCommandProvider: protocol.ExecuteCommandOptions{Commands: Commands()},
		Workspace: &protocol.WorkspaceOptions{
			WorkspaceFolders: &protocol.WorkspaceFoldersServerCapabilities{Supported: &yes, ChangeNotifications: protocol.Boolean(true)},
		},
	}
}

// WatchesFiles reports whether the client can report files that change on disk, if asked.
func (c Client) WatchesFiles() bool {
	w := c.Capabilities.Workspace
	return w != nil && w.DidChangeWatchedFiles != nil && isTrue(w.DidChangeWatchedFiles.DynamicRegistration)
}

// watched matches the files whose changes affect suites: suites themselves, and the files that
// they most often name. Other files are checked when a suite is read again.
const watched = "**/*.{yaml,yml,md,csv,json,jsonl}"

// WatchFiles returns the params of the request that asks a client to report changed files.
func WatchFiles() (*protocol.RegistrationParams, error) {
	options, err := protocol.Marshal(&protocol.DidChangeWatchedFilesRegistrationOptions{
		Watchers: []protocol.FileSystemWatcher{{GlobPattern: protocol.Pattern(watched)}},
	})
	return &protocol.RegistrationParams{Registrations: []protocol.Registration{
		{ID: "waza.files", Method: "workspace/didChangeWatchedFiles", RegisterOptions: options},
	}}, err
}

// RefreshesLenses reports whether the client supports requests to refresh code lenses.
func (c Client) RefreshesLenses() bool {
	w := c.Capabilities.Workspace
	return w != nil && w.CodeLens != nil && isTrue(w.CodeLens.RefreshSupport)
}

// ShowsProgress reports whether the client supports a work done progress that the server
// creates.
func (c Client) ShowsProgress() bool {
	w := c.Capabilities.Window
	return w != nil && isTrue(w.WorkDoneProgress)
}

// ShowsDocuments reports whether the client supports requests to show documents.
func (c Client) ShowsDocuments() bool {
	w := c.Capabilities.Window
	return w != nil && w.ShowDocument != nil && w.ShowDocument.Support
}

func isTrue(b *bool) bool { return b != nil && *b }
