package lsp

import (
	"fmt"

	"go.lsp.dev/protocol"

	"waza/eval/assist"
)

// Snippets reports whether the client supports completions with placeholders.
func (c Client) Snippets() bool {
	o := c.completionItem()
	return o != nil && isTrue(o.SnippetSupport)
}

func (c Client) completionItem() *protocol.ClientCompletionItemOptions {
	if td := c.Capabilities.TextDocument; td != nil && td.Completion != nil {
		return td.Completion.CompletionItem
	}
	return nil
}

// Completion returns the items of a completion in their order.
func (doc *Document) Completion(c assist.Completion) *protocol.CompletionList {
	list := &protocol.CompletionList{IsIncomplete: c.Incomplete, Items: make([]protocol.CompletionItem, 0, len(c.Items))}
	at := doc.Range(c.Range.Start, c.Range.End)
	for i, it := range c.Items {
		list.Items = append(list.Items, completionItem(it, i, at))
	}
	return list
}

func completionItem(it assist.Item, i int, at protocol.Range) protocol.CompletionItem {
	out := protocol.CompletionItem{
		Label: it.Label, Kind: itemKinds[it.Sort],
		// By default, editors sort by the label.
		SortText: protocol.NewOptional(fmt.Sprintf("%04d", i)),
		TextEdit: &protocol.TextEdit{Range: at, NewText: it.Insert},
		// The lines are already indented.
		InsertTextMode: protocol.InsertTextModeAsIs,
	}
	if it.Detail != "" {
		out.Detail = protocol.NewOptional(it.Detail)
	}
	if it.Doc != "" {
		out.Documentation = &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: it.Doc}
	}
	if it.Filter != it.Label {
		out.FilterText = protocol.NewOptional(it.Filter)
	}
	if it.Snippet {
		out.InsertTextFormat = protocol.InsertTextFormatSnippet
	}
	return out
}

var itemKinds = map[assist.Sort]protocol.CompletionItemKind{
	assist.Key:      protocol.CompletionItemKindProperty,
	assist.Value:    protocol.CompletionItemKindEnumMember,
	assist.Kind:     protocol.CompletionItemKindClass,
	assist.File:     protocol.CompletionItemKindFile,
	assist.Folder:   protocol.CompletionItemKindFolder,
	assist.Variable: protocol.CompletionItemKindVariable,
	assist.Name:     protocol.CompletionItemKindReference,
}
