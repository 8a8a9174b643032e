package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Bounds on what is taken for a secret because of its name only.
const (
	minNamed = 8  // bytes
	minWord  = 12 // bytes, of letters only
	minLine  = 16 // bytes of a line of a secret that has several
)

// secretName recognises variables and headers that hold keys and passwords:
// OPENAI_API_KEY, GH_TOKEN, DB_PASSWORD, X-Api-Key, but not TOKENIZER or KEYBOARD.
var secretName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:[a-z]*(?:secret|passw(?:or)?d|passphrase)|(?:api|access|private|auth|account|shared|signing|encryption)?key|(?:[a-z]*)tokens?|pat|pwd|credentials?|authorization|cookie)(?:$|[^a-z])`)

var word = regexp.MustCompile(`^[A-Za-z]+$`)

// Learn makes known the values of those of the variables, written NAME=VALUE,
// whose names tell of a secret. Values that are short, a single plain word, or
// the path of a file are none: texts would be destroyed and nothing protected.
func (r *Redactor) Learn(env []string) {
	var found []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if !secretName.MatchString(name) {
			continue
		}
		value = strings.TrimSpace(value)
		if isSecret(value) {
			found = append(found, value)
		}
		// Bearer KEY
		if scheme, rest, ok := strings.Cut(value, " "); ok && word.MatchString(scheme) && isSecret(rest) {
			found = append(found, rest)
		}
		// A private key may be shown in part.
		if lines := strings.Split(value, "\n"); len(lines) > 1 {
			for _, line := range lines {
				if len(line) >= minLine && !strings.HasPrefix(line, "-----") {
					found = append(found, line)
				}
			}
		}
	}
	if len(found) > 0 {
		r.add(found)
	}
}

func isSecret(value string) bool {
	switch {
	case len(value) < minNamed, len(value) < minWord && word.MatchString(value):
		return false
	case strings.HasPrefix(value, "~/"):
		return false
	case filepath.IsAbs(value):
		_, err := os.Stat(value)
		return err != nil
	}
	return true
}
