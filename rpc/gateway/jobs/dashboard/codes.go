package dashboard

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"waza/rpc/access"
)

const (
	// codeTTL is the lifetime of a code.
	codeTTL = 10 * time.Minute
	// mostCodes is the maximum number of valid codes. A further code replaces the oldest.
	mostCodes = 32
)

// codes holds the unused codes. They are in memory only. The zero value is empty.
type codes struct {
	mu   sync.Mutex // guards the field below
	list []code     // oldest first
}

type code struct {
	text string
	ends time.Time
}

// add creates a code of 130 random bits.
func (c *codes) add(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) >= mostCodes {
		c.list = slices.Delete(c.list, 0, len(c.list)-mostCodes+1)
	}
	c.list = append(c.list, code{rand.Text(), now.Add(codeTTL)})
	return c.list[len(c.list)-1].text
}

// take removes a code and reports whether it was valid. It compares the text with all codes in
// constant time.
func (c *codes) take(text string, now time.Time) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = slices.DeleteFunc(c.list, func(known code) bool {
		same := access.SameSecret(text, known.text)
		late := !now.Before(known.ends)
		ok = ok || same && !late
		return same || late
	})
	return ok
}
