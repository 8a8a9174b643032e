package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/gzip"

	"waza/runner/record"
)

// blobFile contains the contents one after the other, each compressed separately.
const blobFile = "files.gz"

// maxKnownBlobs limits the remembered hashes, which avoid storing a content twice: a few
// megabytes of memory.
const maxKnownBlobs = 100_000

// Blobs stores contents beside a journal, such as files from workspaces of trials, each once.
// The first content creates the file. Blobs is safe for concurrent use and closed by its Writer.
type Blobs struct {
	dir  string
	disk disk

	mu    sync.Mutex // guards the fields below
	file  *os.File
	end   int64
	known map[string]record.Blob
	dirty bool // data was written since the last flush
	made  bool // the file was created since the last flush
}

// compressor compresses one content after the other into packed.
type compressor struct {
	gzip   *gzip.Writer
	packed bytes.Buffer
}

// compressors are reused, because each takes hundreds of kilobytes.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return &compressor{gzip: z}
}}

// maxPacked limits the compressed content that a compressor keeps the memory of.
const maxPacked = 4 << 20

// Put stores a content. A returned Blob survives a crash of the process. An error or a crash can
// leave bytes that belong to no Blob.
func (b *Blobs) Put(content []byte) (record.Blob, error) {
	if len(content) == 0 {
		return record.Blob{Hash: hashOf(nil)}, nil
	}
	blob := record.Blob{Hash: hashOf(content), Size: int64(len(content))}
	if known, ok := b.Find(blob.Hash); ok {
		return known, nil
	}
	z := compressors.Get().(*compressor)
	defer func() {
		if z.packed.Cap() <= maxPacked {
			compressors.Put(z)
		}
	}()
	z.packed.Reset()
	z.gzip.Reset(&z.packed)
	if _, err := z.gzip.Write(content); err != nil {
		return record.Blob{}, err
	}
	if err := z.gzip.Close(); err != nil {
		return record.Blob{}, err
	}
	return b.write(blob, z.packed.Bytes())
}

// Find returns the Blob of a stored content by its hash.
func (b *Blobs) Find(hash string) (record.Blob, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	blob, ok := b.known[hash]
	return blob, ok
}

func (b *Blobs) write(blob record.Blob, packed []byte) (record.Blob, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.known[blob.Hash]; ok { // another goroutine has just stored it
		return known, nil
	}
	if b.file == nil {
		if err := b.openLocked(); err != nil {
			return record.Blob{}, err
		}
	}
	if _, err := b.file.WriteAt(packed, b.end); err != nil {
		return record.Blob{}, err
	}
	b.dirty = true
	blob.At, blob.Length = b.end, int64(len(packed))
	b.end += blob.Length
	if len(b.known) < maxKnownBlobs {
		b.known[blob.Hash] = blob
	}
	return blob, nil
}

func (b *Blobs) openLocked() error {
	f, err := os.OpenFile(filepath.Join(b.dir, blobFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	b.file, b.end, b.made = f, info.Size(), true
	b.learnLocked()
	return nil
}

func (b *Blobs) learnLocked() {
	if b.known == nil {
		b.known = map[string]record.Blob{}
	}
}

// Register records a Blob that is already stored, so that Put need not store it again.
func (b *Blobs) Register(blob record.Blob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learnLocked()
	if len(b.known) < maxKnownBlobs {
		b.known[blob.Hash] = blob
	}
}

// flush syncs the stored contents to disk. Concurrent calls of Put do not wait for it.
func (b *Blobs) flush() error {
	b.mu.Lock()
	f, dirty, made := b.file, b.dirty, b.made
	b.dirty, b.made = false, false
	b.mu.Unlock()
	if !dirty {
		return nil
	}
	if err := b.disk.sync(f); err != nil {
		return fmt.Errorf("sync %s: %w", blobFile, err)
	}
	if made {
		return b.disk.syncDir(b.dir)
	}
	return nil
}

func (b *Blobs) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	f := b.file
	b.file = nil
	return f.Close()
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// A BlobReader reads the stored contents of a run. It is safe for concurrent use.
type BlobReader struct{ file *os.File }

// Blobs opens the stored contents of the run. The reader of a run without contents is empty. The
// caller closes it.
func (r *Run) Blobs() (*BlobReader, error) {
	f, err := os.Open(filepath.Join(r.dir, blobFile))
	if err = r.gone(err); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &BlobReader{file: f}, nil
}

// Empty reports whether the run had no stored contents when the reader was opened.
func (b *BlobReader) Empty() bool { return b.file == nil }

// Get returns a content. The error reports a missing or changed content.
func (b *BlobReader) Get(blob record.Blob) ([]byte, error) {
	if blob.Length == 0 && blob.Hash == hashOf(nil) {
		return []byte{}, nil
	}
	content, err := b.read(blob, blob.Size+1)
	if err != nil {
		return nil, err
	}
	if hashOf(content) != blob.Hash {
		return nil, fmt.Errorf("%s: content %s is damaged: hash mismatch", blobFile, blob.Hash)
	}
	return content, nil
}

// Head returns the start of a content, at most that many bytes. It finds damage only there, and not
// a content that was replaced by another one.
func (b *BlobReader) Head(blob record.Blob, most int64) ([]byte, error) {
	if blob.Size <= most {
		return b.Get(blob)
	}
	return b.read(blob, most)
}

// maxReserved limits the memory that is reserved because a reference claims a size.
const maxReserved = 64 << 20

// read decompresses the start of a content.
func (b *BlobReader) read(blob record.Blob, most int64) ([]byte, error) {
	if b.file == nil {
		return nil, fmt.Errorf("%s: %w", blobFile, os.ErrNotExist)
	}
	z := decompressors.Get().(*gzip.Reader)
	defer decompressors.Put(z)
	content := bytes.NewBuffer(make([]byte, 0, max(0, min(most, maxReserved))+bytes.MinRead))
	err := z.Reset(bufio.NewReaderSize(io.NewSectionReader(b.file, blob.At, blob.Length), 32<<10))
	if err == nil {
		z.Multistream(false)
		_, err = content.ReadFrom(io.LimitReader(z, most))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: content %s is damaged: %w", blobFile, blob.Hash, err)
	}
	return content.Bytes(), nil
}

// decompressors are reused, like compressors.
var decompressors = sync.Pool{New: func() any { return new(gzip.Reader) }}

// contentChecks remembers the results of [Run.CheckContents], because clients ask for the damage
// of a run again and again. It is safe for concurrent use.
type contentChecks struct {
	mu   sync.Mutex
	list map[string]contentCheck // by run id
}

// maxContentChecks limits the remembered results.
const maxContentChecks = 10_000

type contentCheck struct {
	stamp string
	err   error
}

func (c *contentChecks) find(id, stamp string) (contentCheck, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.list[id]
	return found, ok && stamp != "" && found.stamp == stamp
}

func (c *contentChecks) put(id string, check contentCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil || len(c.list) >= maxContentChecks {
		c.list = map[string]contentCheck{}
	}
	c.list[id] = check
}

// CheckContents reads the stored contents to which the lines of the run refer, unless the files
// of the run are the same as in the last call. It returns a [*FileError] if a content is missing
// or changed.
func (r *Run) CheckContents(refs map[record.Blob]bool) error {
	if len(refs) == 0 {
		return nil
	}
	stamp, _ := r.Stamp()
	if known, ok := r.store.checks.find(r.ID(), stamp); ok {
		return known.err
	}
	blobs, err := r.Blobs()
	if err != nil {
		return err
	}
	defer blobs.Close()
	lost := 0
	for blob := range refs {
		if _, err := blobs.Get(blob); err != nil {
			lost++
		}
	}
	if lost > 0 {
		err = &FileError{blobFile, fmt.Errorf("%d of %d contents are missing or changed", lost, len(refs))}
	}
	r.store.checks.put(r.ID(), contentCheck{stamp, err})
	return err
}

// Close closes the file.
func (b *BlobReader) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}
