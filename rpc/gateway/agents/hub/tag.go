package hub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"slices"
	"strings"
	"sync"
)

// tagBytes are enough that nobody guesses an id.
const tagBytes = 12

// tags makes the ids of requests: the evaluation's own and a tag that only a server of
// this state directory can make. An answer that arrives after a restart is known by it,
// without a record of each request.
type tags struct{ macs sync.Pool } // of hash.Hash, keyed with the secret

func (t *tags) init(secret []byte) {
	t.macs.New = func() any { return hmac.New(sha256.New, secret) }
}

// add returns the id of the request for an evaluation.
func (t *tags) add(evaluationID string) string {
	mac := t.macs.Get().(hash.Hash)
	defer t.macs.Put(mac)
	mac.Reset()
	mac.Write([]byte(evaluationID))
	var sum [sha256.Size]byte
	b := append(make([]byte, 0, len(evaluationID)+1+base64.RawURLEncoding.EncodedLen(tagBytes)), evaluationID...)
	return string(base64.RawURLEncoding.AppendEncode(append(b, '.'), mac.Sum(sum[:0])[:tagBytes]))
}

// evaluationID returns the evaluation that a request is for; false means that no server
// made its id.
func (h *Hub) evaluationID(requestID string) (string, bool) {
	dot := strings.LastIndexByte(requestID, '.')
	if dot < 0 {
		return "", false
	}
	id := requestID[:dot]
	return id, h.isAsked(id, requestID) || hmac.Equal([]byte(h.tags.add(id)), []byte(requestID))
}

// isAsked reports whether an agent has yet to answer the request.
func (h *Hub) isAsked(id, requestID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.asked[id], func(s *slot) bool { return s.requestID == requestID })
}

// endings remembers why the newest evaluations that are over ended, up to a limit.
type endings struct {
	why  map[string]string
	ring []string
	next int
}

func (e *endings) init(most int) {
	e.why, e.ring = map[string]string{}, make([]string, most)
}

func (e *endings) add(id, why string) {
	if _, ok := e.why[id]; !ok {
		if old := e.ring[e.next]; old != "" {
			delete(e.why, old)
		}
		e.ring[e.next] = id
		e.next = (e.next + 1) % len(e.ring)
	}
	e.why[id] = why
}

// remove forgets an id. Its place in the ring is taken by a later one in its time.
func (e *endings) remove(id string) { delete(e.why, id) }
