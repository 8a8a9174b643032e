package files

import (
	"crypto/sha256"
	"encoding/hex"
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
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
