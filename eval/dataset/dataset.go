// Package dataset reads the rows of CSV, TSV and JSONL files. Call [Read] with the
// text of a file and a [Target] that takes the rows and the faults.
package dataset

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// Target takes what a dataset holds, in the order of the file.
type Target interface {
	// Wanted is called for each row and reports whether it is to be decoded.
	Wanted() bool
	// Row takes the columns of a row that was wanted. line is where it begins, from 1.
	Row(line int, columns map[string]string)
	// Fault takes a fault. column is in bytes from 1; 0 when unknown.
	Fault(line, column int, code decode.Code, format string, args ...any)
	// Stopped reports whether no more rows are wanted.
	Stopped() bool
}

type reader struct {
	text   string
	to     Target
	count  int // rows read
	faults int
}

// Read reads a dataset. ext is the extension of its file in lower case: .jsonl and
// .ndjson, .tsv, and CSV for all others.
func Read(text, ext string, to Target) {
	r := &reader{text: text, to: to}
	switch ext {
	case ".jsonl", ".ndjson":
		r.readJSONL()
	case ".tsv":
		r.readCSV('\t')
	default:
		r.readCSV(',')
	}
}

func (r *reader) wanted() bool {
	r.count++
	return r.to.Wanted()
}

func (r *reader) fault(line, column int, code decode.Code, format string, args ...any) {
	r.faults++
	r.to.Fault(line, column, code, format, args...)
}

// readCSV reads a header and rows. Fields may be quoted and hold line breaks.
func (r *reader) readCSV(comma rune) {
	cr := csv.NewReader(strings.NewReader(r.text))
	cr.Comma, cr.FieldsPerRecord, cr.ReuseRecord = comma, -1, true
	record, err := cr.Read()
	if errors.Is(err, io.EOF) {
		return
	}
	if err != nil {
		r.csvFault(err)
		return
	}
	header, ok := r.header(cr, record)
	if !ok {
		return
	}
	for !r.to.Stopped() {
		record, err := cr.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.csvFault(err)
			return
		}
		line, _ := cr.FieldPos(0)
		if !r.wanted() {
			continue
		}
		if len(record) != len(header) {
			r.fault(line, 1, decode.CodeDatasetColumns, "row %d has %d fields, but the header has %d", r.count, len(record), len(header))
			continue
		}
		columns := make(map[string]string, len(header))
		for i, name := range header {
			columns[name] = record[i]
		}
		r.to.Row(line, columns)
	}
}

// header checks the names of the columns and returns a copy of them.
func (r *reader) header(cr *csv.Reader, record []string) ([]string, bool) {
	names := make([]string, len(record))
	seen := map[string]bool{}
	for i, name := range record {
		names[i] = strings.TrimSpace(name)
		line, column := cr.FieldPos(i)
		switch {
		case names[i] == "":
			r.fault(line, column, decode.CodeDatasetColumns, "column %d has no name", i+1)
		case seen[names[i]]:
			r.fault(line, column, decode.CodeDatasetColumns, "two columns are named %q", text.Clip(names[i], 60))
		}
		seen[names[i]] = true
		if r.to.Stopped() {
			break
		}
	}
	if len(names) == 1 && strings.Contains(names[0], ";") {
		r.fault(1, 1, decode.CodeDatasetColumns, "the columns are separated by semicolons; use commas")
	}
	return names, r.faults == 0
}

func (r *reader) csvFault(err error) {
	var pe *csv.ParseError
	if !errors.As(err, &pe) {
		r.fault(1, 1, decode.CodeDatasetSyntax, "%s", err)
		return
	}
	switch {
	case errors.Is(pe.Err, csv.ErrBareQuote):
		r.fault(pe.Line, pe.Column, decode.CodeDatasetSyntax, "a quote in a field that does not begin with one; quote the field and write the quote twice")
	case errors.Is(pe.Err, csv.ErrQuote):
		r.fault(pe.Line, pe.Column, decode.CodeDatasetSyntax, "a quoted field that begins in line %d does not end as it should", pe.StartLine)
	default:
		r.fault(pe.Line, pe.Column, decode.CodeDatasetSyntax, "%s", pe.Err)
	}
}

// readJSONL reads one JSON object a line. Empty lines are skipped.
func (r *reader) readJSONL() {
	rest := r.text
	for line := 1; rest != "" && !r.to.Stopped(); line++ {
		var text string
		text, rest, _ = strings.Cut(rest, "\n")
		if strings.TrimSpace(text) == "" || !r.wanted() {
			continue
		}
		columns, at, err := jsonColumns(text)
		if err != nil {
			r.fault(line, at, decode.CodeDatasetSyntax, "%s", err)
			continue
		}
		r.to.Row(line, columns)
	}
}

// jsonColumns decodes an object into texts: values that are none are their JSON.
// at is the column of a fault, in bytes from 1.
func jsonColumns(text string) (columns map[string]string, at int, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	var object map[string]json.RawMessage
	if err := dec.Decode(&object); err != nil {
		var se *json.SyntaxError
		if errors.As(err, &se) {
			return nil, int(max(se.Offset, 1)), fmt.Errorf("not valid JSON: %s", se)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, len(text), errors.New("not valid JSON: the line ends too soon")
		}
		return nil, 1, errors.New("each line must be a JSON object")
	}
	if object == nil {
		return nil, 1, errors.New("each line must be a JSON object")
	}
	if tail := strings.TrimSpace(text[dec.InputOffset():]); tail != "" {
		return nil, int(dec.InputOffset()) + 1, errors.New("not valid JSON: something follows the object")
	}
	columns = make(map[string]string, len(object))
	for key, raw := range object {
		columns[key] = jsonText(raw)
	}
	return columns, 0, nil
}

func jsonText(raw json.RawMessage) string {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return string(raw)
	}
	return compact.String()
}
