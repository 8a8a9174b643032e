package secrets

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"waza/eval/text"
)

// nameKind classifies the name of a variable.
type nameKind int

const (
	nameOrdinary nameKind = iota
	nameSecret
	namePassword // short values and numbers are secret, too
)

// The parts of names. Endings of names without separators, as in OPENAIKEY, are distinguished
// from words with the same ending.
var (
	passwordParts = []string{"pass", "passwd", "password", "passwords", "passphrase", "passcode", "pwd", "pw", "pin", "otp"}
	secretParts   = []string{
		"secret", "secrets", "token", "tokens", "key", "keys", "apikey", "apikeys", "jwt", "jwts", "bearer", "credential", "credentials",
		"cred", "creds", "auth", "authorization", "cookie", "cookies", "dsn", "pat", "webhook", "signature", "connstr", "connectionstring",
	}
	// aboutParts are the last parts of names of variables that describe a secret, or its
	// location.
	aboutParts = []string{
		"name", "type", "method", "mode", "file", "path", "dir", "sock", "socket", "algorithm", "provider", "limit", "count", "size", "length",
		"ttl", "expires", "expiry", "timeout", "enabled", "required", "prefix", "version", "host", "port", "region", "parallelism",
	}
	secretEnds   = []string{"secret", "secrets", "token", "tokens", "key", "keys", "jwt", "credential", "credentials", "dsn"}
	passwordEnds = []string{"pass", "passwd", "password", "passwords", "passphrase", "pwd"}
	otherWords   = []string{
		"monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "hotkey", "hotkeys", "lackey", "mickey", "rickey", "sheepkey", "disney",
		"bypass", "compass", "trespass", "surpass", "overpass", "underpass", "oldpwd", "cwdpwd",
	}
)

// nameOf classifies the name of a variable, a header or a parameter by its parts: DB_PASS,
// X-Api-Key, clientSecret2, OPENAIKEY.
func nameOf(name string) nameKind {
	if name == "PWD" || name == "OLDPWD" {
		return nameOrdinary
	}
	kind := nameOrdinary
	parts := nameParts(name)
	if n := len(parts); n > 1 && slices.Contains(aboutParts, parts[n-1]) {
		return nameOrdinary
	}
	for _, part := range parts {
		switch {
		case slices.Contains(otherWords, part):
		case slices.Contains(passwordParts, part), hasEnd(part, passwordEnds):
			return namePassword
		case slices.Contains(secretParts, part), hasEnd(part, secretEnds):
			kind = nameSecret
		}
	}
	return kind
}

func hasEnd(part string, ends []string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(part, end) })
}

// nameParts splits a name into words: at characters other than letters, and before a capital
// letter that follows a small letter or starts a capitalised word.
func nameParts(name string) (parts []string) {
	var part []rune
	flush := func() {
		if len(part) > 0 {
			parts = append(parts, strings.ToLower(string(part)))
		}
		part = nil
	}
	runes := []rune(name)
	for i, c := range runes {
		if !unicode.IsLetter(c) {
			flush()
			continue
		}
		after := i > 0 && unicode.IsLower(runes[i-1])
		before := i > 0 && i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])
		if unicode.IsUpper(c) && (after || before) {
			flush()
		}
		part = append(part, c)
	}
	flush()
	return parts
}

const (
	minKey    = 20  // minimum length in bytes of a value that looks like a key
	maxKey    = 512 // maximum length in bytes
	minRandom = 16  // minimum length in bytes of a random word in it
	minBits   = 3.5 // minimum entropy of such a word, in bits per character
)

var (
	// keyPrefix matches the keys of services that mark their keys with a prefix.
	keyPrefix = text.Pattern(`^(sk-|pk-|rk_|sk_live_|gh[opsur]_|github_pat_|glpat-|xox[abpors]-|xapp-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|pypi-|dop_v1_|shpat_|sq0|SG\.|eyJ[A-Za-z0-9_-]+\.|-----BEGIN [A-Z ]*PRIVATE KEY)`)
	keyShape  = text.Pattern(`^[A-Za-z0-9+_.=~-]+$`)
	// ordinaryParts occur in the names of variables whose values are random but public.
	ordinaryParts = []string{
		"sha", "commit", "digest", "hash", "checksum", "id", "ids", "uuid", "guid", "ref", "rev", "revision", "version",
		"path", "dir", "home", "file",
		"host", "hostname", "name", "url", "uri", "image", "tag", "branch", "model", "nonce", "etag", "options", "flags", "args", "colors",
	}
)

// isLikeKey reports whether a value looks like a key: it has the prefix of a service's keys, or
// is one long random word of small letters, capital letters and digits.
func isLikeKey(name, value string) bool {
	if len(value) < minKey || len(value) > maxKey && !strings.HasPrefix(value, "-----") {
		return false
	}
	if keyPrefix().MatchString(value) && !strings.ContainsAny(value, " ") ||
		strings.HasPrefix(value, "-----BEGIN") && keyPrefix().MatchString(value) {
		return true
	}
	parts := nameParts(name)
	if slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(ordinaryParts, part) }) {
		return false
	}
	return keyShape().MatchString(value) && slices.ContainsFunc(strings.FieldsFunc(value, isSeparator), isRandom)
}

func isSeparator(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }

// isRandom reports whether a word is long and mixes small letters, capital letters and, in more
// than one place, digits at random. Names of models or releases do not.
func isRandom(word string) bool {
	if len(word) < minRandom || !strings.ContainsFunc(word, unicode.IsUpper) || !strings.ContainsFunc(word, unicode.IsLower) {
		return false
	}
	numbers := strings.FieldsFunc(word, unicode.IsLetter)
	return len(numbers) > 1 && entropy(word) >= minBits
}

// entropy returns the entropy of a text in bits per character, from the frequencies of its
// characters.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
