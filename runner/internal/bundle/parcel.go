package bundle

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"waza/runner/record"
	"waza/runner/workspace"
)

// Parcel contains the contents that the result of a trial references, for the owner of the run.
// It is encoded as JSON with the result. A nil Parcel is empty.
type Parcel struct {
	// Shared are objects that are unchanged files of the bundle.
	Shared []string `json:"shared,omitempty"`
	// Pieces contain all other contents.
	Pieces []piece `json:"pieces,omitempty"`
}

// piece is a compressed list of contents.
type piece struct {
	// Size is the size of the list before compression, in bytes.
	Size int64 `json:"size"`
	// Inline is the piece itself. If it is empty, the piece is the object with the name Object.
	Inline []byte `json:"inline,omitempty"`
	Object string `json:"object,omitempty"`
}

// maxPieces is the maximum number of pieces of a parcel.
const maxPieces = 1000

// errLost is the error for contents that did not arrive, or were altered.
var errLost = errors.New("lost")

// Unload puts the contents that a result references into to, and rewrites the references. It
// omits contents that did not arrive, exceed the limits or do not match their hash, and marks
// them in the snapshot. The error comes from ctx, the store or to. After an error the result can
// be partly rewritten, and must be decoded again.
func (p *Parcel) Unload(ctx context.Context, s Store, t *record.Trial, to workspace.Keeper, l Limits) error {
	if t.Workspace == nil { // the result refers to no files
		return nil
	}
	u := &unloader{ctx: ctx, store: s, to: to, left: l.orDefaults().Bytes, want: map[string]bool{}, have: map[string]record.Blob{}}
	for _, b := range blobsOf(t) {
		u.want[b.Hash] = true
	}
	if len(u.want) == 0 {
		return nil
	}
	if err := u.keep(nil); err != nil { // no parcel contains the empty content
		return err
	}
	if err := u.unload(p); err != nil {
		return fmt.Errorf("files of a trial: %w", err)
	}
	for _, entries := range [][]record.SnapshotEntry{t.Workspace.Entries, t.Workspace.Removed} {
		for i := range entries {
			u.rewrite(&entries[i])
		}
	}
	return nil
}

// Delete removes the objects of the parcel from the store. Call it when the result is recorded.
func (p *Parcel) Delete(ctx context.Context, s Store) error {
	if p == nil {
		return nil
	}
	var first error
	for _, piece := range p.Pieces {
		if len(piece.Inline) > 0 || !isHash(piece.Object) {
			continue
		}
		if err := s.Delete(ctx, piece.Object); err != nil && first == nil {
			first = fmt.Errorf("object %s: %w", piece.Object, err)
		}
	}
	return first
}

// Size returns the number of bytes of contents in the parcel itself.
func (p *Parcel) Size() (bytes int) {
	if p == nil {
		return 0
	}
	for _, piece := range p.Pieces {
		bytes += len(piece.Inline)
	}
	return bytes
}

// unloader unloads one parcel.
type unloader struct {
	ctx   context.Context
	store Store
	to    workspace.Keeper
	left  int64 // bytes that can still be unloaded
	want  map[string]bool
	have  map[string]record.Blob
}

func (u *unloader) unload(p *Parcel) error {
	if p == nil {
		return nil
	}
	for _, full := range p.Shared {
		if err := u.shared(full); err != nil {
			return err
		}
	}
	for _, piece := range p.Pieces[:min(len(p.Pieces), maxPieces)] {
		if err := u.piece(piece); err != nil && !errors.Is(err, errLost) {
			return err
		}
	}
	return nil
}

// shared keeps a file of the bundle.
func (u *unloader) shared(full string) error {
	if !isHash(full) || !u.want[full[:recordHash]] {
		return nil
	}
	if known, ok := u.to.(interface {
		Find(hash string) (record.Blob, bool)
	}); ok {
		if blob, ok := known.Find(full[:recordHash]); ok { // from an earlier trial
			u.have[blob.Hash] = blob
			return nil
		}
	}
	content, err := u.fetch(full, min(maxContent, u.left))
	if err != nil {
		return ignore(err)
	}
	return u.keep(content)
}

// fetch is like [Fetch], but returns [errLost] if a retry would not help.
func (u *unloader) fetch(hash string, limit int64) ([]byte, error) {
	b, err := Fetch(u.ctx, u.store, hash, limit)
	if err != nil && (!isHash(hash) || isLost(err)) {
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	return b, err
}

// ignore returns nil for lost contents, because the snapshot marks them.
func ignore(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// piece keeps the contents of a piece that the result references.
func (u *unloader) piece(p piece) error {
	packed := p.Inline
	if len(packed) == 0 {
		var err error
		// Contents that cannot be compressed become slightly larger.
		if packed, err = u.fetch(p.Object, min(u.left, maxPiece+maxContent)+maxInlined); err != nil {
			return err
		}
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return errLost
	}
	z.Multistream(false)
	r := bufio.NewReader(z)
	for u.ctx.Err() == nil {
		size, err := binary.ReadUvarint(r)
		if err != nil || size > maxContent || int64(size) > u.left {
			return errLost // also at the end
		}
		content := make([]byte, size)
		if _, err := io.ReadFull(r, content); err != nil {
			return errLost
		}
		if err := u.keep(content); err != nil {
			return err
		}
	}
	return context.Cause(u.ctx)
}

// keep keeps a content that the result references.
func (u *unloader) keep(content []byte) error {
	hash := hashOf(content)[:recordHash]
	if _, ok := u.have[hash]; ok || !u.want[hash] {
		return nil
	}
	u.left -= int64(len(content))
	blob, err := u.to.Put(content)
	if err == nil && blob.Hash != hash {
		err = fmt.Errorf("content %s is kept as %s", hash, blob.Hash)
	}
	u.have[hash] = blob
	return err
}

// rewrite updates the reference of an entry to the kept content.
func (u *unloader) rewrite(e *record.SnapshotEntry) {
	if e.Blob != nil {
		if e.Blob = u.kept(e.Blob); e.Blob == nil {
			e.Omitted = "its content was lost on the way from the worker"
			if e.Given != "" {
				e.Given = record.GivenUnknown
			}
		}
	}
	if e.Before != nil {
		if e.Before = u.kept(e.Before); e.Before == nil && e.Given == record.GivenChanged {
			e.Given = record.GivenUnknown
		}
	}
}

func (u *unloader) kept(b *record.Blob) *record.Blob {
	if at, ok := u.have[b.Hash]; ok {
		return &at
	}
	return nil
}
