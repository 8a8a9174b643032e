package bundle

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"waza/eval/files"
	"waza/runner/record"
	"waza/runner/workspace"
)

const (
	// recordHash is the length of hashes in records, in hexadecimal digits.
	recordHash = 32
	// maxLeft is the maximum size of the files of one trial, all attempts together.
	maxLeft = 1 << 30
	// inMemory is the number of bytes kept in memory before they are written to a file.
	inMemory = 64 << 10
	// maxInlined is the maximum size of contents that are sent together with the result.
	maxInlined = 256 << 10
	// maxPiece is the maximum size of contents that are sent as one object. maxContent is the
	// size of the largest content; snapshots contain no larger ones.
	maxPiece   = 8 << 20
	maxContent = 16 << 20
)

// Kept keeps the files of the trials of a run until they are dropped. It keeps them in memory
// and in unnamed files, which disappear if the process is killed. It is safe for concurrent use.
type Kept struct {
	dir    string
	shared map[string]string // see [Unpacked]

	mu   sync.Mutex // guards left
	left map[*record.Order]*leavings
}

// NewKept returns a Kept with files in a directory, which is created on demand. Contents that
// are files of the bundle are not sent. u can be nil.
func NewKept(dir string, u *Unpacked) *Kept {
	k := &Kept{dir: dir, left: map[*record.Order]*leavings{}}
	if u != nil {
		k.shared = u.shared
	}
	return k
}

// Of returns the keeper for the files of an order's trial. Pass it to [trial.Env.BlobsOf].
func (k *Kept) Of(o *record.Order) workspace.Keeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.left[o]
	if l == nil {
		l = &leavings{dir: k.dir, at: map[string]span{}}
		k.left[o] = l
	}
	return l
}

// Drop drops the files of an order's trial.
func (k *Kept) Drop(o *record.Order) {
	k.mu.Lock()
	l := k.left[o]
	delete(k.left, o)
	k.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// Send returns a parcel of the contents that the result of an order's trial references, or nil
// if nothing was kept. It puts large contents into the store.
func (k *Kept) Send(ctx context.Context, s Store, o *record.Order, t *record.Trial) (*Parcel, error) {
	k.mu.Lock()
	l := k.left[o]
	k.mu.Unlock()
	sizes := map[string]int64{} // by hash
	for _, b := range blobsOf(t) {
		if b.Size > 0 {
			sizes[b.Hash] = b.Size
		}
	}
	if l == nil || len(sizes) == 0 {
		return nil, nil
	}
	p := &Parcel{}
	w := &wrapper{ctx: ctx, store: s, parcel: p}
	// Small contents come first, so that they share a piece.
	for _, hash := range slices.SortedFunc(maps.Keys(sizes),
		func(a, b string) int { return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b)) }) {
		if full := k.shared[hash]; full != "" {
			p.Shared = append(p.Shared, full)
			continue
		}
		content, err := l.get(hash)
		if err == nil {
			err = w.add(content)
		}
		if err != nil {
			return nil, fmt.Errorf("files of the trial: %w", err)
		}
	}
	if err := w.close(); err != nil {
		return nil, fmt.Errorf("files of the trial: %w", err)
	}
	return p, nil
}

// blobsOf returns the references to contents in a result.
func blobsOf(t *record.Trial) []*record.Blob {
	var list []*record.Blob
	if t.Workspace == nil {
		return nil
	}
	for _, entries := range [][]record.SnapshotEntry{t.Workspace.Entries, t.Workspace.Removed} {
		for i := range entries {
			for _, b := range []*record.Blob{entries[i].Blob, entries[i].Before} {
				if b != nil {
					list = append(list, b)
				}
			}
		}
	}
	return list
}

// leavings are the files of one trial.
type leavings struct {
	dir string

	mu     sync.Mutex // guards the fields below
	at     map[string]span
	end    int64
	memory []byte // first part of the contents
	file   *os.File
	closed bool
}

// span is the position of a content.
type span struct{ from, size int64 }

// Put implements [workspace.Keeper]. The result names the content, but no position in a journal.
func (l *leavings) Put(content []byte) (record.Blob, error) {
	blob := record.Blob{Hash: hashOf(content)[:recordHash], Size: int64(len(content))}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.at[blob.Hash]; ok || len(content) == 0 {
		return blob, nil
	}
	switch {
	case l.closed:
		return record.Blob{}, os.ErrClosed
	case l.end+blob.Size > maxLeft:
		return record.Blob{}, fmt.Errorf("%w: the files of a trial must have at most %s", files.ErrTooLarge, files.Size(maxLeft))
	case l.file == nil && l.end+blob.Size <= inMemory:
		l.memory = append(l.memory, content...)
	default:
		if err := l.writeLocked(content); err != nil {
			return record.Blob{}, err
		}
	}
	l.at[blob.Hash] = span{l.end, blob.Size}
	l.end += blob.Size
	return blob, nil
}

// writeLocked appends to the file. The file starts with the part that was in memory.
func (l *leavings) writeLocked(content []byte) error {
	if l.file == nil {
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return err
		}
		f, err := os.CreateTemp(l.dir, "left-")
		if err != nil {
			return err
		}
		if err = os.Remove(f.Name()); err == nil {
			_, err = f.Write(l.memory)
		}
		if err != nil {
			f.Close()
			return err
		}
		l.file, l.memory = f, nil
	}
	_, err := l.file.WriteAt(content, l.end)
	return err
}

func (l *leavings) get(hash string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.at[hash]
	switch {
	case !ok || l.closed:
		return nil, fmt.Errorf("content %s was not kept", hash)
	case l.file == nil:
		return l.memory[at.from : at.from+at.size], nil
	}
	b := make([]byte, at.size)
	_, err := l.file.ReadAt(b, at.from)
	return b, err
}

func (l *leavings) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.memory = true, nil
	if l.file != nil {
		l.file.Close()
	}
}

// wrapper packs contents into the pieces of a parcel.
type wrapper struct {
	ctx    context.Context
	store  Store
	parcel *Parcel

	packed bytes.Buffer
	z      *gzip.Writer
	size   int64 // size of the piece before compression
}

// add adds a content. A piece is a sequence of contents, each preceded by its size.
func (w *wrapper) add(content []byte) error {
	size := binary.AppendUvarint(nil, uint64(len(content)))
	if w.z != nil && w.size+int64(len(size)+len(content)) > maxPiece {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.z == nil {
		w.packed.Reset()
		w.z, _ = gzip.NewWriterLevel(&w.packed, gzip.BestSpeed) // the level is valid
		w.z.Comment = rand.Text()                               // gives each piece a unique name
	}
	for _, b := range [][]byte{size, content} {
		if _, err := w.z.Write(b); err != nil {
			return err
		}
		w.size += int64(len(b))
	}
	return nil
}

// flush completes a piece. Small pieces are sent with the result.
func (w *wrapper) flush() error {
	if err := w.z.Close(); err != nil {
		return err
	}
	p := piece{Size: w.size}
	if w.parcel.Size()+w.packed.Len() <= maxInlined {
		p.Inline = bytes.Clone(w.packed.Bytes())
	} else {
		p.Object = hashOf(w.packed.Bytes())
		if err := w.store.Put(w.ctx, p.Object, bytes.NewReader(w.packed.Bytes())); err != nil {
			return err
		}
	}
	w.parcel.Pieces = append(w.parcel.Pieces, p)
	w.z, w.size = nil, 0
	return nil
}

func (w *wrapper) close() error {
	if w.z == nil {
		return nil
	}
	return w.flush()
}
