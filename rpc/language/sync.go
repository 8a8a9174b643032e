package language

import (
	"context"

	"go.lsp.dev/protocol"

	"waza/rpc/dispatch"
	"waza/rpc/lsp"
)

// documentMethods keep what the client has open. They are quick ones, so that
// they take effect in the order in which they come.
func documentMethods() []*method {
	return []*method{
		speak("initialized", dispatch.Quick, "The client is ready. One that can is asked to tell of files that change on disk.", initialized),
		speak("textDocument/didOpen", dispatch.Quick, "A document is open in the editor: from now on its text counts, not the file's.", didOpen),
		speak("textDocument/didChange", dispatch.Quick, "The text of an open document has changed, as a whole or in parts.", didChange),
		speak("textDocument/didSave", dispatch.Quick, "An open document was saved.", didSave),
		speak("textDocument/didClose", dispatch.Quick, "A document is not open any more: the file counts again.", didClose),
		speak("workspace/didChangeWatchedFiles", dispatch.Quick, "Files have changed, outside of the editor perhaps.", didChangeWatchedFiles),
		speak("workspace/didChangeWorkspaceFolders", dispatch.Quick, "The client works in other directories; relative paths are still meant from the first of `initialize`.", didChangeFolders),
		speak("workspace/didChangeConfiguration", dispatch.Quick, "Taken and ignored: there is nothing to configure.", didChangeConfiguration),
		speak("$/setTrace", dispatch.Quick, "Taken and ignored: the log tells what happens.", setTrace),
	}
}

func initialized(_ context.Context, q *Request, _ *protocol.InitializedParams) (any, error) {
	if !q.editor.abilities().WatchesFiles() {
		return nil, nil
	}
	params, err := lsp.WatchFiles()
	if err != nil {
		return nil, err
	}
	q.editor.sending.Go(func() { q.editor.ask("client/registerCapability", params) })
	return nil, nil
}

// alter changes what is open, and sees to it that the suites it belongs to are
// read again. With search, those are looked for. What cannot be followed is told
// to the log: a notification has no reply.
func alter(q *Request, search bool, change func(open lsp.Documents, e lsp.Encoding) (lsp.Documents, string, error)) {
	q.editor.mu.Lock()
	open, path, err := change(q.editor.open, q.editor.client.Encoding)
	q.editor.open = open
	q.editor.mu.Unlock()
	if err != nil {
		q.editor.o.Log.Warn("document", "method", q.method, "path", path, "error", err)
	}
	if path != "" {
		q.editor.check.touch(path, search)
	}
}

func didOpen(_ context.Context, q *Request, p *protocol.DidOpenTextDocumentParams) (any, error) {
	alter(q, true, func(open lsp.Documents, e lsp.Encoding) (lsp.Documents, string, error) {
		return open.Open(p.TextDocument, e)
	})
	return nil, nil
}

func didChange(_ context.Context, q *Request, p *protocol.DidChangeTextDocumentParams) (any, error) {
	alter(q, false, func(open lsp.Documents, _ lsp.Encoding) (lsp.Documents, string, error) { return open.Change(p) })
	return nil, nil
}

func didSave(_ context.Context, q *Request, p *protocol.DidSaveTextDocumentParams) (any, error) {
	if path, ok := lsp.PathOf(p.TextDocument.URI); ok {
		q.editor.check.touch(path, true)
	}
	return nil, nil
}

func didClose(_ context.Context, q *Request, p *protocol.DidCloseTextDocumentParams) (any, error) {
	alter(q, false, func(open lsp.Documents, _ lsp.Encoding) (lsp.Documents, string, error) {
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
	q.editor.check.onDisk(paths)
	return nil, nil
}

func didChangeFolders(context.Context, *Request, *protocol.DidChangeWorkspaceFoldersParams) (any, error) {
	return nil, nil
}

func didChangeConfiguration(context.Context, *Request, *protocol.DidChangeConfigurationParams) (any, error) {
	return nil, nil
}

func setTrace(context.Context, *Request, *protocol.SetTraceParams) (any, error) { return nil, nil }
