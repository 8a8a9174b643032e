// Package lsp says what a suite is in the words of the Language Server Protocol:
// texts and places in them, findings as diagnostics, suggestions as code actions,
// results as code lenses. It holds no connection and starts nothing: the methods
// of package rpc call it with what the client has open.
//
// Begin with [Documents], which hold the texts, and [ClientOf], which tells what
// a client can do.
package lsp

import (
	"encoding/json"

	"go.lsp.dev/protocol"
)

// Client is what matters of a client's abilities. The zero value is a client
// that told nothing: whatever every client can do.
type Client struct {
	Encoding Encoding
	// Capabilities are all that the client told.
	Capabilities protocol.ClientCapabilities
}

// ClientOf reads the capabilities of initialize. It is false for clients that do
// not speak the Language Server Protocol: theirs lack textDocument. A client
// whose other members cannot be read is one that told nothing.
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

// ServerCapabilities are what the server offers such a client.
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
		CodeActionProvider:     &protocol.CodeActionOptions{CodeActionKinds: []protocol.CodeActionKind{protocol.CodeActionKindQuickFix, FixAll}},
		CodeLensProvider:       &protocol.CodeLensOptions{},
		ExecuteCommandProvider: protocol.ExecuteCommandOptions{Commands: Commands()},
		Workspace: &protocol.WorkspaceOptions{
			WorkspaceFolders: &protocol.WorkspaceFoldersServerCapabilities{Supported: &yes, ChangeNotifications: protocol.Boolean(true)},
		},
	}
}

// WatchesFiles says whether the client tells of files that change on disk, once it is
// asked to.
func (c Client) WatchesFiles() bool {
	w := c.Capabilities.Workspace
	return w != nil && w.DidChangeWatchedFiles != nil && isTrue(w.DidChangeWatchedFiles.DynamicRegistration)
}

// watched are the files whose changes matter to suites: what they are written in, and
// what they most often name. Other files are looked at when a suite is read anew.
const watched = "**/*.{yaml,yml,md,csv,json,jsonl}"

// WatchFiles are the params of the request that asks a client to tell of them,
// encoded by the rules of the protocol.
func WatchFiles() (json.RawMessage, error) {
	options, err := protocol.Marshal(&protocol.DidChangeWatchedFilesRegistrationOptions{
		Watchers: []protocol.FileSystemWatcher{{GlobPattern: protocol.Pattern(watched)}},
	})
	if err != nil {
		return nil, err
	}
	return protocol.Marshal(&protocol.RegistrationParams{Registrations: []protocol.Registration{
		{ID: "waza.files", Method: "workspace/didChangeWatchedFiles", RegisterOptions: options},
	}})
}

// RefreshesLenses says whether the client asks for code lenses again when it is told to.
func (c Client) RefreshesLenses() bool {
	w := c.Capabilities.Workspace
	return w != nil && w.CodeLens != nil && isTrue(w.CodeLens.RefreshSupport)
}

// ShowsProgress says whether the client shows how work goes on that it did not ask
// to be told of.
func (c Client) ShowsProgress() bool {
	w := c.Capabilities.Window
	return w != nil && isTrue(w.WorkDoneProgress)
}

// ShowsDocuments says whether the client opens documents when it is asked to.
func (c Client) ShowsDocuments() bool {
	w := c.Capabilities.Window
	return w != nil && w.ShowDocument != nil && w.ShowDocument.Support
}

func isTrue(b *bool) bool { return b != nil && *b }
