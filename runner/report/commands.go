package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode"

	"waza/eval/text"
)

//
// CI systems read commands from the output of a step, and waza prints text of agents. GitHub
// accepts a line that starts with :: after any blanks, and the older form ##[ anywhere in a
// line. Azure accepts ##vso[ and TeamCity ##teamcity[. Each format makes these harmless in its
// own way: with escapes in plain text, references in XML, and \u0023 in JSON.

// hashCommand matches the commands that can occur anywhere in a line.
var hashCommand = text.Pattern(`##([A-Za-z]*\[)`)

// inert escapes texts in a line that a CI system would run as commands.
func inert(line string) string {
	line = inertHash(line)
	if command := strings.TrimLeftFunc(line, unicode.IsSpace); strings.HasPrefix(command, "::") {
		line = line[:len(line)-len(command)] + `\x3a` + command[1:]
	}
	return line
}

// inertHash escapes the commands that can occur anywhere in a line.
func inertHash(line string) string {
	if !strings.Contains(line, "##") {
		return line
	}
	return hashCommand().ReplaceAllString(line, `#\x23$1`)
}

// InertRest escapes commands like inert in every line of a text. The first line must not start a
// line of the output.
func InertRest(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	first = inertHash(first)
	if !more {
		return first
	}
	lines := strings.Split(rest, "\n")
	for i := range lines {
		lines[i] = inert(lines[i])
	}
	return first + "\n" + strings.Join(lines, "\n")
}

// WriteDocument writes a JSON document with indents. Its strings contain no commands of CI systems.
func WriteDocument(w io.Writer, doc any) error {
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(JSONWriter(buffered))
	lines.SetIndent("", "  ")
	if err := lines.Encode(doc); err != nil {
		return err
	}
	return buffered.Flush()
}

// JSONWriter returns a writer that escapes commands of CI systems in JSON texts. The meaning of
// the JSON does not change.
func JSONWriter(w io.Writer) io.Writer { return &jsonWriter{w: w} }

type jsonWriter struct {
	w    io.Writer
	hash bool // the last byte was #
}

// Write escapes each # that follows another. In JSON both are part of a string.
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
