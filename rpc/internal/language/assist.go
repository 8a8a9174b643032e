package language

import (
	"context"

	"go.lsp.dev/protocol"

	"waza/eval/assist"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/lsp"
)

// assistMethods lists the methods about a position in a text. Package assist finds their
// answers.
func assistMethods() []*method {
	return []*method{
		lspMethod("textDocument/completion", dispatch.Long,
			"Completions at a position: keys, graders and their options, executors, values, files, skills, template variables.", completion),
		lspMethod("textDocument/hover", dispatch.Long,
			"Documentation of a key, a value, a file or a template variable.", hover),
		lspMethod("textDocument/definition", dispatch.Long,
			"Definitions: the files of a pattern, a fixture, a script, a skill, a grader of the suite, the value of a template variable.",
			definition),
		lspMethod("textDocument/documentSymbol", dispatch.Long,
			"The outline of a suite or a task: its settings, graders and tasks.", documentSymbol),
		lspMethod("textDocument/documentLink", dispatch.Long,
			"Links for the file names in a document.", documentLink),
	}
}

// openDocument is the open document of a request, with the suite that it belongs to.
type openDocument struct {
	doc       *lsp.Document
	of        assist.Document
	assistant *assist.Assistant
	client    lsp.Client
}

// findDocument collects what package assist needs to know about a document. It returns nil if the
// document is not open, and waits until the document's suite is read if it is unknown.
func findDocument(ctx context.Context, q *Request, id protocol.TextDocumentIdentifier) (*openDocument, error) {
	doc := q.open.Get(id.URI)
	if doc == nil {
		return nil, nil
	}
	k := &q.editor.check
	suite := k.suiteOf(doc.Path)
	if suite == nil {
		if err := k.waitIdle(ctx); err != nil {
			return nil, err
		}
		suite = k.suiteOf(doc.Path)
	}
	return &openDocument{
		doc:       doc,
		of:        assist.Document{Path: doc.Path, Text: doc.Text.String(), Suite: suite, Overlay: q.open.Overlay()},
		assistant: assist.New(assist.Options{Vocabulary: q.editor.o.Suites.Vocabulary()}),
		client:    q.editor.capabilities(),
	}, nil
}

func completion(ctx context.Context, q *Request, p *protocol.CompletionParams) (any, error) {
	a, err := findDocument(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	found := a.assistant.Complete(a.of, a.doc.Offset(p.Position), a.client.Snippets())
	return a.doc.Completion(found), nil
}

func hover(ctx context.Context, q *Request, p *protocol.HoverParams) (any, error) {
	a, err := findDocument(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	found := a.assistant.Hover(a.of, a.doc.Offset(p.Position))
	if found == nil {
		return nil, nil
	}
	return a.doc.Hover(found, a.client), nil
}

func definition(ctx context.Context, q *Request, p *protocol.DefinitionParams) (any, error) {
	a, err := findDocument(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	found := a.assistant.Define(a.of, a.doc.Offset(p.Position))
	if found == nil {
		return nil, nil
	}
	return a.doc.Definition(found, a.client), nil
}

func documentSymbol(ctx context.Context, q *Request, p *protocol.DocumentSymbolParams) (any, error) {
	a, err := findDocument(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	return a.doc.Symbols(a.assistant.Symbols(a.of), a.client), nil
}

func documentLink(ctx context.Context, q *Request, p *protocol.DocumentLinkParams) (any, error) {
	a, err := findDocument(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	return a.doc.Links(a.assistant.Links(a.of)), nil
}
