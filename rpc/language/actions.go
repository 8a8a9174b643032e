package language

import (
	"context"

	"go.lsp.dev/protocol"

	"waza/rpc/dispatch"
	"waza/rpc/lsp"
)

func actionMethods() []*method {
	return []*method{
		speak("textDocument/codeAction", dispatch.Long,
			"What can be done about findings: a quick fix for each with a suggestion, and `source.fixAll.waza`, which makes all such changes.", codeAction),
	}
}

// codeAction offers changes to the text as it is now: where that is still being
// read, it waits for what comes of it.
func codeAction(ctx context.Context, q *Request, p *protocol.CodeActionParams) (any, error) {
	doc := q.open.Get(p.TextDocument.URI)
	if doc == nil {
		return nil, nil
	}
	found, err := q.editor.check.findings(ctx, doc)
	if err != nil {
		return nil, err
	}
	return lsp.Actions(doc, found, p.Range, p.Context.Only), nil
}

// findings gives what is wrong with a document, once it is known; nothing where
// the document has changed meanwhile.
func (k *checker) findings(ctx context.Context, doc *lsp.Document) ([]lsp.Finding, error) {
	if err := k.settled(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.last[doc.Path]
	if !t.open || t.version != doc.Version {
		return nil, nil
	}
	return t.findings, nil
}
