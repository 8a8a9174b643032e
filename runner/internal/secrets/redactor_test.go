package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// encoders are the ways in which a program can write a secret. Each is reversible.
var encoders = map[string]func(string) string{
	"plain":            func(s string) string { return s },
	"base64":           func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 line":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s + "\n")) },
	"base64 user":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) },
	"base64 user line": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("me:" + s + "\n")) },
	"base64 unpadded":  func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 url":       func(s string) string { return base64.URLEncoding.EncodeToString([]byte("a" + s)) },
	"base64 url raw":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("ab" + s)) },
	"base64 wrapped": func(s string) string {
		return wrapped(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 50) + s + strings.Repeat("\x80", 60))))
	},
	"base64 CRLF": func(s string) string {
		return strings.ReplaceAll(wrapped(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xfe", 48)+s))), "\n", "\r\n")
	},
	"base64 twice": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s))))
	},
	"base64 in JSON": func(s string) string {
		return `{"a":"` + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(s)), "/", `\/`) + `"}`
	},
	"base64 of JSON": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"a":"` + inJSON(s, true) + `"}`))
	},
	"base64 in a query": func(s string) string { return "?k=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"data URL": func(s string) string {
		return "data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("x"+s))
	},
	"hex":           func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":           func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hEx":           func(s string) string { return mixed(hex.EncodeToString([]byte(s))) },
	"hex pairs":     func(s string) string { return strings.TrimSpace(fmt.Sprintf("% x", s)) },
	"hex colons":    func(s string) string { return strings.ReplaceAll(fmt.Sprintf("% X", s), " ", ":") },
	"xxd":           func(s string) string { return pairs(hex.EncodeToString([]byte(s)), 4) },
	"query":         url.QueryEscape,
	"path":          url.PathEscape,
	"percent":       func(s string) string { return everyByte(s, "%%%02x") },
	"PERCENT":       func(s string) string { return everyByte(s, "%%%02X") },
	"percent lower": func(s string) string { return lowerEscapes(url.QueryEscape(s)) },
	"JSON":          func(s string) string { return inJSON(s, true) },
	"JSON twice":    func(s string) string { return inJSON(inJSON(s, false), true) },
	"JSON slashes":  func(s string) string { return strings.ReplaceAll(inJSON(s, false), "/", `\/`) },
	"JSON escapes":  everyUnit,
	"Go":            strconv.QuoteToASCII,
	"x escapes":     func(s string) string { return everyByte(s, `\x%02x`) },
	"octal escapes": func(s string) string { return everyByte(s, `\%03o`) },
	"HTML":          html.EscapeString,
	"HTML numbers":  func(s string) string { return everyRune(s, "&#%d;") },
	"HTML hex":      func(s string) string { return everyRune(s, "&#x%X;") },
	"shell":         everyPunctuation,
}

func everyByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func everyRune(s, format string) string {
	var b strings.Builder
	for _, c := range s {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func everyUnit(s string) string {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String()
}

func everyPunctuation(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if classes[s[i]]&isBase64 == 0 && s[i] < 0x80 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func mixed(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); i += 3 {
		b[i] = bytes.ToUpper(b[i : i+1])[0]
	}
	return string(b)
}

func pairs(s string, n int) string {
	var b strings.Builder
	for i := 0; i < len(s); i += n {
		b.WriteString(s[i:min(len(s), i+n)] + " ")
	}
	return strings.TrimSpace(b.String())
}

func wrapped(s string) string {
	var lines []string
	for ; len(s) > 76; s = s[76:] {
		lines = append(lines, s[:76])
	}
	return strings.Join(append(lines, s), "\n")
}

func lowerEscapes(s string) string {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' {
			s = s[:i+1] + strings.ToLower(s[i+1:i+3]) + s[i+3:]
		}
	}
	return s
}

var secretValues = []string{
	"sk-proj-Zx81kQpLmN4vT7wR2yB5", "hunter2\"<correct>/horse", "/aws/like+key/0123", "p4$$w0rd",
	"correct horse battery", "schlüssel-7-wörter-😀",
}

// Once, the redactor missed secrets in base64 with line breaks, after a user name or without
// padding, in hexadecimal digits, and in lower-case escapes.
func TestAttackRedactEncodings(t *testing.T) {
	t.Parallel()
	for _, secret := range secretValues {
		var r Redactor
		r.Add(secret)
		for name, encode := range encoders {
			encoded := encode(secret)
			for _, around := range [][2]string{{"", ""}, {"key: ", " is it.\n"}, {`{"a":"`, `"}`}, {"a\nb ", "\nc"}, {"Basic ", ""}} {
				text := around[0] + encoded + around[1]
				require.Contains(t, r.Text(text), Redacted, "%s: %q", name, text)
				require.NotContains(t, r.Text(text), encoded, "%s: %q", name, text)
				line, err := json.Marshal(map[string]any{"plain": 1, "text": text})
				require.NoError(t, err)
				clean := r.JSON(line)
				require.True(t, json.Valid(clean), "%s: %s", name, clean)
				require.Contains(t, string(clean), Redacted, "%s: %s", name, line)
				require.Contains(t, string(clean), `"plain":1`)
			}
		}
		plain := "nothing is in it: SGVsbG8sIHdvcmxkISBIb3cgYXJlIHlvdT8= 48656c6c6f2c20776f726c6421 %41%42 \\u0041 " +
			"&amp; commit 4f2c9a1be07d4c11a2b3c4d5e6f708192a3b4c5d"
		require.Equal(t, plain, r.Text(plain))
	}
}

// Once, a part of a key was kept where a limit truncated the key.
func TestAttackRedactCut(t *testing.T) {
	t.Parallel()
	const secret = "sk-proj-Zx81kQpLmN4vT7wR2yB5"
	var r Redactor
	r.Add(secret)
	for n := minPart; n < len(secret); n++ {
		head, tail := secret[:n], secret[len(secret)-n:]
		for _, text := range []string{
			"it is " + head, "it is " + head + "…", "it is " + head + " …", "it is " + head + "\n[12 bytes left out]", `it starts "` + head + `…"`,
			tail + " it is", "…" + tail + " it is", "exit code 1: …" + tail,
		} {
			require.Equal(t, 1, strings.Count(r.Text(text), Redacted), text)
			require.NotContains(t, r.Text(text), head, text)
			line, err := json.Marshal([]string{text})
			require.NoError(t, err)
			require.NotContains(t, string(r.JSON(line)), head, text)
			require.NotContains(t, string(r.JSON(line)), tail, text)
		}
	}
	for n := 12; n < 36; n++ { // number of characters kept of the encoded key
		encoded := base64.StdEncoding.EncodeToString([]byte(secret))[:n]
		require.Contains(t, r.Text("it is "+encoded), Redacted, encoded)
	}
	for _, word := range []string{`{"sk-pr":1}`, "sk-pr", "a sk-proj-key", "2yB5 is short", "proj"} {
		require.Equal(t, word, r.Text(word))
	}
	var words Redactor
	words.Add("postgres-admin-password")
	for _, text := range []string{`{"password":"x"}`, `postgres`, `"postgres"`, "the admin-password"} {
		require.Equal(t, text, words.Text(text))
	}
}

// FuzzRedactEncoded checks that no encoder, and no pair of encoders, hides a secret in any text.
func FuzzRedactEncoded(f *testing.F) {
	names := slices.Sorted(maps.Keys(encoders))
	outer := []string{"base64", "base64 user line", "base64 url raw", "hex", "PERCENT", "JSON", "HTML", "Go"}
	for i, secret := range secretValues {
		f.Add("it is ", secret, " here\n", uint8(i), uint8(3*i))
	}
	f.Add("aaaa", "secret-12", "==", uint8(1), uint8(2))
	f.Add("0", "000001\"2", "000000", uint8(0), uint8(3)) // hexadecimal digits after the secret's hid it
	f.Fuzz(func(t *testing.T, before, secret, after string, one, two uint8) {
		if len(secret) < minNamed || strings.ContainsFunc(secret, func(c rune) bool { return c < ' ' || c > '~' }) ||
			strings.Contains(secret, "[") {
			return
		}
		// A secret of hexadecimal digits can merge with an adjacent encoding.
		if !strings.ContainsFunc(secret, func(c rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", c) }) ||
			len(slices.Compact(slices.Sorted(slices.Values([]byte(secret))))) < 4 {
			return
		}
		for i := range secret { // docs/secrets.md: an escape in a secret is decoded with the encodings around it
			if _, length := unescape(secret[i:]); length > 0 && strings.IndexByte(`%\&`, secret[i]) >= 0 {
				return
			}
		}
		var r Redactor
		r.Add(secret)
		first, second := encoders[names[int(one)%len(names)]], encoders[outer[int(two)%len(outer)]]
		for _, encoded := range []string{first(secret), second(first(secret))} {
			text := before + " " + encoded + " " + after
			clean := r.Text(text)
			if strings.Contains(clean, encoded) {
				t.Errorf("%q is left of %q in %q", encoded, secret, clean)
			}
			if strings.Contains(clean, secret) {
				t.Errorf("%q is in %q", secret, clean)
			}
		}
	})
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	var nobody *Redactor
	require.Equal(t, "x", nobody.Text("x"))
	r := &Redactor{}
	r.Add("x")
	require.True(t, r.Empty(), "a single letter is no secret")
	r.Add(`se"cr<et/1`)
	r.Add("longer-one")
	r.Add("longer-one-and-more")
	require.Equal(t, "a [redacted] b [redacted] c", r.Text(`a se"cr<et/1 b longer-one-and-more c`))
	for _, escape := range []bool{true, false} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(escape)
		require.NoError(t, enc.Encode(map[string]string{"k": `is se"cr<et/1!`}))
		require.JSONEq(t, `{"k":"is [redacted]!"}`, r.Text(b.String()))
	}
}
