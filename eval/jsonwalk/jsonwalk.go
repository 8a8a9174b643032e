// Package jsonwalk walks over JSON without building values of it. Call [Members] for
// an object in memory of which few bytes are wanted, and [Object] and [Array] to read
// a large document in parts.
//
// It is for JSON that the program wrote itself or that was checked before. Package
// rpc/wire has a walker of its own, which judges what strangers send.
package jsonwalk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrNoObject says that bytes are no JSON object, as far as that was looked at.
var ErrNoObject = errors.New("no JSON object")

// Members visits the members of a JSON object in turn, as they are written, until
// visit returns false. It passes over values rather than decoding them, which
// takes a tenth of the time: of a long line of the journal few bytes are wanted.
// What it passes over is not checked beyond brackets and quotes; not even that is
// the value of the member named last, which is all up to the closing bracket. It may
// be empty. Keys come without quotes and with their escapes.
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

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// StringEnd is the length of the string that b begins with, quotes included, or -1.
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

// valueEnd is the length of the value that b begins with, or -1.
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
	if n := bytes.IndexAny(b, ",}] \t\r\n"); n >= 0 {
		return n
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

// Depth returns how deep the arrays and objects of a JSON text are nested. Of what is
// not JSON it may return a wrong number.
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

// Object reads an object from dec and calls member for each of its names, in their
// order; member decodes the value. What is no object is a
// [*json.UnmarshalTypeError] without a Type. The error is [io.EOF] only where dec is at
// its end.
func Object(dec *json.Decoder, member func(name string) error) error {
	return delimited(dec, '{', func() error {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		return member(fmt.Sprint(name))
	})
}

// Split decodes an object from dec into rest but for the member of that name, which
// member reads from dec in parts.
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

// Array is [Object] for an array: next decodes one element.
func Array(dec *json.Decoder, next func() error) error { return delimited(dec, '[', next) }

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
