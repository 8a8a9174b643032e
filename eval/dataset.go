package eval

import (
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/internal/dataset"
	"waza/eval/template"
	"waza/eval/text"
)

// Limits of a dataset besides its size: maxCells limits rows times variables, maxRowFaults the
// reports about one file in which every row has the same fault.
const (
	maxCells     = 4_000_000
	maxRowFaults = 20
)

// addDataset reads the tasks of tasks_from: the rows of a CSV, TSV or JSONL file, or
// the tasks of a YAML file.
func (ts *taskSet) addDataset() {
	l := ts.loader
	at := decode.Place(l.src.Root, "tasks_from")
	name := filepath.FromSlash(strings.TrimSpace(l.suite.TasksFrom))
	file := filepath.Join(l.suite.Dir, name)
	if !filepath.IsLocal(name) || !files.Within(l.suite.Dir, file) {
		l.Reportf(l.src, at, decode.Error, decode.CodeEscapingPath, "tasks_from must be a relative path inside the suite's directory")
		return
	}
	ext := strings.ToLower(filepath.Ext(name))
	limit := int64(maxDatasetBytes)
	if ext == ".yaml" || ext == ".yml" {
		limit = maxYAMLBytes
	}
	data, err := l.readFile(file, limit)
	if err != nil {
		l.reportUnreadable(file, l.src, at, err)
		return
	}
	if ext == ".yaml" || ext == ".yml" {
		ts.addYAMLDataset(file, data)
		return
	}
	text, offset, err := decode.PlainText(data, false)
	if err != nil {
		line := 1 + strings.Count(text[:offset], "\n")
		l.Report(decode.Diagnostic{File: l.display(file), Line: line, Column: 1, Severity: decode.Error, Code: decode.CodeNotText,
			Message: err.Error()})
		return
	}
	r := &rows{set: ts, file: file, name: l.display(file), rel: l.relative(file), text: text, at: at}
	for row := range dataset.Read(text, ext, r.wanted) {
		if row.Fault != "" {
			r.fault(row.Line, row.Column, row.Code, "%s", row.Fault)
		} else {
			r.addRow(row.Line, row.Columns)
		}
		if r.stop {
			break
		}
	}
	r.finish()
}

// addYAMLDataset adds the tasks of another YAML file: a list, or a map with tasks.
func (ts *taskSet) addYAMLDataset(file string, data []byte) {
	l := ts.loader
	ts.files[file] = true
	src := l.parse(file, data)
	if src.Root == nil {
		return
	}
	list := src.Root
	if n := decode.Follow(list); n.Kind == yaml.MappingNode {
		if list = decode.Lookup(n, "tasks"); list == nil {
			l.Reportf(src, n, decode.Error, decode.CodeMissingField, "tasks is missing")
			return
		}
	}
	if l.suite.Range != nil {
		l.reportAt(decode.Warning, decode.CodeNoEffect, decode.At("range"), "range has no effect when tasks_from is a YAML file")
	}
	ts.addEntries(src, list)
}

// rows makes tasks from the rows of a dataset.
type rows struct {
	set    *taskSet
	file   string
	name   string // the file's name in findings
	rel    string
	text   string
	at     *yaml.Node // tasks_from
	count  int        // rows read
	used   int        // rows within the range
	cells  int
	faults int
	empty  int             // prompts without text
	warned map[string]bool // unknown variables reported
	skills *[]string       // of every row; nil before the first
	stop   bool
}

// fault reports a fault of a row. column is in bytes from 1; 0 when unknown.
func (r *rows) fault(line, column int, code decode.Code, format string, args ...any) {
	if r.faults++; r.faults > maxRowFaults {
		r.stop = true
		r.report(line, 1, decode.Error, code, "too many faults; waza skips the rest of the file")
		return
	}
	if column > 1 {
		row := text.Line(r.text, line)
		column = utf8.RuneCountInString(row[:min(column-1, len(row))]) + 1
	}
	r.report(line, max(column, 1), decode.Error, code, fmt.Sprintf(format, args...))
}

func (r *rows) report(line, column int, severity decode.Severity, code decode.Code, message string) {
	r.set.loader.Report(decode.Diagnostic{File: r.name, Line: line, Column: column, Severity: severity, Code: code, Message: message})
}

// wanted counts a row and reports whether it is in the suite's range.
func (r *rows) wanted() bool {
	r.count++
	rng := r.set.loader.suite.Range
	if rng != nil && (r.count < rng[0] || r.count > rng[1]) {
		return false
	}
	r.used++
	return true
}

func (r *rows) addRow(line int, columns map[string]string) {
	l := r.set.loader
	vars := columns
	if inputs := l.suite.Inputs; len(inputs) > 0 {
		vars = maps.Clone(inputs)
		maps.Copy(vars, columns)
	}
	if r.cells += len(vars); r.cells > maxCells {
		r.fault(line, 1, decode.CodeTooLarge, "the dataset has more than %d values", maxCells)
		r.stop = true
		return
	}
	id := "row-" + strconv.Itoa(r.count)
	for _, key := range []string{"name", "id"} {
		if v := strings.TrimSpace(columns[key]); v != "" {
			id = v
		}
	}
	t := &Task{File: r.file, RelFile: r.rel, Line: line, ID: id, Name: id, Enabled: true, Vars: vars, Literal: r.set.loader.suite.Literal,
		ScoreThreshold: r.set.loader.suite.ScoreThreshold}
	if v := strings.TrimSpace(columns["name"]); v != "" {
		t.Name = v
	}
	prompt, ok := vars["prompt"]
	if !ok {
		r.fault(line, 1, decode.CodeDatasetNoPrompt, "neither the dataset nor the suite's inputs have a prompt; add a prompt column")
		r.stop = true
		return
	}
	if strings.TrimSpace(prompt) == "" {
		r.reportEmptyPrompt(line)
	}
	t.Inputs.Prompt = prompt
	r.add(t)
}

// reportEmptyPrompt warns about the first prompts without text.
func (r *rows) reportEmptyPrompt(line int) {
	if r.empty++; r.empty <= maxRowFaults {
		r.report(line, 1, decode.Warning, decode.CodeDatasetNoPrompt, fmt.Sprintf("row %d has an empty prompt, which is sent unchanged", r.count))
	}
}

func (r *rows) add(t *Task) {
	l := r.set.loader
	if first := r.set.ids[t.ID]; first != nil {
		r.fault(t.Line, 1, decode.CodeDuplicateID, "duplicate task id %q; it is first used at %s:%d",
			text.Clip(t.ID, 80), l.display(first.File), first.Line)
		return
	}
	if !r.set.register(t, &decode.Source{Name: r.name}, &yaml.Node{Line: t.Line, Column: 1}) {
		r.stop = true
		return
	}
	row := &taskCheck{loader: l, src: &decode.Source{Name: r.name}, node: &yaml.Node{Line: t.Line, Column: 1}, task: t}
	(&fixtureCheck{taskCheck: row}).setTexts(t.Inputs.Prompt, nil)
	r.checkVariables(t)
	if r.skills == nil {
		r.skills = &[]string{}
		*r.skills = l.skills.forTask(t, &taskCheck{loader: l, src: l.src, node: l.src.Root, task: t})
	}
	t.Skills = *r.skills // all rows have the same
	r.set.tasks = append(r.set.tasks, t)
}

// checkVariables reports each unknown variable once per file, and a prompt that becomes too
// long.
func (r *rows) checkVariables(t *Task) {
	if !strings.Contains(t.Inputs.Prompt, "{{") {
		return
	}
	if !t.fits(t.Inputs.Prompt) {
		r.fault(t.Line, 1, decode.CodeTooLarge, "row %d: %s", r.count, &template.TooLongError{Text: t.Inputs.Prompt, Limit: MaxExpandedBytes})
	}
	params := r.set.loader.suite.Config.Matrix.names()
	_, exprs := t.unknownVariables(t.Inputs.Prompt, params)
	for _, expr := range exprs {
		if r.warned[expr] {
			continue
		}
		if r.warned == nil {
			r.warned = map[string]bool{}
		}
		r.warned[expr] = true
		if len(r.warned) > maxRowFaults {
			return
		}
		d := decode.Diagnostic{File: r.name, Line: t.Line, Column: 1, Severity: decode.Warning, Code: decode.CodeUnknownVariable,
			Message: fmt.Sprintf("unknown variable %q; the text is sent unchanged", expr)}
		if near := decode.Nearest(strings.TrimPrefix(expr, "."), t.variableNames(params)); near != "" {
			d.Suggestion = "{{" + near + "}}"
		}
		r.set.loader.Report(d)
	}
}

// finish checks the range, and that the dataset has rows.
func (r *rows) finish() {
	l := r.set.loader
	if rng := l.suite.Range; rng != nil {
		switch {
		case rng[0] < 1 || rng[1] < rng[0]:
			l.reportAt(decode.Error, decode.CodeDatasetRange, decode.At("range"),
				"range must be [first, last] with 1 ≤ first ≤ last, got [%d, %d]", rng[0], rng[1])
			return
		case r.faults == 0 && r.count > 0 && rng[0] > r.count:
			l.reportAt(decode.Error, decode.CodeDatasetRange, decode.At("range"),
				"range starts at row %d, but %s has only %d", rng[0], r.name, r.count)
			return
		case r.faults == 0 && r.count > 0 && rng[1] > r.count:
			l.reportAt(decode.Warning, decode.CodeDatasetRange, decode.At("range"),
				"range ends at row %d, but %s has only %d", rng[1], r.name, r.count)
		}
	}
	if r.count == 0 && r.faults == 0 {
		r.report(0, 0, decode.Error, decode.CodeDatasetEmpty, "the dataset has no rows")
	}
}
