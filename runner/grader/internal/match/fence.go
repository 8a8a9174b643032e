package match

import "strings"

// JSONText returns the part of an output that can be one JSON text, without a byte order mark
// and without a Markdown fence around it.
func JSONText(output string) string { return WithoutBOM(StripFence(WithoutBOM(output))) }

// StripFence removes a Markdown fence that encloses the whole text.
func StripFence(text string) string {
	trimmed := strings.TrimSpace(text)
	mark := fenceMark(trimmed)
	if mark == "" {
		return text
	}
	_, body, ok := strings.Cut(trimmed, "\n")
	if !ok {
		return text
	}
	end := strings.LastIndexByte(body, '\n') + 1
	closing := strings.TrimSpace(body[end:])
	if len(closing) < len(mark) || strings.Trim(closing, mark[:1]) != "" {
		return text
	}
	return strings.TrimRight(body[:end], "\r\n")
}

// fenceMark returns the three or more backquotes or tildes that open a text.
func fenceMark(text string) string {
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, c)
		if n := len(text) - len(rest); n >= 3 {
			return text[:n]
		}
	}
	return ""
}
