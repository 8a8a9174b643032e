package language

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/rpc/internal/lsp"
)

// published is the last publication of a file that was sent to the client.
type published struct {
	version  int32
	open     bool // version is set
	findings []lsp.Finding
	raw      []byte // the diagnostics of the notification
}

// publication contains the current findings of a file.
type publication struct {
	path  string
	doc   *lsp.Document // nil when it is not open
	found decode.Diagnostics
}

// filesLocked lists the files whose findings may have changed after a suite was read again:
// files with findings, files that had some, and open files.
func (k *checker) filesLocked(old, now *suiteRead, open lsp.Documents) []publication {
	files := map[string]bool{}
	for _, r := range []*suiteRead{old, now} {
		for file := range r.found {
			files[file] = true
		}
	}
	for path := range open.All() {
		if now.on[path] {
			files[path] = true
		}
	}
	var list []publication
	for _, path := range slices.Sorted(maps.Keys(files)) {
		p := publication{path: path, doc: open.At(path)}
		for _, suite := range slices.Sorted(maps.Keys(k.suites)) {
			for _, d := range k.suites[suite].found[path] {
				if !slices.Contains(p.found, d) { // two suites may share a file
					p.found = append(p.found, d)
				}
			}
		}
		list = append(list, p)
	}
	return list
}

// publish sends the client the findings that changed.
func (k *checker) publish(files []publication) {
	for _, p := range files {
		t := published{findings: p.findings(k.e.capabilities().Encoding), open: p.doc != nil}
		params := &protocol.PublishDiagnosticsParams{URI: uri.File(p.path), Diagnostics: lsp.Diagnostics(t.findings)}
		if p.doc != nil {
			t.version = p.doc.Version
			params.URI, params.Version = p.doc.URI, protocol.NewOptional(p.doc.Version)
		}
		raw, err := protocol.Marshal(params)
		if err != nil {
			k.e.o.Log.Error("diagnostics", "path", p.path, "error", err)
			continue
		}
		if t.raw = raw; k.markPublished(p.path, t) {
			continue
		}
		if k.e.o.Client.Notify(k.e.ctx, "textDocument/publishDiagnostics", json.RawMessage(raw)) != nil {
			return // the client is gone
		}
	}
}

// markPublished reports whether the client was already sent t, and records that it is.
func (k *checker) markPublished(path string, t published) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, was := k.last[path]
	nothing := !t.open && len(t.findings) == 0
	if was && bytes.Equal(before.raw, t.raw) || !was && nothing {
		return true
	}
	if nothing {
		delete(k.last, path)
		return false
	}
	if k.last == nil {
		k.last = map[string]published{}
	}
	k.last[path] = t
	return false
}

// findings returns the findings of the file with their ranges.
func (p publication) findings(e lsp.Encoding) []lsp.Finding {
	switch {
	case p.doc != nil:
		return lsp.Findings(p.found, p.doc.Text)
	case slices.ContainsFunc(p.found, func(d decode.Diagnostic) bool { return d.Line > 0 }):
		return lsp.Findings(p.found, textOf(p.path, e))
	}
	return lsp.Findings(p.found, nil)
}

// textOf reads a file with findings. It returns nil if the file cannot be read.
func textOf(path string, e lsp.Encoding) *lsp.Text {
	data, err := files.Read(path, decode.MaxTextBytes)
	if err != nil {
		return nil
	}
	return lsp.NewText(string(data), e)
}
