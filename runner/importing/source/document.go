package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waza/eval/jsonwalk"
	"waza/runner/record"
)

// maxDepth limits how deep the arrays and objects of a document are nested.
const maxDepth = 500

// A Document is a JSON file in memory.
type Document struct {
	Path string
	// Text is valid JSON.
	Text []byte
	// Sum is the hash of the file.
	Sum []byte
}

// ReadFile reads a file that is not too large. The error is an [*Error].
func ReadFile(path string) ([]byte, error) {
	file, info, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := text.ReadFrom(io.LimitReader(file, MaxBytes)); err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	return text.Bytes(), nil
}

// ReadDocument reads a JSON file. The error is an [*Error].
func ReadDocument(path string) (*Document, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := &Document{Path: path, Sum: Sum(text)}
	if d.Text, err = CheckJSON(text); err != nil {
		return nil, d.fail(err)
	}
	return d, nil
}

// Sum returns the hash of texts.
func Sum(texts ...[]byte) []byte {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%d ", len(t))
		sum.Write(t)
	}
	return sum.Sum(nil)
}

// Reread reads the document again. It returns an error if the file changed.
func (d *Document) Reread() (*Document, error) {
	again, err := ReadDocument(d.Path)
	if err == nil && !bytes.Equal(again.Sum, d.Sum) {
		return nil, &Error{Path: d.Path, Err: ErrChanged}
	}
	return again, err
}

// fail adds the line to an error of decoding the whole text.
func (d *Document) fail(err error) error {
	e := &Error{Path: d.Path, Err: err}
	if bad, ok := errors.AsType[*syntaxError](err); ok {
		e.Line = bad.line
	}
	return e
}

// Fail returns an error about the value at a place of the text. The member is its path.
func (d *Document) Fail(at Span, member string, err error) error {
	return &Error{Path: d.Path, Line: 1 + bytes.Count(d.Text[:at.Start], []byte("\n")), Member: member, Err: err}
}

// A Span is a part of a text.
type Span struct{ Start, End int }

// In returns the part of the text.
func (s Span) In(text []byte) []byte { return text[s.Start:s.End] }

// within returns the place of a part of a text that is at a place of the document. The capacity of
// a slice ends where that of its text ends.
func (s Span) within(text, part []byte) Span {
	start := s.Start + cap(text) - cap(part)
	return Span{start, start + len(part)}
}

// Members returns the places of the members of the object at a place. Of several with one name, the
// last counts, as in Python. It returns nil for other values.
func (d *Document) Members(at Span) map[string]Span {
	members := map[string]Span{}
	object := at.In(d.Text)
	err := jsonwalk.Members(object, "", func(key, value []byte) bool {
		name := string(key)
		if bytes.IndexByte(key, '\\') >= 0 && json.Unmarshal([]byte(`"`+name+`"`), &name) != nil {
			return false
		}
		members[name] = at.within(object, value)
		return true
	})
	if err != nil {
		return nil
	}
	return members
}

// Sorted iterates over [Document.Members] in the order of their names.
func (d *Document) Sorted(at Span) iter.Seq2[string, Span] {
	return func(yield func(string, Span) bool) {
		members := d.Members(at)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !yield(name, members[name]) {
				return
			}
		}
	}
}

// Elements returns the places of the elements of the array at a place. It returns nil for other
// values.
func (d *Document) Elements(at Span) []Span {
	var list []Span
	array := at.In(d.Text)
	err := jsonwalk.Elements(array, func(value []byte) bool {
		list = append(list, at.within(array, value))
		return len(list) <= MaxTrials
	})
	if err != nil {
		return nil
	}
	return list
}

// All returns the place of the whole text.
func (d *Document) All() Span { return Span{0, len(d.Text)} }

// A syntaxError is a fault in a JSON text.
type syntaxError struct {
	line int
	err  error
}

func (e *syntaxError) Error() string { return e.err.Error() }

// CheckJSON returns the text as valid JSON: numbers that only Python writes are null.
func CheckJSON(text []byte) ([]byte, error) {
	text = withoutNaN(text)
	if n := jsonwalk.Depth(text); n > maxDepth {
		return nil, fmt.Errorf("is nested %d deep, the limit is %d", n, maxDepth)
	}
	if json.Valid(text) {
		return text, nil
	}
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if strings.HasPrefix(syntax.Error(), "unexpected end") {
		err = errors.New("the file ends in the middle of the document")
	}
	at := max(0, min(int(syntax.Offset)-1, len(text)))
	return nil, &syntaxError{1 + bytes.Count(text[:at], []byte("\n")), err}
}

// withoutNaN replaces NaN, Infinity and -Infinity by null.
func withoutNaN(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/16)
	for i := 0; i < len(text); {
		n := max(1, jsonwalk.StringEnd(text[i:]))
		for _, name := range []string{"NaN", "-Infinity", "Infinity"} {
			if bytes.HasPrefix(text[i:], []byte(name)) {
				out, n = append(out, "null"...), 0
				i += len(name)
				break
			}
		}
		out = append(out, text[i:i+n]...)
		i += n
	}
	return out
}

// Decode decodes a JSON value. Its errors name the member and the expected type.
func Decode(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	typ, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	field := typ.Field
	if field == "" {
		field = "it"
	}
	return fmt.Errorf("%s is a JSON %s: expected %s", field, typ.Value, kindOf(typ))
}

func kindOf(e *json.UnmarshalTypeError) string {
	switch k := e.Type.Kind().String(); k {
	case "struct", "map":
		return "an object"
	case "slice":
		return "an array"
	case "bool":
		return "true or false"
	case "string":
		return "a text"
	case "int", "int64", "float64":
		return "a number"
	}
	return "a different value"
}

// NewRun returns the record of a run that a file in the named format contains.
func NewRun(path, format, suite string, created time.Time) *record.Run {
	rec := &record.Run{
		CreatedAt: created.UTC(), Suite: record.SuiteRef{Name: suite},
		Imported: &record.Imported{File: filepath.Base(path), Format: format},
	}
	rec.Config.Trials, rec.Config.ActualWorkers = 1, 1
	return rec
}
