package lsp

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/eval/decode"
)

// A Document is a file that is open in an editor. It is immutable: an edit makes a new Document.
type Document struct {
	*Text
	URI     uri.URI // as the client writes it
	Path    string  // absolute
	Version int32
	bytes   []byte // bytes of Text; shared by all readers
	// the text is unknown because it is too long
	lost bool
}

// Limits for the open documents of a client.
const (
	maxDocuments = 1000
	maxOpenBytes = 256 << 20
	// maxEdited limits the bytes that the changes of one notification process: each change
	// processes the whole text.
	maxEdited = 512 << 20
)

var (
	errNotOpen  = errors.New("the document is not open")
	errOpen     = errors.New("the document is already open")
	errNotFile  = errors.New("only documents with a file: URI are supported")
	errTooLarge = fmt.Errorf("the document is longer than the limit of %d MiB", decode.MaxTextBytes>>20)
	errTooMuch  = errors.New("too many changes at once for such a long document")
	errTooMany  = fmt.Errorf("more than %d documents, or %d MiB, are open", maxDocuments, maxOpenBytes>>20)
)

// Documents is the set of documents that a client has open. It is immutable, so its holder
// always sees the same texts. The zero value is empty.
type Documents struct {
	byPath map[string]*Document
	bytes  int
}

// PathOf returns the absolute path of a document's URI. It returns false for URIs that are not
// files.
func PathOf(u uri.URI) (string, bool) {
	if !strings.HasPrefix(strings.ToLower(string(u)), "file:") {
		return "", false
	}
	path := u.FsPath()
	if host := u.Authority(); host != "" && !strings.EqualFold(host, "localhost") {
		return "", false
	}
	if path == "" || strings.ContainsRune(path, 0) || !filepath.IsAbs(path) {
		return "", false
	}
	return filepath.Clean(path), true
}

// Get returns the document with a URI, or nil if it is not open or too large.
func (ds Documents) Get(u uri.URI) *Document {
	path, ok := PathOf(u)
	if !ok {
		return nil
	}
	return ds.At(path)
}

// At returns the document at an absolute path, or nil if it is not open or too large.
func (ds Documents) At(path string) *Document {
	d := ds.byPath[path]
	if d == nil || d.lost {
		return nil
	}
	return d
}

// Overlay returns the texts for eval.Options. The caller must not change them.
func (ds Documents) Overlay() map[string][]byte {
	overlay := make(map[string][]byte, len(ds.byPath))
	for path, d := range ds.byPath {
		if !d.lost {
			overlay[path] = d.bytes
		}
	}
	return overlay
}

// All returns all documents by path. The caller must not change the map.
func (ds Documents) All() map[string]*Document { return ds.byPath }

// Open adds a document, or replaces its text if it is already open. The error, which is meant
// for the log, explains why the document's text is not kept.
func (ds Documents) Open(item protocol.TextDocumentItem, e Encoding) (Documents, string, error) {
	path, ok := PathOf(item.URI)
	if !ok {
		return ds, "", errNotFile
	}
	if ds.byPath[path] == nil && len(ds.byPath) >= maxDocuments {
		return ds, path, errTooMany
	}
	var err error
	if ds.byPath[path] != nil {
		err = errOpen
	}
	d := &Document{URI: item.URI, Path: path, Version: item.Version, Text: NewText(item.Text, e)}
	more, tooLarge := ds.with(d)
	return more, path, errors.Join(err, tooLarge)
}

// Change applies the changes of a notification in order.
func (ds Documents) Change(p *protocol.DidChangeTextDocumentParams) (Documents, string, error) {
	path, _ := PathOf(p.TextDocument.URI)
	old := ds.byPath[path]
	if old == nil {
		return ds, path, errNotOpen
	}
	text, lost, edited := old.Text, old.lost, 0
	for _, change := range p.ContentChanges {
		switch change := change.(type) {
		case *protocol.TextDocumentContentChangeWholeDocument:
			text, lost = NewText(change.Text, old.encoding), false
		case *protocol.TextDocumentContentChangePartial:
			if !lost {
				text = text.Edit(change.Range, change.Text)
			}
		}
		edited += len(text.content)
		if lost = lost || edited > maxEdited || len(text.content) > decode.MaxTextBytes; lost {
			text = NewText("", old.encoding)
		}
	}
	d := &Document{URI: old.URI, Path: path, Version: p.TextDocument.Version, Text: text, lost: lost}
	changed, err := ds.with(d)
	if edited > maxEdited {
		err = errTooMuch
	}
	return changed, path, err
}

// Close removes a document.
func (ds Documents) Close(u uri.URI) (Documents, string, error) {
	path, _ := PathOf(u)
	old := ds.byPath[path]
	if old == nil {
		return ds, path, errNotOpen
	}
	rest := maps.Clone(ds.byPath)
	delete(rest, path)
	return Documents{rest, ds.bytes - len(old.bytes)}, path, nil
}

// with returns the documents with d added. If there is no room for its text, that is lost.
func (ds Documents) with(d *Document) (Documents, error) {
	bytes := ds.bytes
	if old := ds.byPath[d.Path]; old != nil {
		bytes -= len(old.bytes)
	}
	var err error
	switch size := len(d.content); {
	case d.lost || size > decode.MaxTextBytes:
		err = errTooLarge
	case bytes+size > maxOpenBytes:
		err = errTooMany
	}
	if d.lost = err != nil; d.lost {
		d.Text = NewText("", d.encoding)
	}
	d.bytes = []byte(d.content)
	all := maps.Clone(ds.byPath)
	if all == nil {
		all = map[string]*Document{}
	}
	all[d.Path] = d
	return Documents{all, bytes + len(d.bytes)}, err
}
