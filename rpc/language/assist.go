package language

import (
	"context"

	"go.lsp.dev/protocol"

	"waza/eval/assist"
	"waza/rpc/dispatch"
	"waza/rpc/lsp"
)

// assistMethods answer what editors ask about a text at a place. What they know,
// package assist does.
func assistMethods() []*method {
	return []*method{
		speak("textDocument/completion", dispatch.Long,
			"What may be written at a place: keys, graders and their options, executors, values, files, skills, template variables.", completion),
		speak("textDocument/hover", dispatch.Long,
			"What a key, a value, a file or a template variable means.", hover),
		speak("textDocument/definition", dispatch.Long,
			"Where something is: the files of a pattern, a fixture, a script, a skill, a grader of the suite, the value of a template variable.", definition),
		speak("textDocument/documentSymbol", dispatch.Long,
			"The outline of a suite or a task: its settings, graders and tasks.", documentSymbol),
		speak("textDocument/documentLink", dispatch.Long,
			"The names of files in a document, as links to them.", documentLink),
	}
}

// asked is an open document about which something is asked.
type asked struct {
	doc       *lsp.Document
	of        assist.Document
	assistant *assist.Assistant
	client    lsp.Client
}

// about finds out what an assistant must know of a document; nil when it is not
// open. A document whose suite is not known waits for its being read.
func about(ctx context.Context, q *Request, id protocol.TextDocumentIdentifier) (*asked, error) {
	doc := q.open.Get(id.URI)
	if doc == nil {
		return nil, nil
	}
	k := &q.editor.check
	suite := k.suiteOf(doc.Path)
	if suite == nil {
		if err := k.settled(ctx); err != nil {
			return nil, err
		}
		suite = k.suiteOf(doc.Path)
	}
	return &asked{
		doc:       doc,
		of:        assist.Document{Path: doc.Path, Text: doc.Text.String(), Suite: suite, Overlay: q.open.Overlay()},
		assistant: assist.New(assist.Options{Vocabulary: q.editor.o.Suites.Vocabulary()}),
		client:    q.editor.abilities(),
	}, nil
}

func completion(ctx context.Context, q *Request, p *protocol.CompletionParams) (any, error) {
	a, err := about(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	found := a.assistant.Complete(a.of, a.doc.Offset(p.Position), a.client.Snippets())
	return lsp.Completion(a.doc, found), nil
}

func hover(ctx context.Context, q *Request, p *protocol.HoverParams) (any, error) {
	a, err := about(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	found := a.assistant.Hover(a.of, a.doc.Offset(p.Position))
	if found == nil {
		return nil, nil
	}
	return lsp.Hover(a.doc, found, a.client), nil
}

func definition(ctx context.Context, q *Request, p *protocol.DefinitionParams) (any, error) {
	a, err := about(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	found := a.assistant.Define(a.of, a.doc.Offset(p.Position))
	if found == nil {
		return nil, nil
	}
	return lsp.Definition(a.doc, found, a.client), nil
}

func documentSymbol(ctx context.Context, q *Request, p *protocol.DocumentSymbolParams) (any, error) {
	a, err := about(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	return lsp.Symbols(a.doc, a.assistant.Symbols(a.of), a.client), nil
}

func documentLink(ctx context.Context, q *Request, p *protocol.DocumentLinkParams) (any, error) {
	a, err := about(ctx, q, p.TextDocument)
	if a == nil || err != nil {
		return nil, err
	}
	return lsp.Links(a.doc, a.assistant.Links(a.of)), nil
}
