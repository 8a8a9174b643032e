package wire

import "bytes"

// A scanner walks over JSON text without building values. encoding/json can check whether a text
// is valid, but it refuses the whole message when it nests too deep, including its id. Decoding
// with it merges duplicate members. The scanner keeps its own stack, so each level costs a byte
// and no recursion. It accepts exactly what json.Valid accepts (checked by a fuzz test), at any
// depth.
type scanner struct {
	data []byte
	open []byte // the closing brackets that value still expects
}

// at returns the byte at i, or 0 past the end. 0 is not valid anywhere outside of strings, so
// callers need not distinguish the two.
func (s *scanner) at(i int) byte {
	if i < len(s.data) {
		return s.data[i]
	}
	return 0
}

// space returns the index of the first byte from i on that is not white space.
func (s *scanner) space(i int) int {
	for data := s.data; i < len(data); {
		switch data[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// value reads the value that starts exactly at i. It returns the index after the value and the
// maximum number of open brackets.
func (s *scanner) value(i int) (end, depth int, ok bool) {
	s.open = s.open[:0]
	for {
		finished := true // whether a value, or an empty container except its bracket, ends here
		switch s.at(i) {
		case '{':
			s.open, i = append(s.open, '}'), s.space(i+1)
			if s.at(i) != '}' {
				if i, ok = s.key(i); !ok {
					return i, depth, false
				}
				finished = false
			}
		case '[':
			s.open, i = append(s.open, ']'), s.space(i+1)
			finished = s.at(i) == ']'
		default:
			if i, ok = s.scalar(i); !ok {
				return i, depth, false
			}
		}
		depth = max(depth, len(s.open))
		if !finished {
			continue
		}
		more := false
		if i, more, ok = s.after(i); !ok || !more {
			return i, depth, ok
		}
	}
}

// after continues after a finished value, or before the closing bracket of an empty container.
// It reads closing brackets and reports whether another value starts at the index it returns.
func (s *scanner) after(i int) (next int, more, ok bool) {
	for len(s.open) > 0 {
		i = s.space(i)
		closer := s.open[len(s.open)-1]
		switch s.at(i) {
		case closer:
			s.open, i = s.open[:len(s.open)-1], i+1
		case ',':
			i = s.space(i + 1)
			if closer == '}' {
				i, ok = s.key(i)
				return i, true, ok
			}
			return i, true, true
		default:
			return i, false, false
		}
	}
	return i, false, true
}

// key reads the name of a member, the colon and the space around it.
func (s *scanner) key(i int) (int, bool) {
	i, ok := s.str(i)
	if !ok {
		return i, false
	}
	i = s.space(i)
	if s.at(i) != ':' {
		return i, false
	}
	return s.space(i + 1), true
}

// scalar reads a string, number, true, false or null.
func (s *scanner) scalar(i int) (int, bool) {
	switch c := s.at(i); {
	case c == '"':
		return s.str(i)
	case c == '-' || digit(c):
		return s.number(i)
	case c == 't':
		return s.word(i, "true")
	case c == 'f':
		return s.word(i, "false")
	default:
		return s.word(i, "null")
	}
}

func (s *scanner) word(i int, w string) (int, bool) {
	if !bytes.HasPrefix(s.data[min(i, len(s.data)):], []byte(w)) {
		return i, false
	}
	return i + len(w), true
}

func (s *scanner) str(i int) (int, bool) {
	if s.at(i) != '"' {
		return i, false
	}
	data := s.data
	for i++; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return i + 1, true
		case c == '\\':
			n := s.escape(i + 1)
			if n == 0 {
				return i, false
			}
			i += n
		case c < 0x20:
			return i, false
		}
	}
	return i, false
}

// escape returns the length of the escape whose backslash is before i, or 0 if it is invalid.
func (s *scanner) escape(i int) int {
	switch s.at(i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		for k := 1; k <= 4; k++ {
			if !hex(s.at(i + k)) {
				return 0
			}
		}
		return 5
	}
	return 0
}

func (s *scanner) number(i int) (int, bool) {
	if s.at(i) == '-' {
		i++
	}
	switch {
	case s.at(i) == '0':
		i++
	case digit(s.at(i)):
		i = s.digits(i)
	default:
		return i, false
	}
	if s.at(i) == '.' {
		if !digit(s.at(i + 1)) {
			return i, false
		}
		i = s.digits(i + 1)
	}
	if c := s.at(i); c == 'e' || c == 'E' {
		i++
		if c := s.at(i); c == '+' || c == '-' {
			i++
		}
		if !digit(s.at(i)) {
			return i, false
		}
		i = s.digits(i)
	}
	return i, true
}

func (s *scanner) digits(i int) int {
	for digit(s.at(i)) {
		i++
	}
	return i
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func hex(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
