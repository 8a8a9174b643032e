package language

import (
	"context"

	"go.lsp.dev/protocol"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/lsp"
)

// documentMethods lists the methods that update the open documents. They are quick methods, so
// that they take effect in the order in which they arrive.
func documentMethods() []*method {
	return []*method{
		lspMethod("initialized", dispatch.Quick,
			"The client is ready. If it supports that, the server asks it to report changed files.", initialized),
		lspMethod("textDocument/didOpen", dispatch.Quick,
			"The editor opened a document: from now on the editor's text applies instead of the file's.", didOpen),
		lspMethod("textDocument/didChange", dispatch.Quick, "The text of an open document changed, as a whole or in parts.", didChange),
		lspMethod("textDocument/didSave", dispatch.Quick, "An open document was saved.", didSave),
		lspMethod("textDocument/didClose", dispatch.Quick, "A document was closed: the file's text applies again.", didClose),
		lspMethod("workspace/didChangeWatchedFiles", dispatch.Quick, "Files changed, possibly outside of the editor.", didChangeWatchedFiles),
		lspMethod("workspace/didChangeWorkspaceFolders", dispatch.Quick,
			"The client's directories changed; relative paths are still resolved against the first directory of `initialize`.",
			ignore[protocol.DidChangeWorkspaceFoldersParams]),
		lspMethod("workspace/didChangeConfiguration", dispatch.Quick, "Ignored: there are no settings.",
			ignore[protocol.DidChangeConfigurationParams]),
		lspMethod("$/setTrace", dispatch.Quick, "Ignored: waza writes its own log.", ignore[protocol.SetTraceParams]),
	}
}

func initialized(_ context.Context, q *Request, _ *protocol.InitializedParams) (any, error) {
	if !q.editor.capabilities().WatchesFiles() {
		return nil, nil
	}
	params, err := lsp.WatchFiles()
	if err == nil {
		q.editor.sending.Go(func() { q.editor.ask("client/registerCapability", params) })
	}
	return nil, err
}

// updateDocuments changes the open documents and makes their suites due. With search, it also
// looks for suites of the document. It logs errors, because a notification has no reply.
func (q *Request) updateDocuments(search bool, change func(open lsp.Documents, e lsp.Encoding) (lsp.Documents, string, error)) {
	q.editor.mu.Lock()
	open, path, err := change(q.editor.open, q.editor.client.Encoding)
	q.editor.open = open
	q.editor.mu.Unlock()
	if err != nil {
		q.editor.o.Log.Warn("document", "method", q.method, "path", path, "error", err)
	}
	if path != "" {
		q.editor.check.markDue(path, search)
	}
}

func didOpen(_ context.Context, q *Request, p *protocol.DidOpenTextDocumentParams) (any, error) {
	q.updateDocuments(true, func(open lsp.Documents, e lsp.Encoding) (lsp.Documents, string, error) {
		return open.Open(p.TextDocument, e)
	})
	return nil, nil
}

func didChange(_ context.Context, q *Request, p *protocol.DidChangeTextDocumentParams) (any, error) {
	q.updateDocuments(false, func(open lsp.Documents, _ lsp.Encoding) (lsp.Documents, string, error) { return open.Change(p) })
	return nil, nil
}

func didSave(_ context.Context, q *Request, p *protocol.DidSaveTextDocumentParams) (any, error) {
	if path, ok := lsp.PathOf(p.TextDocument.URI); ok {
		q.editor.check.markDue(path, true)
	}
	return nil, nil
}

func didClose(_ context.Context, q *Request, p *protocol.DidCloseTextDocumentParams) (any, error) {
	q.updateDocuments(false, func(open lsp.Documents, _ lsp.Encoding) (lsp.Documents, string, error) {
		return open.Close(p.TextDocument.URI)
	})
	return nil, nil
}

func didChangeWatchedFiles(_ context.Context, q *Request, p *protocol.DidChangeWatchedFilesParams) (any, error) {
	var paths []string
	for _, change := range p.Changes {
		if path, ok := lsp.PathOf(change.URI); ok {
			paths = append(paths, path)
		}
	}
	q.editor.check.markChanged(paths)
	return nil, nil
}

// ignore only checks the parameters.
func ignore[P any](context.Context, *Request, *P) (any, error) { return nil, nil }
