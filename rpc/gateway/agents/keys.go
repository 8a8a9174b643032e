package agents

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
)

// keys are the keys that clients must show. Only digests are stored, so that comparisons take
// the same time for all keys, and logs cannot contain a key.
type keys struct {
	shared   *[sha256.Size]byte // nil without a shared key
	byClient map[string][sha256.Size]byte
}

func newKeys(shared string, byClient map[string]string) (*keys, error) {
	k := &keys{byClient: map[string][sha256.Size]byte{}}
	if shared != "" {
		digest := sha256.Sum256([]byte(shared))
		k.shared = &digest
	}
	for id, key := range byClient {
		if key == "" {
			return nil, fmt.Errorf("key of client %q must not be empty", id)
		}
		k.byClient[normal(id)] = sha256.Sum256([]byte(key))
	}
	return k, nil
}

// required reports whether clients must show a key.
func (k *keys) required() bool { return k.shared != nil || len(k.byClient) > 0 }

// fits reports whether a client can register with a key: its own key, the key of its browser
// when it is a tab, or the shared key when it has no key of its own.
func (k *keys) fits(clientID, key string) bool {
	if !k.required() {
		return true
	}
	base, _, _ := strings.Cut(clientID, ":")
	want, ok := k.byClient[clientID]
	if !ok {
		want, ok = k.byClient[base]
	}
	if !ok && k.shared != nil {
		want, ok = *k.shared, true
	}
	got := sha256.Sum256([]byte(key))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok && key != ""
}

// normal returns a client id with its UUID in lower case.
func normal(clientID string) string {
	base, tab, isTab := strings.Cut(clientID, ":")
	if base = strings.ToLower(base); isTab {
		return base + ":" + tab
	}
	return base
}
