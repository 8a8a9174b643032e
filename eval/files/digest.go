package files

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// Digest returns the hash of a regular file's content in the format of records.
func Digest(path string) (string, error) {
	f, err := Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return DigestOf(f)
}

// DigestOf returns the hash of the rest of r in the format of records.
func DigestOf(r io.Reader) (string, error) {
	h := NewHasher()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return h.Digest(), nil
}

// A Hasher computes the hash of the bytes that it gets. [NewHasher] returns one.
type Hasher struct{ h hash.Hash }

// NewHasher returns a Hasher.
func NewHasher() *Hasher { return &Hasher{sha256.New()} }

// Write implements [io.Writer]. It never fails.
func (h *Hasher) Write(b []byte) (int, error) { return h.h.Write(b) }

// Digest returns the hash of the bytes until now, in the format of records.
func (h *Hasher) Digest() string { return hex.EncodeToString(h.h.Sum(nil)[:16]) }
