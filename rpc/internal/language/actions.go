package language

import (
	"context"

	"go.lsp.dev/protocol"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/lsp"
)

func actionMethods() []*method {
	return []*method{
		lspMethod("textDocument/codeAction", dispatch.Long,
			"Quick fixes: one for each finding with a suggestion, and `source.fixAll.waza`, which applies all suggestions.", codeAction),
	}
}

// codeAction offers changes to the current text. If its suite is still being read, codeAction
// waits for the findings.
func codeAction(ctx context.Context, q *Request, p *protocol.CodeActionParams) (any, error) {
	doc := q.open.Get(p.TextDocument.URI)
	if doc == nil {
		return nil, nil
	}
	found, err := q.editor.check.findings(ctx, doc)
	if err != nil {
		return nil, err
	}
	return doc.Actions(found, p.Range, p.Context.Only), nil
}

// findings waits for the findings of a document and returns them. It returns none if the
// document has changed meanwhile.
func (k *checker) findings(ctx context.Context, doc *lsp.Document) ([]lsp.Finding, error) {
	if err := k.waitIdle(ctx); err != nil {
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
