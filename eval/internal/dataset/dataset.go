// Package dataset reads the rows of CSV, TSV and JSONL files. Call [Read] with the text of a
// file.
package dataset

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// A Row is a row of a dataset, or a fault of the file.
type Row struct {
	Line    int // where it starts, from 1
	Columns map[string]string
	Fault   string // empty for none
	Code    decode.Code
	Column  int // of the fault, in bytes from 1; 0 when unknown
}

// Read yields the wanted rows of a dataset and its faults, in the order of the file. It calls
// wanted for each row. ext is the extension of the file in lower case: .jsonl and .ndjson, .tsv,
// and CSV for all others.
func Read(text, ext string, wanted func() bool) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		r := &reader{text: text, wanted: wanted, yield: yield}
		switch ext {
		case ".jsonl", ".ndjson":
			r.readJSONL()
		case ".tsv":
			r.readCSV('\t')
		default:
			r.readCSV(',')
		}
	}
}

type reader struct {
	text   string
	wanted func() bool
	yield  func(Row) bool
	count  int // rows read
}

// fault yields a fault, and reports whether reading continues.
func (r *reader) fault(line, column int, code decode.Code, format string, args ...any) bool {
	return r.yield(Row{Line: line, Column: column, Code: code, Fault: fmt.Sprintf(format, args...)})
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
	for more := true; more; {
		record, err := cr.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.csvFault(err)
			return
		}
		line, _ := cr.FieldPos(0)
		if r.count++; !r.wanted() {
			continue
		}
		if len(record) != len(header) {
			more = r.fault(line, 1, decode.CodeDatasetColumns,
				"row %d has %d fields, but the header has %d", r.count, len(record), len(header))
			continue
		}
		columns := make(map[string]string, len(header))
		for i, name := range header {
			columns[name] = record[i]
		}
		more = r.yield(Row{Line: line, Columns: columns})
	}
}

// header checks the column names and returns a copy of them, unless they have faults.
func (r *reader) header(cr *csv.Reader, record []string) (names []string, ok bool) {
	names = make([]string, len(record))
	seen, ok, more := map[string]bool{}, true, true
	for i, name := range record {
		names[i] = strings.TrimSpace(name)
		line, column := cr.FieldPos(i)
		switch {
		case names[i] == "":
			ok, more = false, r.fault(line, column, decode.CodeDatasetColumns, "column %d has no name", i+1)
		case seen[names[i]]:
			ok, more = false, r.fault(line, column, decode.CodeDatasetColumns, "duplicate column name %q", text.Clip(names[i], 60))
		}
		if !more {
			return nil, false
		}
		seen[names[i]] = true
	}
	if len(names) == 1 && strings.Contains(names[0], ";") {
		r.fault(1, 1, decode.CodeDatasetColumns, "columns must be separated by commas, not semicolons")
		return nil, false
	}
	return names, ok
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
	line := 0
	for text := range strings.SplitSeq(r.text, "\n") {
		line++
		if strings.TrimSpace(text) == "" || !r.wanted() {
			continue
		}
		row := Row{Line: line}
		var err error
		if row.Columns, row.Column, err = jsonColumns(text); err != nil {
			row.Code, row.Fault = decode.CodeDatasetSyntax, err.Error()
		}
		if !r.yield(row) {
			return
		}
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
