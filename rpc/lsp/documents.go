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

// A Document is a file as an editor has it open. It never changes: an edit makes
// another one.
type Document struct {
	URI      uri.URI // as the client writes it
	Path     string  // absolute
	Version  int32
	Encoding Encoding
	Text     *Text
	bytes    []byte // of Text; shared by all who read
	// lost says that the text is not known any more, because it is too long.
	lost bool
}

// Offset gives the byte that a position means.
func (d *Document) Offset(p protocol.Position) int { return d.Text.Offset(p, d.Encoding) }

// Position gives a byte's position.
func (d *Document) Position(offset int) protocol.Position { return d.Text.Position(offset, d.Encoding) }

// Range gives the range from one byte to another.
func (d *Document) Range(begin, end int) protocol.Range { return d.Text.Range(begin, end, d.Encoding) }

// The bounds of what a client can have open.
const (
	maxDocuments = 1000
	maxOpenBytes = 256 << 20
	// maxEdited is how many bytes of text the changes of one notification may go
	// through: each goes through the whole text.
	maxEdited = 512 << 20
)

var (
	errNotOpen  = errors.New("the document is not open")
	errOpen     = errors.New("the document is open already")
	errNotFile  = errors.New("only documents of the scheme file are read")
	errTooLarge = fmt.Errorf("the document is longer than the %d MiB that are read of a file", decode.MaxTextBytes>>20)
	errTooMuch  = errors.New("there are too many changes at once to such a long document")
	errTooMany  = fmt.Errorf("more than %d documents, or %d MiB, are open", maxDocuments, maxOpenBytes>>20)
)

// Documents are all that a client has open at one time. A value never changes,
// so whoever holds one sees the same texts throughout. The zero value is none.
type Documents struct {
	byPath map[string]*Document
	bytes  int
}

// PathOf gives the absolute path that a URI of a document means. It is false for
// those that are no file.
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

// Get gives the document of a URI, or nil when it is not open, or too large.
func (ds Documents) Get(u uri.URI) *Document {
	path, ok := PathOf(u)
	if !ok {
		return nil
	}
	return ds.At(path)
}

// At gives the document at an absolute path, or nil when it is not open, or too large.
func (ds Documents) At(path string) *Document {
	d := ds.byPath[path]
	if d == nil || d.lost {
		return nil
	}
	return d
}

// Overlay gives the texts as eval.Options has them. They are not to be changed.
func (ds Documents) Overlay() map[string][]byte {
	overlay := make(map[string][]byte, len(ds.byPath))
	for path, d := range ds.byPath {
		if !d.lost {
			overlay[path] = d.bytes
		}
	}
	return overlay
}

// All gives every document by its path; not to be changed.
func (ds Documents) All() map[string]*Document { return ds.byPath }

// Open adds a document. Where it is open already, the text is what is now said.
// An error says why it is not followed, in words for the log.
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
	d := &Document{URI: item.URI, Path: path, Version: item.Version, Encoding: e}
	more, tooLarge := ds.with(d, NewText(item.Text))
	return more, path, errors.Join(err, tooLarge)
}

// Change applies the changes of a notification, one after the other.
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
			text, lost = NewText(change.Text), false
		case *protocol.TextDocumentContentChangePartial:
			if !lost {
				text = text.Edit(change.Range, old.Encoding, change.Text)
			}
		}
		edited += len(text.content)
		if lost = lost || edited > maxEdited || len(text.content) > decode.MaxTextBytes; lost {
			text = NewText("")
		}
	}
	d := &Document{URI: old.URI, Path: path, Version: p.TextDocument.Version, Encoding: old.Encoding, lost: lost}
	changed, err := ds.with(d, text)
	if edited > maxEdited {
		err = errTooMuch
	}
	return changed, path, err
}

// Close takes a document away.
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

// with gives the documents with d, whose text is set or, when there is no room
// for it, lost.
func (ds Documents) with(d *Document, text *Text) (Documents, error) {
	bytes := ds.bytes
	if old := ds.byPath[d.Path]; old != nil {
		bytes -= len(old.bytes)
	}
	var err error
	switch size := len(text.content); {
	case d.lost || size > decode.MaxTextBytes:
		err = errTooLarge
	case bytes+size > maxOpenBytes:
		err = errTooMany
	}
	if d.lost = err != nil; d.lost {
		text = NewText("")
	}
	d.Text, d.bytes = text, []byte(text.content)
	all := maps.Clone(ds.byPath)
	if all == nil {
		all = map[string]*Document{}
	}
	all[d.Path] = d
	return Documents{all, bytes + len(d.bytes)}, err
}
