package promptfoo

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// tests returns the tests of the configuration and of the files that it names: maps, each with its
// file.
func (tr *translator) tests() []part {
	n := decode.Follow(decode.Lookup(tr.root, "tests"))
	all := part{n, tr.Source}
	switch {
	case decode.IsNull(n) || n == nil:
		if decode.Lookup(tr.root, "redteam") != nil || decode.Lookup(tr.root, "scenarios") != nil {
			return nil
		}
		return []part{{dialect.NewMap(tr.root).Node, tr.Source}} // the prompts alone
	case decode.IsText(n):
		return tr.testsIn(all, n.Value)
	case isGenerator(all):
		return tr.generated(all)
	case n.Kind != yaml.SequenceNode:
		tr.cannot(n, "tests that are no list, got %s", decode.Describe(n))
		return nil
	}
	var tests []part
	for i, item := range all.items() {
		switch {
		case decode.IsText(item.Node):
			tests = append(tests, tr.testsIn(item, item.Value)...)
		case isGenerator(item):
			tests = append(tests, tr.generated(item)...)
		case item.Node != nil && item.Kind == yaml.MappingNode:
			tests = append(tests, item)
		default:
			tr.cannot(item.Node, "tests[%d]: a test must be a map or the name of a file, got %s", i, decode.Describe(item.Node))
		}
	}
	return tests
}

// testsIn returns the tests of the files that a text names.
func (tr *translator) testsIn(at part, ref string) (tests []part) {
	file, _ := splitFunction(ref)
	service, _, isAddress := strings.Cut(ref, "://")
	switch {
	case isAddress && service != "file":
		tr.cannot(at.Node, "tests at %s: save them as a file, and name the file", text.Clip(ref, 80))
		return nil
	case isCode(ref):
		return tr.testsFrom(at, ref, part{nil, at.src})
	case strings.HasPrefix(filepath.Ext(file), ".xls"):
		tr.cannot(at.Node, "tests in %s: write them to a YAML, JSON or CSV file", text.Clip(ref, 80))
		return nil
	}
	if info, err := tr.Files.Stat(tr.path(ref)); err == nil && info.IsDir() {
		ref = strings.TrimSuffix(ref, "/") + "/*.{yaml,yml,json,jsonl,csv}"
	}
	files, err := tr.glob(ref)
	for _, file := range files {
		var found []part
		if found, err = tr.testsOf(file); err != nil {
			break
		}
		tests = append(tests, found...)
	}
	if err != nil {
		tr.cannot(at.Node, "tests in %s: %v", text.Clip(ref, 80), err)
	}
	return tests
}

// isGenerator reports whether a test names a program of tests with its config.
func isGenerator(p part) bool {
	return p.Node != nil && p.Kind == yaml.MappingNode && decode.IsText(p.get("path").Node)
}

// generated returns the tests of a file that is named with a config.
func (tr *translator) generated(p part) []part {
	tr.refuse(p, "tests.", []string{"path", "config"})
	at, config := p.get("path"), p.get("config")
	if !isCode(at.text()) {
		if config.Node != nil {
			tr.warn(config, "the config of tests has no effect: %s is no program", text.Clip(at.text(), 80))
		}
		return tr.testsIn(at, at.text())
	}
	return tr.testsFrom(at, at.text(), config)
}

// testsFrom returns the tests that a program returns, or one in place of them if it has not run.
func (tr *translator) testsFrom(at part, ref string, config part) []part {
	list, err := tr.runTests(ref, config)
	var notRun *errNotRun
	if errors.As(err, &notRun) {
		tr.note(at, notRun)
		n := dialect.NewMap(at.Node).Node
		tr.pending[n] = notRun
		return []part{{n, at.src}}
	}
	if err != nil {
		tr.cannotAt(at, "tests in %s: %v", text.Clip(ref, 80), err)
		return nil
	}
	var tests []part
	for i, n := range list.Content {
		if n = decode.Follow(n); n.Kind != yaml.MappingNode {
			tr.cannotAt(at, "tests in %s: test %d must be a map, got %s", text.Clip(ref, 80), i+1, decode.Describe(n))
			return nil
		}
		placeAt(n, at.Node)
		tests = append(tests, part{n, at.src})
	}
	return tests
}

// runTests returns the list that a program of tests returns.
func (tr *translator) runTests(ref string, config part) (*yaml.Node, error) {
	p, err := tr.functionOf(ref, useTests)
	if err != nil {
		return nil, err
	}
	var arguments []any
	if config.Node != nil {
		value, err := valueOf(config.Node)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		if strings.Contains(literal(value), `"`+filePrefix) {
			return nil, errors.New("config: waza reads no files for it")
		}
		arguments = []any{value}
	}
	list, err := tr.run(p, arguments...)
	if err == nil && (list == nil || list.Kind != yaml.SequenceNode) {
		err = fmt.Errorf("the program must return a list of tests, got %s", decode.Describe(list))
	}
	return list, err
}

// placeAt gives a node and all below it the place of another one.
func placeAt(n, at *yaml.Node) {
	n.Line, n.Column = at.Line, at.Column
	for _, child := range n.Content {
		placeAt(child, at)
	}
}

// testsOf returns the tests of a file.
func (tr *translator) testsOf(file string) ([]part, error) {
	ext := strings.ToLower(filepath.Ext(file))
	switch ext {
	case ".csv":
		return tr.rowsOf(file)
	case ".jsonl":
		return tr.linesOf(file)
	case ".yaml", ".yml", ".json":
	default:
		return nil, fmt.Errorf("%s has none of the extensions .yaml, .yml, .json, .jsonl and .csv", tr.Files.Shown(file))
	}
	src, err := tr.parse(file)
	if err != nil || src.Root == nil {
		return nil, err // the parser has reported its faults
	}
	root := part{decode.Follow(src.Root), src}
	if root.Node != nil && root.Kind == yaml.MappingNode {
		return []part{root}, nil
	}
	var tests []part
	for i, item := range root.items() {
		switch {
		case decode.IsText(item.Node) && strings.HasPrefix(item.Value, filePrefix) && tr.filesDeep < maxFilesDeep:
			tr.filesDeep++
			tests = append(tests, tr.testsIn(item, item.Value)...)
			tr.filesDeep--
		case item.Node != nil && item.Kind == yaml.MappingNode:
			tests = append(tests, item)
		default:
			tr.Reportf(src, item.Node, decode.Error, decode.CodeInvalidValue, "item %d: a test must be a map, got %s", i+1, decode.Describe(item.Node))
		}
	}
	return tests, nil
}

// maxFilesDeep limits files of tests that name files of tests.
const maxFilesDeep = 5

// linesOf returns the tests of a file with one in each line.
func (tr *translator) linesOf(file string) (tests []part, err error) {
	content, err := tr.read(file)
	if err != nil {
		return nil, err
	}
	src := decode.NewSource(file, tr.Files.Shown(file), content)
	number := 0
	for line := range strings.Lines(content) {
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		var doc yaml.Node
		if !json.Valid([]byte(line)) || yaml.Unmarshal([]byte(line), &doc) != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
			tr.Reportf(src, &yaml.Node{Line: number, Column: 1}, decode.Error, decode.CodeInvalidValue, "a test must be a JSON object")
			continue
		}
		moveTo(&doc, number)
		tests = append(tests, part{doc.Content[0], src})
	}
	return tests, nil
}

// moveTo sets the line of a node and all below it.
func moveTo(n *yaml.Node, line int) {
	n.Line = line
	for _, child := range n.Content {
		moveTo(child, line)
	}
}

// rowsOf returns the tests of a table. Columns are variables, apart from those that start with two
// underscores.
func (tr *translator) rowsOf(file string) (tests []part, err error) {
	content, err := tr.read(file)
	if err != nil {
		return nil, err
	}
	src := decode.NewSource(file, tr.Files.Shown(file), content)
	r := csv.NewReader(strings.NewReader(content))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty", src.Name)
	}
	for number := 1; err == nil; number++ {
		var row []string
		if row, err = r.Read(); err != nil {
			break
		}
		line, _ := r.FieldPos(0)
		at := &yaml.Node{Line: line, Column: 1}
		if len(row) > len(header) {
			tr.Reportf(src, at, decode.Error, decode.CodeInvalidValue, "row %d has %d columns, and the first row %d", number, len(row), len(header))
			continue
		}
		tests = append(tests, part{tr.row(part{at, src}, number, header, row), src})
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	return tests, nil
}

// row returns a row of a table as a test.
func (tr *translator) row(at part, number int, header, row []string) *yaml.Node {
	test, vars, options := dialect.NewMap(at.Node), dialect.NewMap(at.Node), dialect.NewMap(at.Node)
	asserts := dialect.List(at.Node)
	thresholds := map[int]*yaml.Node{} // by the position of the assertion
	metric := ""
	test.Set("description", dialect.Scalar(at.Node, fmt.Sprintf("Row #%d", number)))
	for i, name := range header {
		if i >= len(row) {
			break
		}
		name, value := strings.TrimSpace(name), row[i]
		cell := dialect.Scalar(at.Node, value)
		position, isConfig := positionOf(name)
		switch {
		case strings.HasPrefix(name, "__expected"):
			if value = strings.TrimSpace(value); value != "" {
				asserts.Content = append(asserts.Content, tr.assertionOf(at, value))
			}
		case isConfig && strings.TrimSpace(value) != "":
			thresholds[position] = numberNode(at.Node, value)
		case name == "__providerOutput" && value != "":
			test.Set("providerOutput", cell) // which blocks the case
		case name == "__prefix" || name == "__suffix":
			options.Set(strings.TrimPrefix(name, "__"), cell)
		case name == "__description":
			if value != "" {
				test.Set("description", cell)
			}
		case name == "__metric":
			metric = value
		case name == "__threshold":
			if f, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && f != 0 {
				test.Set("threshold", dialect.Scalar(at.Node, f))
			} else if err != nil && value != "" {
				test.Set("threshold", cell) // which blocks the case
			}
		case strings.HasPrefix(name, "__"):
			if value != "" {
				tr.warn(at, "the column %s has no effect", text.Clip(name, 40))
			}
		default:
			vars.Set(name, cell)
		}
	}
	for i, a := range asserts.Content {
		if thresholds[i] != nil {
			dialect.Map{Node: a}.Set("threshold", thresholds[i])
		}
		if metric != "" {
			dialect.Map{Node: a}.Set("metric", dialect.Scalar(at.Node, metric))
		}
	}
	test.Set("vars", vars.Node)
	test.Set("assert", asserts)
	test.Set("options", options.Node)
	return test.Node
}

// numberNode returns the number in a cell, or its text if it contains none.
func numberNode(at *yaml.Node, cell string) *yaml.Node {
	if f, err := strconv.ParseFloat(strings.TrimSpace(cell), 64); err == nil {
		return dialect.Scalar(at, f)
	}
	return dialect.Scalar(at, cell)
}

// thresholdColumn matches the name of a column with thresholds of the assertions in another one.
var thresholdColumn = text.Pattern(`^__config:__expected(\d{0,3}):threshold$`)

// positionOf returns the position of the assertion in the row whose threshold is in a column.
func positionOf(column string) (position int, ok bool) {
	m := thresholdColumn().FindStringSubmatch(column)
	if m == nil {
		return 0, false
	}
	number, err := strconv.Atoi(firstOf(m[1], "1"))
	return number - 1, err == nil
}

// shortAssertion matches the text of an assertion in a table: TYPE, TYPE:VALUE or
// TYPE(THRESHOLD):VALUE.
var shortAssertion = text.Pattern(`^((?:not-)?(?:trajectory:)?[a-z][a-z0-9-]*?)(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?$`)

// cellThresholds are the types whose assertions in tables have a threshold, with the default.
var cellThresholds = map[string]float64{
	"answer-relevance": 0.75, "classifier": 0.75, "context-faithfulness": 0.75, "context-recall": 0.75, "context-relevance": 0.75,
	"cost": 0.75, "latency": 0.75, "levenshtein": 0.75, "perplexity": 0.75, "perplexity-score": 0.75, "rouge-n": 0.75, "similar": 0.8,
	"starts-with": 0.75,
}

// assertionOf returns the assertion that a cell of a table means, a text without space around it.
func (tr *translator) assertionOf(row part, cell string) *yaml.Node {
	at := row.Node
	a := dialect.NewMap(at)
	set := func(kind, value string) *yaml.Node {
		a.Set("type", dialect.Scalar(at, kind))
		a.Set("value", dialect.Scalar(at, value))
		return a.Node
	}
	for _, short := range []struct{ prefix, kind string }{
		{"javascript:", "javascript"}, {"fn:", "javascript"}, {"eval:", "javascript"},
		{"grade:", "llm-rubric"}, {"llm-rubric:", "llm-rubric"}, {"python:", "python"},
	} {
		if value, ok := strings.CutPrefix(cell, short.prefix); ok {
			return set(short.kind, strings.TrimSpace(value))
		}
	}
	if file, _ := splitFunction(cell); strings.HasPrefix(cell, filePrefix) && isCode(cell) {
		if filepath.Ext(file) == ".py" {
			return set("python", cell)
		}
		return set("javascript", cell)
	}
	m := shortAssertion().FindStringSubmatch(cell)
	if m == nil || !slices.Contains(assertionTypes, strings.TrimPrefix(m[1], "not-")) {
		return set("equals", cell)
	}
	a.Set("type", dialect.Scalar(at, m[1]))
	base := strings.TrimPrefix(m[1], "not-")
	switch {
	case slices.Contains([]string{"contains-all", "contains-any", "icontains-all", "icontains-any"}, base):
		list := dialect.List(at)
		for item := range strings.SplitSeq(m[3], ",") {
			list.Content = append(list.Content, dialect.Scalar(at, strings.TrimSpace(item)))
		}
		a.Set("value", list)
	case strings.TrimSpace(m[3]) != "":
		a.Set("value", dialect.Scalar(at, strings.TrimSpace(m[3])))
	}
	usual, hasThreshold := cellThresholds[base]
	switch f, err := strconv.ParseFloat(m[2], 64); {
	case hasThreshold && err == nil:
		a.Set("threshold", dialect.Scalar(at, f))
	case hasThreshold:
		a.Set("threshold", dialect.Scalar(at, usual))
	case err == nil:
		tr.warn(row, "(%s) has no effect: %s has no threshold in tables; write it into the column __config:__expected:threshold", m[2], base)
	}
	return a.Node
}

// A variable is one of a test.
type variable struct {
	name   string
	values []any // more than one multiply the test
	isList bool  // also if it is a list of one
	reason string
	fault  error // of a program that makes variables
}

// addVars adds the variables of a test to those of the default test, or replaces them.
func (tr *translator) addVars(vars []variable, p part, expand bool) []variable {
	n := p.Node
	var pairs []decode.Pair
	switch {
	case n == nil || decode.IsNull(n):
		return vars
	case n.Kind == yaml.MappingNode:
		pairs = dialect.Pairs(n)
	case decode.IsText(n) || n.Kind == yaml.SequenceNode: // files
		refs := dialect.Items(n)
		if decode.IsText(n) {
			refs = []*yaml.Node{n}
		}
		for _, ref := range refs {
			vars = tr.addVarsOf(vars, part{ref, p.src}, expand)
		}
		return vars
	default:
		return setVariable(vars, variable{reason: "vars must be a map, got " + decode.Describe(n)})
	}
	for _, pair := range pairs {
		v := tr.variable(pair, expand)
		if vars = setVariable(vars, v); !tr.spend(sizeOf(v.values)) {
			break
		}
	}
	return vars
}

// addVarsOf adds the variables of files.
func (tr *translator) addVarsOf(vars []variable, ref part, expand bool) []variable {
	files, err := tr.glob(ref.text())
	for _, file := range files {
		var src *decode.Source
		if src, err = tr.parse(file); err != nil {
			break
		}
		if root := decode.Follow(src.Root); root != nil && root.Kind == yaml.MappingNode {
			vars = tr.addVars(vars, part{root, src}, expand)
		} else {
			err = fmt.Errorf("the file %s is no map of variables", tr.Files.Shown(file))
		}
	}
	if err != nil {
		vars = setVariable(vars, variable{reason: "vars: " + err.Error()})
	}
	return vars
}

func setVariable(vars []variable, v variable) []variable {
	vars = slices.Clone(vars)
	if i := slices.IndexFunc(vars, func(other variable) bool { return other.name == v.name && v.name != "" }); i >= 0 {
		vars[i] = v
		return vars
	}
	return append(vars, v)
}

// variable returns a variable with its values.
func (tr *translator) variable(p decode.Pair, expand bool) variable {
	v := variable{name: p.Key.Value}
	value, err := valueOf(p.Value)
	if err != nil {
		v.reason = fmt.Sprintf("the variable %s: %v", text.Clip(v.name, 60), err)
		return v
	}
	list, isList := value.([]any)
	if _, ofTexts := firstItem(list).(string); expand && isList && ofTexts {
		v.values, v.isList = list, true
	} else {
		v.values = []any{value}
	}
	var loaded []any
	for _, one := range v.values {
		ref, ok := one.(string)
		switch {
		case !ok || !strings.HasPrefix(ref, filePrefix):
			loaded = append(loaded, one)
			continue
		case isCode(ref):
			loaded = append(loaded, fileProgram(ref))
			continue
		}
		texts, err := tr.loadValues(ref)
		if err != nil {
			v.reason = fmt.Sprintf("the variable %s: %v", text.Clip(v.name, 60), err)
			return v
		}
		loaded = append(loaded, texts...)
	}
	v.values, v.isList = loaded, v.isList || len(loaded) > 1
	return v
}

func firstItem(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// mediaExtensions are those of files that promptfoo does not read as text.
var mediaExtensions = strings.Fields(".jpg .jpeg .png .gif .bmp .webp .svg .mp4 .webm .ogg .mov .avi .wmv .mkv .m4v .mp3 .wav .pdf")

// loadValues returns the texts of the files that a variable names.
func (tr *translator) loadValues(ref string) (values []any, err error) {
	files, err := tr.glob(ref)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		ext := strings.ToLower(filepath.Ext(file))
		switch {
		case slices.Contains(mediaExtensions, ext):
			return nil, fmt.Errorf("%s is no text", tr.Files.Shown(file))
		case ext == ".yaml" || ext == ".yml":
			src, err := tr.parse(file)
			if err != nil {
				return nil, err
			}
			value, err := valueOf(src.Root)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", tr.Files.Shown(file), err)
			}
			if s, isText := value.(string); isText {
				value = strconv.Quote(s)
			}
			values = append(values, textOf(value))
		default:
			content, err := tr.read(file)
			if err != nil {
				return nil, err
			}
			values = append(values, strings.TrimSpace(content))
		}
	}
	return values, nil
}
