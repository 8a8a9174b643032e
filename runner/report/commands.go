package report

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// CI systems read commands from what a step prints, and waza prints what agents
// wrote. GitHub takes a line that begins with :: after any blanks, and the older form
// ##[ anywhere in a line; Azure takes ##vso[ and TeamCity ##teamcity[. Each format
// has its way to write these without them being commands: escapes in plain text,
// references in XML, \u0023 in JSON.

// hashCommand matches the commands that may stand anywhere in a line.
var hashCommand = regexp.MustCompile(`##([A-Za-z]*\[)`)

// inert escapes what a CI system would take for a command in a line.
func inert(line string) string {
	if strings.Contains(line, "##") {
		line = hashCommand.ReplaceAllString(line, `#\x23$1`)
	}
	if command := strings.TrimLeftFunc(line, unicode.IsSpace); strings.HasPrefix(command, "::") {
		line = line[:len(line)-len(command)] + `\x3a` + command[1:]
	}
	return line
}

// inertRest is inert for each line of a text whose first line does not begin a line
// where it is printed.
func inertRest(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if i == 0 {
			lines[i] = hashCommand.ReplaceAllString(lines[i], `#\x23$1`)
		} else {
			lines[i] = inert(lines[i])
		}
	}
	return strings.Join(lines, "\n")
}

// JSONWriter returns a writer for JSON texts in which nothing is a command of a CI
// system. What it writes means the same as what it is given.
func JSONWriter(w io.Writer) io.Writer { return &jsonWriter{w: w} }

type jsonWriter struct {
	w    io.Writer
	hash bool // the last byte was #
}

// Write escapes each # after another. In JSON both are part of a string.
func (j *jsonWriter) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("##")) && !(j.hash && len(b) > 0 && b[0] == '#') {
		if len(b) > 0 {
			j.hash = b[len(b)-1] == '#'
		}
		return j.w.Write(b)
	}
	out := make([]byte, 0, len(b)+64)
	for _, c := range b {
		if j.hash && c == '#' {
			out = append(out, `\u0023`...)
			j.hash = false
			continue
		}
		out = append(out, c)
		j.hash = c == '#'
	}
	if _, err := j.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
