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
	r.add([]string{secret})
}

func (r *Redactor) add(secrets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.known)
	for _, secret := range secrets {
		if len(secret) < minSecret || slices.Contains(r.known, secret) {
			continue
		}
		for _, s := range spellings(secret) {
			if !slices.Contains(r.known, s) {
				r.known = append(r.known, s)
			}
		}
	}
	if len(r.known) == before {
		return
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
		once := inJSON(secret, escapeHTML)
		// Tools print JSON, which is a text of JSON then; and some escape slashes.
		out = append(out, once, inJSON(once, escapeHTML), strings.ReplaceAll(once, "/", `\/`))
	}
	return out
}

// inJSON is a text as it stands between the quotes of a JSON string.
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

// Text returns s without the secrets.
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
// Only what stands between quotes is looked at, so JSON stays JSON.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if r.Empty() {
		return raw
	}
	text := string(raw)
	if r.Text(text) == text {
		return raw
	}
	var b strings.Builder
	for text != "" {
		n := strings.IndexByte(text, '"')
		if n < 0 {
			n = len(text)
		}
		b.WriteString(text[:n])
		quoted := text[n : n+quotedLen(text[n:])]
		text = text[n+len(quoted):]
		b.WriteString(r.quoted(quoted))
	}
	return json.RawMessage(b.String())
}

// quoted returns a JSON string without the secrets. It is unquoted for that: in
// "\needle" there is no needle.
func (r *Redactor) quoted(quoted string) string {
	clean := r.Text(quoted)
	var text string
	if clean == quoted || json.Unmarshal([]byte(quoted), &text) != nil {
		return clean
	}
	return `"` + inJSON(r.Text(text), false) + `"`
}

// quotedLen is the length of the JSON string that text begins with, 0 when text is empty.
func quotedLen(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
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
