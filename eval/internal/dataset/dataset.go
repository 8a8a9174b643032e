// Package dataset reads the rows of CSV, TSV and JSONL files. Call [Read] with the text of a
// file and a [Target] that receives the rows and the faults.
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

// A Target receives the content of a dataset, in the order of the file.
type Target interface {
	// Wanted is called for each row and reports whether to decode it.
	Wanted() bool
	// Row receives the columns of a wanted row. line is where the row starts, from 1.
	Row(line int, columns map[string]string)
	// Fault receives a fault. column is in bytes from 1; 0 when unknown.
	Fault(line, column int, code decode.Code, format string, args ...any)
	// Stopped reports whether reading stops here.
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

// readCSV reads a header and rows. Fields can be quoted and contain line breaks.
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

// header checks the column names and returns a copy of them.
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
			r.fault(line, column, decode.CodeDatasetColumns, "duplicate column name %q", text.Clip(names[i], 60))
		}
		seen[names[i]] = true
		if r.to.Stopped() {
			break
		}
	}
	if len(names) == 1 && strings.Contains(names[0], ";") {
		r.fault(1, 1, decode.CodeDatasetColumns, "columns must be separated by commas, not semicolons")
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
		r.fault(pe.Line, pe.Column, decode.CodeDatasetSyntax,
			"quote in a field that does not start with one; quote the field and double the quote")
	case errors.Is(pe.Err, csv.ErrQuote):
		r.fault(pe.Line, pe.Column, decode.CodeDatasetSyntax, "the quoted field that starts in line %d has no valid end", pe.StartLine)
	default:
		r.fault(pe.Line, pe.Column, decode.CodeDatasetSyntax, "%s", pe.Err)
	}
}

// readJSONL reads one JSON object per line. It skips empty lines.
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

// jsonColumns decodes an object into texts. Values that are not texts become JSON. at is the
// column of a fault, in bytes from 1.
func jsonColumns(text string) (columns map[string]string, at int, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	var object map[string]json.RawMessage
	if err := dec.Decode(&object); err != nil {
		var se *json.SyntaxError
		if errors.As(err, &se) {
			return nil, int(max(se.Offset, 1)), fmt.Errorf("not valid JSON: %s", se)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, len(text), errors.New("not valid JSON: unexpected end of line")
		}
		return nil, 1, errors.New("each line must be a JSON object")
	}
	if object == nil {
		return nil, 1, errors.New("each line must be a JSON object")
	}
	if tail := strings.TrimSpace(text[dec.InputOffset():]); tail != "" {
		return nil, int(dec.InputOffset()) + 1, errors.New("not valid JSON: unexpected text after the object")
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
