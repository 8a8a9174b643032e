package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

func TrialHash(task string, num int) string { return HashOf([]byte(task + "/" + strconv.Itoa(num))) }

func HashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
