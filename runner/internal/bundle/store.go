// Package bundle moves files between the owner of a run and its workers by content. The owner
// calls [Pack] before the run and [Parcel.Unload] for each result. A worker calls [Unpack], and
// keeps the files of trials in a [Kept].
package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"waza/eval/files"
	"waza/eval/text"
)

// Store keeps objects by name. The name is the SHA-256 of the content in hexadecimal or, for
// packs of git, "git-" and a commit id. It is safe for concurrent use.
type Store interface {
	// Has reports whether an object exists and will remain for some time.
	Has(ctx context.Context, name string) (bool, error)
	// Put stores an object and replaces one with the same name. If r returns an error, Put
	// stores nothing and returns the error.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get opens an object, or returns [ErrMissing]. A different process can have altered the
	// content: [Fetch] checks it. The caller closes the reader, and must not cancel ctx before.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete removes an object if it exists.
	Delete(ctx context.Context, name string) error
}

// ErrMissing is the error for an object that is not in the store.
var ErrMissing = errors.New("no such object in the file store of the fleet")

// errAltered is the error for an object whose content does not match its name.
var errAltered = errors.New("content does not match the hash")

// Keep stores a content under its hash, unless it is already there.
func Keep(ctx context.Context, s Store, content []byte) (hash string, err error) {
	hash = hashOf(content)
	if has, err := s.Has(ctx, hash); err != nil || has {
		return hash, err
	}
	return hash, s.Put(ctx, hash, bytes.NewReader(content))
}

// Fetch returns the content with a hash, of at most limit bytes. It returns an error if the
// content does not match the hash.
func Fetch(ctx context.Context, s Store, hash string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if _, err := fetchTo(ctx, s, hash, &b, limit); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// fetchTo writes the content with a hash to w and returns its size. After an error, the written
// data is invalid.
func fetchTo(ctx context.Context, s Store, hash string, w io.Writer, limit int64) (n int64, err error) {
	if !isHash(hash) {
		return 0, fmt.Errorf("hash must be SHA-256 in hexadecimal, got %q", text.Clip(hash, 80))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := s.Get(ctx, hash)
	if err != nil {
		return 0, fmt.Errorf("object %s: %w", hash, err)
	}
	defer r.Close()
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(w, h), io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return n, fmt.Errorf("object %s: %w", hash, err)
	case n > limit:
		return n, fmt.Errorf("object %s: %w: the limit is %s", hash, files.ErrTooLarge, files.Size(limit))
	case hex.EncodeToString(h.Sum(nil)) != hash:
		return n, fmt.Errorf("object %s: %w", hash, errAltered)
	}
	return n, nil
}

// isLost reports whether err is an error of [Fetch] that a retry does not fix.
func isLost(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, errAltered) || errors.Is(err, files.ErrTooLarge)
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

var hashPattern = text.Pattern(`^[0-9a-f]{64}$`)

func isHash(s string) bool { return hashPattern().MatchString(s) }

var packPattern = text.Pattern(`^git-(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// checked is a reader that fails at the end if the content does not match a hash.
type checked struct {
	r    io.Reader
	h    hash.Hash
	want string
}

// sum returns the hash of the data read until now.
func (c *checked) sum() string { return hex.EncodeToString(c.h.Sum(nil)) }

func newChecked(r io.Reader, want string) *checked { return &checked{r, sha256.New(), want} }

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.h.Write(b[:n])
	if err == io.EOF && hex.EncodeToString(c.h.Sum(nil)) != c.want {
		err = errAltered
	}
	return n, err
}

// reading is a reader that fails when a context ends.
type reading struct {
	ctx context.Context
	r   io.Reader
}

func (r reading) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}
