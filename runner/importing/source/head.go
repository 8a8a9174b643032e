package source

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The limits of a [Head].
const (
	headNames = 40
	headText  = 200
)

// A Head is the little of a file that formats need to recognize it.
type Head struct {
	// Path is the path as given. Dir reports whether it is a directory.
	Path string
	Dir  bool
	// Zip reports whether the file is a zip archive.
	Zip bool
	// Names are the first members of the JSON object with which the file starts, at most 40.
	// Inner are those of the object in the first member.
	Names, Inner []string
	// Texts holds the short texts among the values of Names.
	Texts map[string]string
	// First is the head of the first element of the JSON array with which the file starts, or nil.
	First *Head
}

// ReadHead reads the head of a file. It is empty if there is no such file.
func ReadHead(path string) *Head {
	h := &Head{Path: path, Texts: map[string]string{}}
	file, err := os.Open(path)
	if err != nil {
		return h
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return h
	}
	if h.Dir = info.IsDir(); h.Dir || !info.Mode().IsRegular() {
		return h
	}
	in := bufio.NewReader(io.LimitReader(file, MaxBytes))
	if start, err := in.Peek(4); err == nil && string(start) == "PK\x03\x04" {
		h.Zip = true
		return h
	}
	(&headScanner{head: h, in: in}).scan()
	return h
}

// Has reports whether the head has all these names.
func (h *Head) Has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(h.Names, n) })
}

// A headScanner finds the names of members. Other than a decoder, it keeps no values, and accepts
// the numbers that only Python writes.
type headScanner struct {
	head  *Head
	in    *bufio.Reader
	depth int
	key   bool // the next text is a name
	list  bool // the value at depth 2 is an array
	last  string
}

// scan reads until the end of the object or until the head is full.
func (s *headScanner) scan() {
	c, err := s.next()
	if err == nil && c == '[' {
		s.head.First = &Head{Path: s.head.Path, Texts: map[string]string{}}
		s.head = s.head.First
		c, err = s.next()
	}
	if err != nil || c != '{' {
		return
	}
	for s.depth, s.key = 1, true; s.depth > 0 && len(s.head.Names) < headNames; {
		c, err := s.next()
		if err != nil {
			return
		}
		switch c {
		case '"':
			if !s.text() {
				return
			}
		case '{', '[':
			if s.depth, s.key = s.depth+1, c == '{'; s.depth == 2 {
				s.list = c == '['
			}
		case '}', ']':
			s.depth, s.key = s.depth-1, false
		case ',':
			s.key = s.depth == 1 || s.depth == 2 && !s.list
		case ':':
			s.key = false
		}
	}
}

// next returns the next character that is not white space.
func (s *headScanner) next() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
	}
}

// text reads the rest of a text, and keeps it if it is a name or a value of the object.
func (s *headScanner) text() bool {
	raw := []byte{'"'}
	for escaped := false; ; {
		c, err := s.in.ReadByte()
		if err != nil {
			return false
		}
		if len(raw) < headText {
			raw = append(raw, c)
		}
		if c == '"' && !escaped {
			break
		}
		escaped = c == '\\' && !escaped
	}
	var text string
	if json.Unmarshal(raw, &text) != nil { // too long
		text = ""
	}
	switch {
	case s.key && s.depth == 1:
		s.head.Names, s.last = append(s.head.Names, text), text
	case s.key && s.depth == 2 && len(s.head.Names) == 1 && len(s.head.Inner) < headNames:
		s.head.Inner = append(s.head.Inner, text)
	case !s.key && s.depth == 1 && text != "":
		s.head.Texts[s.last] = text
	}
	return true
}

// Below returns the files with a name in the folders directly below a folder, in order.
func Below(dir, name string) []string {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(dir)
	paths, err := filepath.Glob(filepath.Join(escaped, "*", name))
	if err != nil || len(paths) > MaxTasks {
		return nil
	}
	return paths
}
