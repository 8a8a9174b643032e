package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// TrialHash returns the hash of a trial, computed from the hash of its task and its number, from
// 1.
func TrialHash(task string, num int) string { return HashOf([]byte(task + "/" + strconv.Itoa(num))) }

// HashOf returns the hash of b in the format of records.
func HashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
