package secrets

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"waza/eval/text"
)

// Minimum lengths of values that count as secrets because of their variable's name.
const (
	minNamed  = 8  // bytes
	minWord   = 12 // bytes, for letters only
	minNumber = 16 // bytes, for digits only, unless the variable is a password
	minLine   = 16 // bytes of a line of a multi-line secret
)

var (
	word    = text.Pattern(`^[A-Za-z]+$`)
	numeric = text.Pattern(`^[0-9.,_ -]+$`)
	// placeholder matches texts that documents and examples contain instead of a secret.
	placeholder = text.Pattern(`(?i)^(<.*>|\$\{.*\}|\$[a-z_]+|\{\{.*\}\}|\[.*\]|your[-_ ].*|(my|some|the|an?)[-_ ` +
		`]?(api[-_ ]?)?(key|token|secret|password)|change[-_ ]?me|replace[-_ ]?me|placeholder|not[-_ ` +
		`]?set|undefined|example.*|dummy.*|redacted)$`)
	// userinfo matches the user and password in a URL anywhere in a text.
	userinfo = text.Pattern(`[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s:@"']*):([^/?#\s"']+)@`)
	// header matches a header with credentials.
	header = text.Pattern(`(?i)authorization:\s*(?:[a-z]+\s+)?([^\s"']+)`)
	// assignment matches an assignment in a connection string, such as Server=db;Password=x.
	assignment = text.Pattern(`(?i)(?:^|[;\s&?,])([a-z][a-z_ -]*)=("[^"]*"|'[^']*'|[^;\s&,#"']+)`)
)

// Learn adds the secrets in environment variables in the form NAME=VALUE: values whose
// variable's name marks a secret, passwords in URLs and connection strings, and values of any
// variable that look like keys. It ignores values that are short, a single plain word, a
// placeholder, or the path of a file. Removing those would destroy texts and protect nothing.
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

// decodings returns a part of a URL in its literal and its decoded form.
func decodings(part string) []string {
	if plain, err := url.PathUnescape(part); err == nil && plain != part {
		return []string{part, plain}
	}
	return []string{part}
}

// byName returns the secrets in the value of a variable of that kind.
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
	// parts of a private key can be shown
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

// inURL returns the secrets in a URL that is the value of such a variable: the user of a DSN,
// and long parts of its path that are not words.
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

// plainPart matches parts of paths that consist of words.
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

// isCommon reports whether a value is common in texts: a repeated character, or an ordinary
// word.
func isCommon(value string) bool {
	if strings.Count(value, value[:1]) == len(value) {
		return true
	}
	return slices.Contains([]string{
		"true", "false", "none", "null", "test", "testing", "development", "production", "default", "password",
		"postgres", "localhost", "disabled", "enabled", "required", "optional", "anonymous", "keychain", "environment",
	}, strings.ToLower(value))
}
