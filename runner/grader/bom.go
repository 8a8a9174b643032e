package grader

import "strings"

// byteOrderMark is what some programs put before a text. JSON allows a reader to
// ignore it, and the decoders of the standard library refuse it.
const byteOrderMark = "\ufeff"

// withoutBOM removes a byte order mark from the beginning of a text.
func withoutBOM(text string) string { return strings.TrimPrefix(text, byteOrderMark) }
