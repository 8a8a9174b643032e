package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// xmlText encodes any bytes as the text of an XML element.
func xmlText(s string) string { return escapeXML(s, false) }

// xmlAttr returns a blank, a name and any bytes as the value of an XML attribute.
func xmlAttr(name, value string) string { return " " + name + `="` + escapeXML(value, true) + `"` }

// escapeXML writes characters with a meaning in XML as references. Characters that no XML
// document can contain, and invalid UTF-8, become escapes as in [Clean]: \x1b, \xff.
func escapeXML(s string, attr bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return strings.ContainsRune("&<>\"\n\t\r", r) || !inXML(r) || r == utf8.RuneError }) &&
		!strings.Contains(s, "##") {
		return s
	}
	var b strings.Builder
	begins := false // at the start of a line
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		command := begins && strings.HasPrefix(s[i:], "::") || r == '#' && i > 0 && s[i-1] == '#'
		begins = r == '\n' || begins && unicode.IsSpace(r)
		switch {
		case command: // of a CI system that reads the output
			fmt.Fprintf(&b, "&#%d;", r)
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>': // ends a text as part of ]]>
			b.WriteString("&gt;")
		case r == '\r' || attr && (r == '"' || r == '\n' || r == '\t'): // readers would turn them into blanks
			fmt.Fprintf(&b, "&#%d;", r)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case inXML(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// inXML reports whether an XML 1.0 document can contain the character.
func inXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000
}
