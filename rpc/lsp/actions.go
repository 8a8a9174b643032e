package lsp

import (
	"fmt"
	"slices"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// FixAll is the kind of the action that puts all suggestions of a document in
// place, which editors can be told to do whenever a file is saved.
const FixAll = protocol.CodeActionKindSourceFixAll + ".waza"

// Actions are what can be done about findings of a document: for each that has a
// suggestion and touches the range, the change to it, and one that makes all
// changes. They are of the document's present version, and of the kinds that
// only lists; of any when it lists none.
func Actions(doc *Document, list []Finding, at protocol.Range, only []protocol.CodeActionKind) []protocol.CommandOrCodeAction {
	fixes := fixable(list)
	actions := []protocol.CommandOrCodeAction{}
	if wants(only, protocol.CodeActionKindQuickFix) {
		for _, f := range fixes {
			if touches(f.Range, at) {
				actions = append(actions, quickFix(doc.URI, f))
			}
		}
	}
	if wants(only, FixAll) && len(fixes) > 0 {
		actions = append(actions, action(doc.URI, "Change all to what waza suggests", FixAll, fixes))
	}
	return actions
}

// fixable are the findings with a suggestion and a place for it, none of which
// overlaps another, in the order of the text.
func fixable(list []Finding) []Finding {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Finding) int { return compare(a.Range.Start, b.Range.Start) })
	var fixes []Finding
	for _, f := range list {
		free := len(fixes) == 0 || compare(fixes[len(fixes)-1].Range.End, f.Range.Start) <= 0
		if free && f.Suggestion != "" && f.EndColumn > f.Column {
			fixes = append(fixes, f)
		}
	}
	return fixes
}

// quickFix is the change to one suggestion, which is the only one for its place:
// editors may prefer it.
func quickFix(u uri.URI, f Finding) *protocol.CodeAction {
	yes := true
	a := action(u, fmt.Sprintf("Change to `%s`", f.Suggestion), protocol.CodeActionKindQuickFix, []Finding{f})
	a.IsPreferred = &yes
	return a
}

func action(u uri.URI, title string, kind protocol.CodeActionKind, fixes []Finding) *protocol.CodeAction {
	a := &protocol.CodeAction{Title: title, Kind: &kind}
	var edits []protocol.TextEdit
	for _, f := range fixes {
		a.Diagnostics = append(a.Diagnostics, f.Shown())
		edits = append(edits, protocol.TextEdit{Range: f.Range, NewText: f.Suggestion})
	}
	a.Edit = &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{u: edits}}
	return a
}

// wants says whether a client asks for actions of a kind: it may name the kind or
// one that it is part of.
func wants(only []protocol.CodeActionKind, kind protocol.CodeActionKind) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(k protocol.CodeActionKind) bool {
		return k == "" || k == kind || strings.HasPrefix(string(kind), string(k)+".")
	})
}

// touches says whether two ranges share a place, if only the end of one.
func touches(a, b protocol.Range) bool {
	return compare(a.Start, b.End) <= 0 && compare(b.Start, a.End) <= 0
}

func compare(a, b protocol.Position) int {
	if a.Line != b.Line {
		return int(int64(a.Line) - int64(b.Line))
	}
	return int(int64(a.Character) - int64(b.Character))
}
