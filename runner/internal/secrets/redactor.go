// Package secrets keeps keys and passwords out of everything that waza records, shows or sends. A
// [Redactor] learns them, by [Redactor.Learn] from environment variables or by [Redactor.Add], and
// removes them from texts with [Redactor.Text] and from JSON with [Redactor.JSON].
package secrets

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"waza/eval/jsonwalk"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// minSecret is the minimum length of a secret. Removing every "x" from a text would destroy it
// and protect nothing.
const minSecret = 6

// Redactor removes secrets from texts, by their value. It finds them in plain, truncated at the
// end of a text, and encoded in base64, hexadecimal digits or escapes. It also finds them within
// larger encoded texts and in nested encodings. See docs/secrets.md for its limits. The zero
// value has no secrets. It is safe for concurrent use.
type Redactor struct {
	mu    sync.RWMutex // guards the fields below
	known []string
	index *secretIndex // nil if there are no secrets
}

// Add adds a secret. Values of fewer than 6 bytes are ignored.
func (r *Redactor) Add(secret string) {
	r.add([]string{secret})
}

func (r *Redactor) add(secrets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.known)
	for _, secret := range secrets {
		// In a query, spaces are written as plus signs.
		for _, s := range []string{secret, strings.ReplaceAll(secret, " ", "+")} {
			if len(s) >= minSecret && !slices.Contains(r.known, s) {
				r.known = append(r.known, s)
			}
		}
	}
	if len(r.known) > before {
		r.index = newSecretIndex(r.known)
	}
}

func (r *Redactor) current() *secretIndex {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.index
}

// Empty reports whether there are no secrets.
func (r *Redactor) Empty() bool { return r.current() == nil }

// Text returns s without the secrets.
func (r *Redactor) Text(s string) string {
	x := r.current()
	if x == nil {
		return s
	}
	spans := x.find(s, maxDecodings)
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, p := range spans {
		b.WriteString(s[at:p.start])
		b.WriteString(Redacted)
		at = p.end
	}
	b.WriteString(s[at:])
	return b.String()
}

// JSON returns a JSON text without the secrets, or raw itself if it contains none. It changes
// only text between quotes, so the result is valid JSON.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	x := r.current()
	if x == nil {
		return raw
	}
	text := string(raw)
	spans := x.find(text, maxDecodings+1) // a JSON string is an encoding, too
	if len(spans) == 0 {
		return raw
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		n := strings.IndexByte(text[at:], '"')
		if n < 0 {
			n = len(text) - at
		}
		b.WriteString(text[at : at+n])
		at += n
		end := len(text)
		if n := jsonwalk.StringEnd(raw[at:]); n > 0 {
			end = at + n
		}
		for len(spans) > 0 && spans[0].end <= at {
			spans = spans[1:]
		}
		if len(spans) > 0 && spans[0].start < end {
			b.WriteString(r.quoted(text[at:end]))
		} else {
			b.WriteString(text[at:end])
		}
		at = end
	}
	return json.RawMessage(b.String())
}

// quoted returns a JSON string without the secrets. It unquotes the string first: "\needle" does
// not contain needle.
func (r *Redactor) quoted(quoted string) string {
	var text string
	if json.Unmarshal([]byte(quoted), &text) != nil {
		return r.Text(quoted)
	}
	clean := r.Text(text)
	if clean == text {
		return quoted
	}
	return `"` + inJSON(clean, false) + `"`
}

// inJSON returns a text in the form in which it appears between the quotes of a JSON string.
func inJSON(text string, escapeHTML bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	if enc.Encode(text) != nil {
		return text
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}
