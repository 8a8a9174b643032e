// Package jsonwalk walks over JSON without building values. Call [Members] for an object in
// memory of which only a few bytes are needed, [Elements] for an array, and [Object] and [Array] to
// read a large document in parts. [Encode] writes JSON for people and models, and [Append] and its
// kin append it to a buffer.
//
// The walkers are for JSON that the program wrote itself, that was already checked, or whose parts
// the caller decodes. Package rpc/internal/wire has its own walker, which checks the input of
// strangers.
package jsonwalk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrNoObject means that the examined bytes are not a JSON object.
var ErrNoObject = errors.New("no JSON object")

// Members visits the members of a JSON object in order, until visit returns false. It skips
// values instead of decoding them, which takes a tenth of the time, because readers need only a
// few bytes of a long journal line. In skipped values it only matches brackets and quotes. The
// value of the member named last is not even scanned: it is everything up to the closing
// bracket. last can be empty. Keys are passed without quotes and with their escapes.
func Members(object []byte, last string, visit func(key, value []byte) bool) error {
	stopped := false
	n := Each(space(object), func(key, rest []byte) int {
		n := len(rest) - 1
		if last == "" || string(key) != last {
			n = ValueEnd(rest)
		}
		if n > 0 && !visit(key, rest[:n]) {
			stopped = true
			return -1
		}
		return n
	})
	if n < 0 && !stopped {
		return ErrNoObject
	}
	return nil
}

// Each is like [Members] for the object at the start of b, and returns its length. visit gets
// everything from the value on, and returns the length of the value: from [ValueEnd], or from Each or
// EachElement, which decode nested values without scanning them first. If visit returns 0 or less, or
// the object is invalid, Each returns -1.
func Each(b []byte, visit func(key, rest []byte) int) int {
	if len(b) == 0 || b[0] != '{' {
		return -1
	}
	rest := space(b[1:])
	if len(rest) > 0 && rest[0] == '}' {
		return len(b) - len(rest) + 1
	}
	for {
		n := StringEnd(rest)
		if n < 0 {
			return -1
		}
		key := rest[1 : n-1]
		rest = space(rest[n:])
		if len(rest) == 0 || rest[0] != ':' {
			return -1
		}
		rest = space(rest[1:])
		if n = visit(key, rest); n <= 0 {
			return -1
		}
		rest = space(rest[n:])
		switch {
		case len(rest) > 0 && rest[0] == ',':
			rest = space(rest[1:])
		case len(rest) > 0 && rest[0] == '}':
			return len(b) - len(rest) + 1
		default:
			return -1
		}
	}
}

// EachElement is like [Each] for the elements of the array at the start of b.
func EachElement(b []byte, visit func(rest []byte) int) int {
	if len(b) == 0 || b[0] != '[' {
		return -1
	}
	rest := space(b[1:])
	if len(rest) > 0 && rest[0] == ']' {
		return len(b) - len(rest) + 1
	}
	for {
		n := visit(rest)
		if n <= 0 {
			return -1
		}
		rest = space(rest[n:])
		switch {
		case len(rest) > 0 && rest[0] == ',':
			rest = space(rest[1:])
		case len(rest) > 0 && rest[0] == ']':
			return len(b) - len(rest) + 1
		default:
			return -1
		}
	}
}

// ErrNoArray means that the examined bytes are not a JSON array.
var ErrNoArray = errors.New("no JSON array")

// Elements visits the elements of a JSON array in order, until visit returns false. Like [Members],
// it only matches brackets and quotes.
func Elements(array []byte, visit func(value []byte) bool) error {
	stopped := false
	n := EachElement(space(array), func(rest []byte) int {
		n := ValueEnd(rest)
		if n > 0 && !visit(rest[:n]) {
			stopped = true
			return -1
		}
		return n
	})
	if n < 0 && !stopped {
		return ErrNoArray
	}
	return nil
}

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// StringEnd returns the length of the string at the start of b, including quotes, or -1.
func StringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return -1
	}
	for n := 1; ; {
		i := bytes.IndexByte(b[n:], '"')
		if i < 0 {
			return -1
		}
		n += i
		escapes := 0
		for b[n-1-escapes] == '\\' {
			escapes++
		}
		n++
		if escapes%2 == 0 {
			return n
		}
	}
}

// ValueEnd returns the length of the value at the start of b, or -1.
func ValueEnd(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	switch b[0] {
	case '"':
		return StringEnd(b)
	case '{', '[':
		return nestedEnd(b)
	}
	for n, c := range b { // numbers are short, so bytes.IndexAny would spend its time on its table
		switch c {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return n
		}
	}
	return len(b)
}

func nestedEnd(b []byte) int {
	depth := 0
	for n := 0; n < len(b); n++ {
		switch b[n] {
		case '"':
			end := StringEnd(b[n:])
			if end < 0 {
				return -1
			}
			n += end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return n + 1
			}
		}
	}
	return -1
}

// Depth returns how deep the arrays and objects of a JSON text are nested. For other texts the
// result can be wrong.
func Depth[T ~string | ~[]byte](text T) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']' || c == '}':
			now--
		}
	}
	return deepest
}

// Object reads an object from dec and calls member for each of its names in order; member
// decodes the value. Other JSON gives a [*json.UnmarshalTypeError] without a Type. The error is
// [io.EOF] only if dec is at its end.
func Object(dec *json.Decoder, member func(name string) error) error {
	return delimited(dec, '{', func() error {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		return member(fmt.Sprint(name))
	})
}

// Split decodes an object from dec into rest, except the member of that name. member reads that
// one from dec in parts.
func Split(dec *json.Decoder, name string, member func() error, rest any) error {
	fields := map[string]json.RawMessage{}
	err := Object(dec, func(key string) error {
		if key == name {
			return member()
		}
		var raw json.RawMessage
		err := dec.Decode(&raw)
		fields[key] = raw
		return err
	})
	if err != nil {
		return err
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, rest)
}

// Array is like [Object], for an array: next decodes one element.
func Array(dec *json.Decoder, next func() error) error { return delimited(dec, '[', next) }

// Encode encodes a value on one line. Unlike json.Marshal, it does not escape "<", ">" and "&",
// because people and models read the result, and no browser treats it as HTML.
func Encode(v any) (json.RawMessage, error) { return Append(nil, v) }

func delimited(dec *json.Decoder, open json.Delim, next func() error) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if token != open {
		return &json.UnmarshalTypeError{Value: fmt.Sprint(token)}
	}
	for err == nil && dec.More() {
		err = next()
	}
	if err == nil {
		_, err = dec.Token()
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
