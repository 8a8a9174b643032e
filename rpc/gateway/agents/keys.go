package agents

import (
	"cmp"
	"fmt"
	"strings"

	"waza/rpc/access"
)

// keys are the keys that clients must show.
type keys struct {
	shared   string // empty without a shared key
	byClient map[string]string
}

func newKeys(shared string, byClient map[string]string) (*keys, error) {
	k := &keys{shared: shared, byClient: map[string]string{}}
	for id, key := range byClient {
		if key == "" {
			return nil, fmt.Errorf("key of client %q must not be empty", id)
		}
		k.byClient[normal(id)] = key
	}
	return k, nil
}

// required reports whether clients must show a key.
func (k *keys) required() bool { return k.shared != "" || len(k.byClient) > 0 }

// fits reports whether a client can register with a key: its own key, the key of its browser
// when it is a tab, or the shared key when it has no key of its own.
func (k *keys) fits(clientID, key string) bool {
	if !k.required() {
		return true
	}
	base, _, _ := strings.Cut(clientID, ":")
	want := cmp.Or(k.byClient[clientID], k.byClient[base], k.shared)
	return access.SameSecret(key, want) && key != ""
}

// normal returns a client id with its UUID in lower case.
func normal(clientID string) string {
	base, tab, isTab := strings.Cut(clientID, ":")
	if base = strings.ToLower(base); isTab {
		return base + ":" + tab
	}
	return base
}
