package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// minSecret is the length below which a value is no secret: to take every "x"
// out of a text would destroy it and protect nothing.
const minSecret = 6

// Redactor takes secrets out of texts, by their value. The zero value knows
// none. It is safe for concurrent use.
type Redactor struct {
	mu       sync.RWMutex // guards the fields below
	known    []string
	replacer *strings.Replacer
}

// Add makes a secret known, in the spellings in which it may turn up: as it is,
// escaped in JSON and in URLs, and in base64. Values of fewer than 6 bytes are
// left alone.
func (r *Redactor) Add(secret string) {
	if len(secret) < minSecret {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range spellings(secret) {
		if !slices.Contains(r.known, s) {
			r.known = append(r.known, s)
		}
	}
	// The longest first: one secret may be the beginning of another.
	slices.SortFunc(r.known, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range r.known {
		pairs = append(pairs, s, Redacted)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

func spellings(secret string) []string {
	out := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret))}
	for _, escapeHTML := range []bool{true, false} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(escapeHTML)
		if enc.Encode(secret) == nil {
			quoted := strings.TrimSuffix(b.String(), "\n")
			out = append(out, quoted[1:len(quoted)-1])
		}
	}
	return out
}

// Text returns s without the secrets. Of a text that is JSON it makes JSON.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	r.mu.RLock()
	replacer := r.replacer
	r.mu.RUnlock()
	if replacer == nil {
		return s
	}
	return replacer.Replace(s)
}

// JSON returns a JSON text without the secrets; raw itself when it holds none.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if r.Empty() {
		return raw
	}
	if text := r.Text(string(raw)); text != string(raw) {
		return json.RawMessage(text)
	}
	return raw
}

// Empty reports whether no secret is known.
func (r *Redactor) Empty() bool {
	if r == nil {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.replacer == nil
}

// error takes the secrets out of what an error says.
func (r *Redactor) error(err error) error {
	var e *Error
	if errors.As(err, &e) && r.Text(e.Error()) != e.Error() {
		clean := *e
		clean.Message, clean.Where, clean.cause = r.Text(e.Message), r.Text(e.Where), nil
		return &clean
	}
	return err
}
