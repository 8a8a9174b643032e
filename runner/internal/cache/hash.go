package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// TrialHash returns the hash of a trial, computed from the hash of its task and its number, from
// 1.
func TrialHash(task string, num int) string {
	b := append(append(make([]byte, 0, 64), task...), '/')
	return HashOf(strconv.AppendInt(b, int64(num), 10))
}

// HashOf returns the hash of b in the format of records.
func HashOf(b []byte) string {
	sum := sha256.Sum256(b)
	var digits [32]byte
	hex.Encode(digits[:], sum[:16])
	return string(digits[:])
}
