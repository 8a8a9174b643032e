package secrets

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// singles maps escapes of one letter to their meaning.
var singles = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'a': "\a", 'v': "\v", 'e': "\x1b", '\n': ""}

// entities are the HTML and XML entities that encoders write.
var entities = map[string]string{"amp": "&", "lt": "<", "gt": ">", "quot": `"`, "apos": "'"}

// unescape decodes the escape at the start of a text, and returns its meaning and length. The
// length is 0 if there is no escape. It supports the escapes of URLs, of JSON, Go and C strings,
// of shells, and of HTML.
func unescape(text string) (plain string, length int) {
	if len(text) < 2 {
		return "", 0
	}
	switch text[0] {
	case '%':
		return numbered(text, 1, 2, 16, 2, false)
	case '&':
		return entity(text)
	}
	switch c := text[1]; {
	case c == 'u':
		return unit(text)
	case c == 'U':
		return numbered(text, 2, 8, 16, 8, true)
	case c == 'x':
		return numbered(text, 2, 2, 16, 2, false)
	case c >= '0' && c <= '7':
		return numbered(text, 1, 1, 8, 3, false)
	default:
		if plain, ok := singles[c]; ok {
			return plain, 2
		}
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 {
			return "", 0
		}
		return text[1:2], 2
	}
}

// unit decodes one escape of JSON, or two that form one character.
func unit(text string) (plain string, length int) {
	const size = len(`\u0000`)
	if plain, length = numbered(text, 2, 4, 16, 4, true); length == 0 || len(text) < 2*size || text[size:size+2] != `\u` {
		return plain, length
	}
	high, _ := strconv.ParseUint(text[2:size], 16, 32)
	low, err := strconv.ParseUint(text[size+2:2*size], 16, 32)
	if c := utf16.DecodeRune(rune(high), rune(low)); err == nil && c != utf8.RuneError {
		return string(c), 2 * size
	}
	return plain, length
}

// numbered returns the byte or character whose number starts at an offset, with a minimum and
// maximum number of digits.
func numbered(text string, at, least, base, most int, character bool) (plain string, length int) {
	end := at
	for end < len(text) && end-at < most && isDigit(text[end], base) {
		end++
	}
	if end-at < least {
		return "", 0
	}
	n, err := strconv.ParseUint(text[at:end], base, 32)
	switch {
	case err != nil, !character && n > 255:
		return "", 0
	case character:
		return string(rune(n)), end
	}
	return string([]byte{byte(n)}), end
}

func isDigit(c byte, base int) bool {
	switch base {
	case 8:
		return c >= '0' && c <= '7'
	case 10:
		return c >= '0' && c <= '9'
	}
	return classes[c]&isHex != 0
}

// entity is like unescape, for an HTML entity.
func entity(text string) (plain string, length int) {
	const longest = len("&#x10FFFF;")
	end := strings.IndexByte(text[:min(len(text), longest)], ';')
	if end < 2 {
		return "", 0
	}
	name := text[1:end]
	if plain, ok := entities[name]; ok {
		return plain, end + 1
	}
	digits, base := strings.TrimPrefix(name, "#"), 10
	if len(digits) == len(name) {
		return "", 0
	}
	if rest := strings.TrimLeft(digits, "xX"); len(rest) == len(digits)-1 {
		digits, base = rest, 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	if err != nil {
		return "", 0
	}
	return string(rune(n)), end + 1
}
