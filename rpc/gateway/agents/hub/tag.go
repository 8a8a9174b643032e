package hub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// tagBytes are enough that nobody guesses an id.
const tagBytes = 12

// requestID is the id of the request for an evaluation: the evaluation's own and a tag
// that only a server of this state directory can make. An answer that arrives after a
// restart is known by it, without a record of each request.
func (h *Hub) requestID(evaluationID string) string {
	mac := hmac.New(sha256.New, h.secret)
	mac.Write([]byte(evaluationID))
	return evaluationID + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:tagBytes])
}

// evaluationID undoes requestID; false means that no server made the id.
func (h *Hub) evaluationID(requestID string) (string, bool) {
	dot := strings.LastIndexByte(requestID, '.')
	if dot < 0 {
		return "", false
	}
	id := requestID[:dot]
	return id, hmac.Equal([]byte(h.requestID(id)), []byte(requestID))
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
