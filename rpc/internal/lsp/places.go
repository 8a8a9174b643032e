package lsp

import (
	"slices"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/eval/assist"
)

// Hover returns an explanation in Markdown, or as plain text if the client does not support
// Markdown.
func (doc *Document) Hover(e *assist.Explanation, c Client) *protocol.Hover {
	at := doc.Range(e.Range.Start, e.Range.End)
	kind := protocol.MarkupKindMarkdown
	if td := c.Capabilities.TextDocument; td != nil && td.Hover != nil {
		if takes := td.Hover.ContentFormat; len(takes) > 0 && !slices.Contains(takes, kind) {
			kind = protocol.MarkupKindPlainText
		}
	}
	return &protocol.Hover{Contents: &protocol.MarkupContent{Kind: kind, Value: e.Markdown}, Range: &at}
}

// Definition returns the locations of a definition: as links, which include the origin, if the
// client supports them.
func (doc *Document) Definition(d *assist.Definition, c Client) protocol.DefinitionResult {
	td := c.Capabilities.TextDocument
	if td == nil || td.Definition == nil || !isTrue(td.Definition.LinkSupport) {
		places := protocol.LocationSlice{}
		for _, t := range d.Targets {
			places = append(places, protocol.Location{URI: uri.File(t.Path), Range: lineRange(t.Line)})
		}
		return places
	}
	from := doc.Range(d.Range.Start, d.Range.End)
	links := protocol.DefinitionLinkSlice{}
	for _, t := range d.Targets {
		at := lineRange(t.Line)
		links = append(links, protocol.DefinitionLink{
			OriginSelectionRange: &from, TargetURI: uri.File(t.Path), TargetRange: at, TargetSelectionRange: at,
		})
	}
	return links
}

func lineRange(line int) protocol.Range {
	at := protocol.Position{Line: uint32(line)}
	return protocol.Range{Start: at, End: at}
}

// Links returns the links of a document.
func (doc *Document) Links(list []assist.Link) []protocol.DocumentLink {
	out := make([]protocol.DocumentLink, 0, len(list))
	for _, l := range list {
		target := uri.File(l.Path)
		out = append(out, protocol.DocumentLink{Range: doc.Range(l.Range.Start, l.Range.End), Target: &target, Tooltip: &l.Tooltip})
	}
	return out
}

// Symbols returns the outline of a document: as a tree, or as a flat list if the client does not
// support trees.
func (doc *Document) Symbols(list []assist.Symbol, c Client) protocol.DocumentSymbolResult {
	td := c.Capabilities.TextDocument
	if td != nil && td.DocumentSymbol != nil && isTrue(td.DocumentSymbol.HierarchicalDocumentSymbolSupport) {
		return protocol.DocumentSymbolSlice(doc.symbolTree(list))
	}
	return doc.symbolList(list, "", protocol.SymbolInformationSlice{})
}

func (doc *Document) symbolTree(list []assist.Symbol) []protocol.DocumentSymbol {
	out := make([]protocol.DocumentSymbol, 0, len(list))
	for _, s := range list {
		one := protocol.DocumentSymbol{
			Name: s.Name, Kind: symbolKinds[s.Sort],
			Range: doc.Range(s.Range.Start, s.Range.End), SelectionRange: doc.Range(s.Selection.Start, s.Selection.End),
		}
		if s.Detail != "" {
			one.Detail = &s.Detail
		}
		if len(s.Children) > 0 {
			one.Children = doc.symbolTree(s.Children)
		}
		out = append(out, one)
	}
	return out
}

func (doc *Document) symbolList(list []assist.Symbol, in string, out protocol.SymbolInformationSlice) protocol.SymbolInformationSlice {
	for _, s := range list {
		one := protocol.SymbolInformation{
			BaseSymbolInformation: protocol.BaseSymbolInformation{Name: s.Name, Kind: symbolKinds[s.Sort]},
			Location:              protocol.Location{URI: doc.URI, Range: doc.Range(s.Range.Start, s.Range.End)},
		}
		if in != "" {
			one.ContainerName = &in
		}
		out = doc.symbolList(s.Children, s.Name, append(out, one))
	}
	return out
}

var symbolKinds = map[assist.SymbolSort]protocol.SymbolKind{
	assist.SuiteSymbol:  protocol.SymbolKindModule,
	assist.TaskSymbol:   protocol.SymbolKindMethod,
	assist.FilesSymbol:  protocol.SymbolKindFile,
	assist.GraderSymbol: protocol.SymbolKindFunction,
	assist.MapSymbol:    protocol.SymbolKindObject,
	assist.ListSymbol:   protocol.SymbolKindArray,
	assist.ValueSymbol:  protocol.SymbolKindProperty,
}
