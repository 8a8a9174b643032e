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
	b := space(object)
	if len(b) == 0 || b[0] != '{' {
		return ErrNoObject
	}
	b = space(b[1:])
	if len(b) > 0 && b[0] == '}' {
		return nil
	}
	for {
		n := StringEnd(b)
		if n < 0 {
			return ErrNoObject
		}
		key := b[1 : n-1]
		b = space(b[n:])
		if len(b) == 0 || b[0] != ':' {
			return ErrNoObject
		}
		b = space(b[1:])
		if n = len(b) - 1; last == "" || string(key) != last {
			n = valueEnd(b)
		}
		if n <= 0 {
			return ErrNoObject
		}
		if !visit(key, b[:n]) {
			return nil
		}
		b = space(b[n:])
		switch {
		case len(b) > 0 && b[0] == ',':
			b = space(b[1:])
		case len(b) > 0 && b[0] == '}':
			return nil
		default:
			return ErrNoObject
		}
	}
}

// ErrNoArray means that the examined bytes are not a JSON array.
var ErrNoArray = errors.New("no JSON array")

// Elements visits the elements of a JSON array in order, until visit returns false. Like [Members],
// it only matches brackets and quotes.
func Elements(array []byte, visit func(value []byte) bool) error {
	b := space(array)
	if len(b) == 0 || b[0] != '[' {
		return ErrNoArray
	}
	b = space(b[1:])
	if len(b) > 0 && b[0] == ']' {
		return nil
	}
	for {
		n := valueEnd(b)
		if n <= 0 {
			return ErrNoArray
		}
		if !visit(b[:n]) {
			return nil
		}
		b = space(b[n:])
		switch {
		case len(b) > 0 && b[0] == ',':
			b = space(b[1:])
		case len(b) > 0 && b[0] == ']':
			return nil
		default:
			return ErrNoArray
		}
	}
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

// valueEnd returns the length of the value at the start of b, or -1.
func valueEnd(b []byte) int {
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
