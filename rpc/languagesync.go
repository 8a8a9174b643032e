package rpc

import (
	"context"

	"go.lsp.dev/protocol"

	"waza/rpc/lsp"
)

// documentMethods keep what the client has open. They are quick ones, so that
// they take effect in the order in which they come.
func documentMethods() []*method {
	return []*method{
		speak("initialized", quick, "The client is ready. One that can is asked to tell of files that change on disk.", (*call).initialized),
		speak("textDocument/didOpen", quick, "A document is open in the editor: from now on its text counts, not the file's.", (*call).didOpen),
		speak("textDocument/didChange", quick, "The text of an open document has changed, as a whole or in parts.", (*call).didChange),
		speak("textDocument/didSave", quick, "An open document was saved.", (*call).didSave),
		speak("textDocument/didClose", quick, "A document is not open any more: the file counts again.", (*call).didClose),
		speak("workspace/didChangeWatchedFiles", quick, "Files have changed, outside of the editor perhaps.", (*call).didChangeWatchedFiles),
		speak("workspace/didChangeWorkspaceFolders", quick, "The client works in other directories; relative paths are still meant from the first of `initialize`.", (*call).didChangeFolders),
		speak("workspace/didChangeConfiguration", quick, "Taken and ignored: there is nothing to configure.", (*call).didChangeConfiguration),
		speak("$/setTrace", quick, "Taken and ignored: the log tells what happens.", (*call).setTrace),
	}
}

func (c *call) initialized(context.Context, *protocol.InitializedParams) (any, error) {
	if !c.language.abilities().WatchesFiles() {
		return nil, nil
	}
	params, err := lsp.WatchFiles()
	if err != nil {
		return nil, err
	}
	c.following.Go(func() { c.ask("client/registerCapability", params) })
	return nil, nil
}

// alter changes what is open, and sees to it that the suites it belongs to are
// read again. With search, those are looked for. What cannot be followed is told
// to the log: a notification has no reply.
func (c *call) alter(search bool, change func(open lsp.Documents, e lsp.Encoding) (lsp.Documents, string, error)) {
	c.language.mu.Lock()
	open, path, err := change(c.language.open, c.language.client.Encoding)
	c.language.open = open
	c.language.mu.Unlock()
	if err != nil {
		c.server.log.Warn("document", "method", c.req.Method, "path", path, "error", err)
	}
	if path != "" {
		c.language.check.touch(path, search)
	}
}

func (c *call) didOpen(_ context.Context, p *protocol.DidOpenTextDocumentParams) (any, error) {
	c.alter(true, func(open lsp.Documents, e lsp.Encoding) (lsp.Documents, string, error) {
		return open.Open(p.TextDocument, e)
	})
	return nil, nil
}

func (c *call) didChange(_ context.Context, p *protocol.DidChangeTextDocumentParams) (any, error) {
	c.alter(false, func(open lsp.Documents, _ lsp.Encoding) (lsp.Documents, string, error) { return open.Change(p) })
	return nil, nil
}

func (c *call) didSave(_ context.Context, p *protocol.DidSaveTextDocumentParams) (any, error) {
	if path, ok := lsp.PathOf(p.TextDocument.URI); ok {
		c.language.check.touch(path, true)
	}
	return nil, nil
}

func (c *call) didClose(_ context.Context, p *protocol.DidCloseTextDocumentParams) (any, error) {
	c.alter(false, func(open lsp.Documents, _ lsp.Encoding) (lsp.Documents, string, error) {
		return open.Close(p.TextDocument.URI)
	})
	return nil, nil
}

func (c *call) didChangeWatchedFiles(_ context.Context, p *protocol.DidChangeWatchedFilesParams) (any, error) {
	var paths []string
	for _, change := range p.Changes {
		if path, ok := lsp.PathOf(change.URI); ok {
			paths = append(paths, path)
		}
	}
	c.language.check.onDisk(paths)
	return nil, nil
}

func (c *call) didChangeFolders(context.Context, *protocol.DidChangeWorkspaceFoldersParams) (any, error) {
	return nil, nil
}

func (c *call) didChangeConfiguration(context.Context, *protocol.DidChangeConfigurationParams) (any, error) {
	return nil, nil
}

func (c *call) setTrace(context.Context, *protocol.SetTraceParams) (any, error) { return nil, nil }
