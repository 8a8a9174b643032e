package promptfoo

import "strings"

// withoutComments returns code without its comments.
func withoutComments(code string, isPython bool) string {
	return scanner{code: code, isPython: isPython}.scan()
}

// withoutTexts returns JavaScript without its comments and without the content of its texts. Templates and regular expressions remain,
// because they can contain code and features of the language.
func withoutTexts(code string) string { return scanner{code: code, dropsTexts: true}.scan() }

// A scanner finds comments and texts in code. It does not parse the code, so code with faults has a result, too.
type scanner struct {
	code                 string
	isPython, dropsTexts bool
}

func (s scanner) scan() string {
	var b strings.Builder
	for at := 0; at < len(s.code); {
		rest := s.code[at:]
		comment, text := s.commentAt(rest), 0
		if comment == 0 {
			text = s.textAt(rest, b.String())
		}
		switch {
		case comment > 0:
			b.WriteByte(' ')
			at += comment
		case text > 0 && s.dropsTexts && (rest[0] == '"' || rest[0] == '\''):
			b.WriteString(`""`)
			at += text
		default:
			text = max(1, text)
			b.WriteString(rest[:text])
			at += text
		}
	}
	return b.String()
}

// commentAt returns the length of the comment at the start of code, without the end of its line; 0 if there starts none.
func (s scanner) commentAt(code string) int {
	switch {
	case s.isPython && code[0] == '#', !s.isPython && strings.HasPrefix(code, "//"):
		return upTo(code, "\n", 0)
	case !s.isPython && strings.HasPrefix(code, "/*"):
		return upTo(code[2:], "*/", 2) + 2
	}
	return 0
}

// upTo returns the number of bytes until a text, and some bytes of it; all bytes if code does not contain it.
func upTo(code, end string, more int) int {
	if i := strings.Index(code, end); i >= 0 {
		return i + more
	}
	return len(code)
}

// textAt returns the length of the text, template or regular expression at the start of code, which follows other code; 0 if there starts none.
func (s scanner) textAt(code, before string) int {
	switch quote := code[0]; {
	case s.isPython && (strings.HasPrefix(code, `"""`) || strings.HasPrefix(code, "'''")):
		return closed(code, code[:3], true)
	case quote == '"', quote == '\'':
		return closed(code, code[:1], false)
	case quote == '`' && !s.isPython:
		return closed(code, "`", true)
	case quote == '/' && !s.isPython && startsExpression(before):
		return closedExpression(code)
	}
	return 0
}

// closed returns the length of a text in quotes at the start of code; 0 if they are not closed, perhaps in the same line.
func closed(code, quote string, hasLines bool) int {
	for i := len(quote); i < len(code); i++ {
		switch {
		case code[i] == '\\':
			i++
		case strings.HasPrefix(code[i:], quote):
			return i + len(quote)
		case code[i] == '\n' && !hasLines:
			return 0
		}
	}
	return 0
}

// closedExpression returns the length of a regular expression at the start of code, without its flags; 0 if it does not end in its line.
func closedExpression(code string) int {
	inClass := false
	for i := 1; i < len(code) && code[i] != '\n'; i++ {
		switch c := code[i]; {
		case c == '\\':
			i++
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '/' && !inClass:
			return i + 1
		}
	}
	return 0
}

// startsExpression reports whether a slash after some code starts a regular expression, and divides nothing.
func startsExpression(before string) bool {
	before = strings.TrimRight(before, " \t\r\n")
	return before == "" || strings.HasSuffix(before, "return") || strings.ContainsRune("(,=:[!&|?{};+-*%~^<>", rune(before[len(before)-1]))
}
