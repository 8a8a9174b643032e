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

// tagBytes is the size of a tag. It is large enough that ids cannot be guessed.
const tagBytes = 12

// tags creates the ids of requests. An id consists of the evaluation's own id and a tag that
// only a server of this state directory can create. With it, the server recognizes an answer
// that arrives after a restart, without a record of each request.
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

// evaluationID returns the evaluation of a request; false means that no server created the id.
func (h *Hub) evaluationID(requestID string) (string, bool) {
	dot := strings.LastIndexByte(requestID, '.')
	if dot < 0 {
		return "", false
	}
	id := requestID[:dot]
	return id, h.isAsked(id, requestID) || hmac.Equal([]byte(h.tags.add(id)), []byte(requestID))
}

// isAsked reports whether an agent has not answered the request yet.
func (h *Hub) isAsked(id, requestID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.asked[id], func(s *slot) bool { return s.requestID == requestID })
}

// endings records why the most recent evaluations ended, up to a limit.
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

// remove removes an id. A later id reuses its place in the ring.
func (e *endings) remove(id string) { delete(e.why, id) }
