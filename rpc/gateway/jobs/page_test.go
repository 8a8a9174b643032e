package jobs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// pageTable describes what the pages of another project read in messages, see
// testdata/page.txtar.
type pageTable struct {
	fields, lines []pageRow

	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// pageRow applies to some messages of a type.
type pageRow struct {
	message string // as in the file: type and conditions
	kind    string
	when    map[string]string // values of members; empty for any value
	rest    string            // field and type, or line
}

func readPageTable(t *testing.T) *pageTable {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/page.txtar")
	require.NoError(t, err)
	table := &pageTable{seen: map[string]bool{}}
	for i, into := range []*[]pageRow{&table.fields, &table.lines} {
		for line := range strings.Lines(string(archive.Files[i].Data)) {
			message, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok {
				continue
			}
			row := pageRow{message: message, when: map[string]string{}, rest: strings.TrimSpace(rest)}
			row.kind, message, _ = strings.Cut(strings.TrimSuffix(message, ")"), "(")
			for condition := range strings.SplitSeq(message, ",") {
				if name, value, _ := strings.Cut(condition, "="); name != "" {
					row.when[name] = value
				}
			}
			*into = append(*into, row)
		}
	}
	return table
}

// requireAllSeen fails the test when no message had a row's type and members. Call it at the end
// of a test that reads all dialogues.
func (p *pageTable) requireAllSeen(t *testing.T) {
	t.Helper()
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // some dialogues were not played
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range p.fields {
		if !p.seen[row.message] {
			t.Errorf("no dialogue has the message %s", row.message)
		}
	}
}

// pageReader reads the messages to the clients of a server as a page does.
type pageReader struct {
	table *pageTable

	mu    sync.Mutex
	kinds map[string]string      // by job
	tabs  map[string]*pageCounts // by client
}

// pageCounts are the numbers that a page computes from several messages of a job.
type pageCounts struct{ cases, combos, total float64 }

func newPageReader(table *pageTable) *pageReader {
	return &pageReader{table: table, kinds: map[string]string{}, tabs: map[string]*pageCounts{}}
}

// read returns the faults that a page would show after the message.
func (p *pageReader) read(client, text string) (faults []string) {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return []string{err.Error()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learn(m)
	for _, row := range p.table.fields {
		if !p.applies(&row, m) {
			continue
		}
		p.table.mu.Lock()
		p.table.seen[row.message] = true
		p.table.mu.Unlock()
		field, kind, _ := strings.Cut(row.rest, " ")
		kind = strings.TrimSpace(kind)
		for _, object := range objects(m, field) {
			if value, ok := member(object, fieldOf(field)); !ok || !isOf(kind, value) {
				faults = append(faults, fmt.Sprintf("%s: %s must be of type %s, got %v", row.message, field, kind, value))
			}
		}
	}
	if line := p.show(m); strings.Contains(line, "undefined") || strings.Contains(line, "NaN") || strings.Contains(line, "/0") {
		faults = append(faults, "the page shows "+line)
	}
	return append(faults, p.count(client, m)...)
}

// learn remembers the kinds of jobs.
func (p *pageReader) learn(m map[string]any) {
	if id, ok := m["job_id"].(string); ok && m["job_type"] != nil {
		p.kinds[id] = fmt.Sprint(m["job_type"])
	}
	active, _ := m["active_jobs"].([]any)
	for _, j := range active {
		if job, ok := j.(map[string]any); ok {
			p.kinds[fmt.Sprint(job["id"])] = fmt.Sprint(job["job_type"])
		}
	}
}

// count compares the numbers of several messages, as the page's progress bars do.
func (p *pageReader) count(client string, m map[string]any) (faults []string) {
	key := fmt.Sprint(client, " ", m["job_id"])
	tab := p.tabs[key]
	if tab == nil {
		tab = &pageCounts{}
		p.tabs[key] = tab
	}
	number := func(field string) float64 {
		value, _ := member(m, field)
		n, _ := value.(float64)
		return n
	}
	switch m["type"] {
	case "tool_eval_init":
		targets, _ := member(m, "data.targets")
		list, _ := targets.([]any)
		tab.cases = float64(len(list)) * number("data.total_cases")
	case "tool_eval_progress":
		if total := number("data.total"); tab.cases > 0 && tab.cases != total {
			faults = append(faults, fmt.Sprintf("the page shows 0/%v cases at first, and %v/%v then", tab.cases, number("data.current"), total))
		}
	case "tune_start":
		tab.combos, tab.total = 0, number("total_combos")
	case "combo_result":
		if tab.combos++; tab.total > 0 && tab.combos > tab.total {
			faults = append(faults, fmt.Sprintf("the page shows combo %v/%v", tab.combos, tab.total))
		}
	}
	return faults
}

// shows returns the line that a page shows for a message; empty without one.
func (p *pageReader) shows(text string) string {
	var m map[string]any
	if json.Unmarshal([]byte(text), &m) != nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.show(m)
}

var pagePlace = regexp.MustCompile(`\{([\w.]+)(\*100|\+1)?\}`)

// show fills in the line of a message like JavaScript.
func (p *pageReader) show(m map[string]any) string {
	i := slices.IndexFunc(p.table.lines, func(row pageRow) bool { return p.applies(&row, m) })
	if i < 0 {
		return ""
	}
	return pagePlace.ReplaceAllStringFunc(p.table.lines[i].rest, func(place string) string {
		parts := pagePlace.FindStringSubmatch(place)
		value, ok := member(m, parts[1])
		n, isNumber := value.(float64)
		switch {
		case !ok && parts[2] == "":
			return "undefined"
		case !ok, value != nil && !isNumber && parts[2] != "":
			return "NaN"
		case parts[2] == "*100":
			return strconv.FormatFloat(math.Round(n*1000)/10, 'f', -1, 64)
		case parts[2] == "+1":
			return strconv.FormatFloat(n+1, 'f', -1, 64)
		case value == nil:
			return "0"
		}
		return fmt.Sprint(value)
	})
}

func (p *pageReader) applies(row *pageRow, m map[string]any) bool {
	if row.kind != m["type"] {
		return false
	}
	for name, want := range row.when {
		value, ok := member(m, name)
		if !ok && name == "job_type" {
			value, ok = p.kinds[fmt.Sprint(m["job_id"])], true
		}
		if !ok || want != "" && fmt.Sprint(value) != want {
			return false
		}
	}
	return true
}

// fieldOf returns the part of a path below a list, if any.
func fieldOf(path string) string {
	if _, field, ok := strings.Cut(path, "[]."); ok {
		return field
	}
	return path
}

// objects returns the objects that have the field of a path: the message, or the objects of a
// list whose path ends with [].
func objects(m map[string]any, path string) (found []map[string]any) {
	list, _, nested := strings.Cut(path, "[].")
	if !nested {
		return []map[string]any{m}
	}
	value, _ := member(m, list)
	items, _ := value.([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		found = append(found, object)
	}
	return found
}

// member returns a member of a message by its path.
func member(m map[string]any, path string) (any, bool) {
	name, rest, nested := strings.Cut(path, ".")
	value, ok := m[name]
	if !nested || !ok {
		return value, ok
	}
	inner, _ := value.(map[string]any)
	return member(inner, rest)
}

// isOf reports whether a value has a type of the table.
func isOf(kind string, value any) bool {
	kind, optional := strings.CutSuffix(kind, "?")
	if value == nil {
		return optional
	}
	n, isNumber := value.(float64)
	text, isText := value.(string)
	switch kind {
	case "text":
		return isText && text != ""
	case "time":
		_, err := time.Parse(time.RFC3339, text)
		return err == nil
	case "count":
		return isNumber && n >= 1 && n == math.Trunc(n)
	case "index":
		return isNumber && n >= 0 && n == math.Trunc(n)
	case "number":
		return isNumber
	case "share":
		return isNumber && n >= 0 && n <= 1
	case "percent":
		return isNumber && n >= 0 && n <= 100
	case "bool":
		_, ok := value.(bool)
		return ok
	case "object":
		_, ok := value.(map[string]any)
		return ok
	case "list":
		_, ok := value.([]any)
		return ok
	}
	panic("unknown type " + kind)
}

// The reader finds what a page would show wrongly.
func TestPageReaderFindsFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"generation_start","generation":0}`: "the page shows Generation 0/undefined",
		`{"type":"combo_result","data":{}}`: "the page shows undefined score NaN% " +
			"tool undefined% param undefined% undefined/undefined",
		`{"type":"benchmark_result","data":{"type":"result","success":true,` +
			`"cost":null}}`: "benchmark_result(data.type=result): data.cost must be of type number, got <nil>",
		`{"type":"prompt_eval_result","model_id":"m","overall_score":80,` +
			`"tool_accuracy":1}`: "prompt_eval_result: overall_score must be of type share?, got 80",
		`{"type":"tune_start","tune_id":"t","job_id":"t","job_type":"prompt_tune",` +
			`"suite_name":"s"}`: "tune_start(job_type=prompt_tune): total_prompts must be of type count, got <nil>",
		`{"type":"tool_eval_result","data":{"tool_selection_score":1,` +
			`"expected_tool":null}}`: "tool_eval_result(data.tool_selection_score=1): data.expected_tool must be of type text, got <nil>",
		`{"type":"combo_result",` +
			`"data":{"case_results":[{"expected_tool":"x"}]}}`: "combo_result: data.case_results[].actual_tool must be of type text?, got <nil>",
		`{"type":"judge_report","report":{"overall_grade":"A",` +
			`"overall_score":1}}`: "judge_report: report.strengths must be of type list, got <nil>",
	} {
		require.Contains(t, newPageReader(readPageTable(t)).read("a", text), want, text)
	}
	p := newPageReader(readPageTable(t))
	p.read("a", `{"type":"tool_eval_init","job_id":"j","data":{"targets":[{},{}],"total_cases":4,"suite_name":"s"}}`)
	require.Equal(t, []string{"the page shows 0/8 cases at first, and 1/4 then"},
		p.read("a", `{"type":"tool_eval_progress","job_id":"j","data":{"current":1,"total":4,"model":"m"}}`))
}
