package lsp

import (
	"fmt"
	"slices"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// fixAll is the kind of the action that applies all suggestions of a document. Editors can be
// configured to run it whenever a file is saved.
const fixAll = protocol.CodeActionKindSourceFixAll + ".waza"

// Actions returns the code actions for findings of a document: one for each finding with a
// suggestion that touches the range, and one that applies all suggestions. They apply to the
// document's current version. only limits the kinds of actions; an empty list allows all.
func (doc *Document) Actions(list []Finding, at protocol.Range, only []protocol.CodeActionKind) []protocol.CommandOrCodeAction {
	fixes := fixable(list)
	actions := []protocol.CommandOrCodeAction{}
	if allowsKind(only, protocol.CodeActionKindQuickFix) {
		for _, f := range fixes {
			if touches(f.Range, at) {
				actions = append(actions, quickFix(doc.URI, f))
			}
		}
	}
	if allowsKind(only, fixAll) && len(fixes) > 0 {
		actions = append(actions, action(doc.URI, "Apply all suggestions of waza", fixAll, fixes))
	}
	return actions
}

// fixable returns the findings with a suggestion and a range, without overlaps, in the order of
// the text.
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

// quickFix returns the action for one suggestion. It is preferred, because it is the only one
// for its range.
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

// allowsKind reports whether a client asks for actions of a kind: by the kind itself or by one that
// includes it.
func allowsKind(only []protocol.CodeActionKind, kind protocol.CodeActionKind) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(k protocol.CodeActionKind) bool {
		return k == "" || k == kind || strings.HasPrefix(string(kind), string(k)+".")
	})
}

// touches reports whether two ranges share a position, which can be the end of one.
func touches(a, b protocol.Range) bool {
	return compare(a.Start, b.End) <= 0 && compare(b.Start, a.End) <= 0
}

func compare(a, b protocol.Position) int {
	if a.Line != b.Line {
		return int(int64(a.Line) - int64(b.Line))
	}
	return int(int64(a.Character) - int64(b.Character))
}
