package provider

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"waza/eval/text"
)

// Bounds on what is taken for a secret because of its name.
const (
	minNamed  = 8  // bytes
	minWord   = 12 // bytes, of letters only
	minNumber = 16 // bytes, of digits only, unless the variable is a password
	minLine   = 16 // bytes of a line of a secret that has several
)

var (
	word    = text.Pattern(`^[A-Za-z]+$`)
	numeric = text.Pattern(`^[0-9.,_ -]+$`)
	// placeholder recognises what documents and examples write in place of a secret.
	placeholder = text.Pattern(`(?i)^(<.*>|\$\{.*\}|\$[a-z_]+|\{\{.*\}\}|\[.*\]|your[-_ ].*|(my|some|the|an?)[-_ ]?(api[-_ ]?)?(key|token|secret|password)|change[-_ ]?me|replace[-_ ]?me|placeholder|not[-_ ]?set|undefined|example.*|dummy.*|redacted)$`)
	// userinfo is the password in a URL, at the beginning or within a text.
	userinfo = text.Pattern(`[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s:@"']*):([^/?#\s"']+)@`)
	// header is one that authorises.
	header = text.Pattern(`(?i)authorization:\s*(?:[a-z]+\s+)?([^\s"']+)`)
	// assignment is one of those of connection strings: Server=db;Password=x.
	assignment = text.Pattern(`(?i)(?:^|[;\s&?,])([a-z][a-z_ -]*)=("[^"]*"|'[^']*'|[^;\s&,#"']+)`)
)

// Learn makes known the secrets in environment variables, written NAME=VALUE:
// values of variables whose names say so, passwords in URLs and connection strings,
// and values that look like keys whatever their variable. Values that are short, a
// single plain word, a placeholder, or the path of a file are none: texts would be
// destroyed and nothing protected.
func (r *Redactor) Learn(env []string) {
	var found []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		found = append(found, secretsIn(name, strings.TrimSpace(value))...)
	}
	if len(found) > 0 {
		r.add(found)
	}
}

func secretsIn(name, value string) (found []string) {
	if len(value) < minSecret || strings.HasPrefix(name, "WAZA_MARK_") {
		return nil
	}
	found = append(within(value), byName(nameOf(name), value)...)
	if isLikeKey(name, value) {
		found = append(found, byName(nameSecret, value)...)
	}
	return found
}

// within returns the passwords in URLs and connection strings.
func within(value string) (found []string) {
	for _, m := range userinfo().FindAllStringSubmatch(value, -1) {
		found = append(found, decodings(m[2])...)
	}
	for _, m := range header().FindAllStringSubmatch(value, -1) {
		found = append(found, m[1])
	}
	if strings.Contains(value, "=") {
		for _, m := range assignment().FindAllStringSubmatch(value, -1) {
			if plain := strings.Trim(m[2], `"'`); nameOf(m[1]) != nameOrdinary && isSecret(nameOf(m[1]), plain) {
				found = append(found, decodings(plain)...)
			}
		}
	}
	return slices.DeleteFunc(found, func(s string) bool { return len(s) < minSecret || placeholder().MatchString(s) || isCommon(s) })
}

// decodings are a part of a URL as it is written and as it is meant.
func decodings(part string) []string {
	if plain, err := url.PathUnescape(part); err == nil && plain != part {
		return []string{part, plain}
	}
	return []string{part}
}

// byName returns what is secret in the value of a variable of that kind.
func byName(kind nameKind, value string) (found []string) {
	if kind == nameOrdinary {
		return nil
	}
	if strings.Contains(value, "://") && !strings.ContainsAny(value, " \n") {
		return inURL(kind, value)
	}
	if isSecret(kind, value) {
		found = append(found, value)
	}
	// Bearer KEY
	if scheme, rest, ok := strings.Cut(value, " "); ok && word().MatchString(scheme) && isSecret(kind, rest) {
		found = append(found, rest)
	}
	for _, one := range listed(value) {
		if isSecret(kind, one) && strings.ContainsAny(one, "0123456789") {
			found = append(found, one)
		}
	}
	// A private key may be shown in part.
	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				found = append(found, line)
			}
		}
	}
	return found
}

// listed returns the elements of a list of secrets, or of a JSON text with secrets.
func listed(value string) (list []string) {
	if strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") {
		var doc any
		if json.Unmarshal([]byte(value), &doc) == nil {
			return leaves(doc, nil)
		}
	}
	list = strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(",;| \t\n", r) })
	for _, one := range list {
		if i := strings.IndexAny(one, "=:"); i >= 0 {
			list = append(list, one[i+1:])
		}
	}
	if len(list) == 1 {
		return nil
	}
	return list
}

func leaves(doc any, list []string) []string {
	switch doc := doc.(type) {
	case string:
		return append(list, doc)
	case []any:
		for _, v := range doc {
			list = leaves(v, list)
		}
	case map[string]any:
		for _, v := range doc {
			list = leaves(v, list)
		}
	}
	return list
}

// inURL returns what a URL keeps secret that is itself the value of such a variable:
// not where it leads, but the user of a DSN and long parts of its path that are no words.
func inURL(kind nameKind, value string) (found []string) {
	u, err := url.Parse(value)
	if err != nil {
		return nil // within has found its password
	}
	parts := strings.Split(u.Path, "/")
	if u.User != nil {
		parts = append(parts, u.User.Username())
	}
	for _, part := range parts {
		if len(part) >= minLine && isSecret(kind, part) && !plainPart().MatchString(part) {
			found = append(found, part)
		}
	}
	return found
}

// plainPart recognises parts of paths that are made of words.
var plainPart = text.Pattern(`^[a-z]+([-_.][a-z0-9]+)*$`)

// isSecret reports whether the value of a variable of that kind is worth hiding.
func isSecret(kind nameKind, value string) bool {
	switch {
	case len(value) < minNamed, len(value) < minWord && word().MatchString(value):
		return false
	case isCommon(value), placeholder().MatchString(value):
		return false
	case kind != namePassword && len(value) < minNumber && numeric().MatchString(value):
		return false
	case strings.HasPrefix(value, "~/"), strings.HasPrefix(value, "./"), strings.HasPrefix(value, "../"):
		return false
	case filepath.IsAbs(value):
		_, err := os.Stat(value)
		return err != nil
	}
	return true
}

// isCommon reports whether a value is one that texts hold anyway: the same character
// over and over, or a word that is no secret.
func isCommon(value string) bool {
	if strings.Count(value, value[:1]) == len(value) {
		return true
	}
	return slices.Contains([]string{
		"true", "false", "none", "null", "test", "testing", "development", "production", "default", "password",
		"postgres", "localhost", "disabled", "enabled", "required", "optional", "anonymous", "keychain", "environment",
	}, strings.ToLower(value))
}
