package skillevals

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"waza/eval/dialect"
)

// expectedPrefix is before the expected output of a case without statements.
const expectedPrefix = "The result does what this says: "

// document is the content of a file of skill evals.
type document struct {
	Skill       string        `json:"skill_name"`
	Description string        `json:"description,omitempty"`
	Version     string        `json:"version,omitempty"`
	Evals       []writtenCase `json:"evals"`
}

type writtenCase struct {
	ID           any      `json:"id,omitempty"` // a number or a text
	Name         string   `json:"name,omitempty"`
	Description  string   `json:"description,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	Prompt       any      `json:"prompt"`          // a text, or a list of texts
	Skill        string   `json:"skill,omitempty"` // of a trigger test
	Should       *bool    `json:"should_trigger,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Expected     string   `json:"expected_output,omitempty"`
	Files        []any    `json:"files,omitempty"` // paths, and maps with path and content
	Expectations []any    `json:"expectations,omitempty"`
	Assertions   []any    `json:"assertions,omitempty"`
	Forbidden    []any    `json:"forbidden,omitempty"`
	Fail         []any    `json:"fail,omitempty"` // in place of Forbidden, if one of them is a negative sentence

	ForbiddenSkills []string `json:"forbidden_skills,omitempty"` // of a trigger test
}

// written is a statement with a label, or a check.
type written struct {
	Name        string   `json:"name,omitempty"`
	Text        string   `json:"text,omitempty"`
	Type        string   `json:"type,omitempty"`
	Description string   `json:"description,omitempty"`
	Path        string   `json:"path,omitempty"`
	Value       string   `json:"value,omitempty"`
	Values      []string `json:"values,omitempty"`
}

// write returns a suite as an evals.json. Every check becomes the check or statement that the
// translation reads as the same grader.
func write(d *dialect.Document) ([]dialect.File, error) {
	d.TakeUsualSkills()
	d.LoseKeys()
	if d.Skill != "" && !d.Baseline && len(d.Cases) > 0 {
		d.Lose(false, "baseline", "cases run with and without the skill")
	}
	doc := document{Skill: d.Skill, Description: d.Description, Version: d.Version, Evals: []writtenCase{}}
	if doc.Skill == "" {
		doc.Skill = d.Name
		d.Lose(false, "skill", "a file names a skill, so skill_name is the name of the suite")
	}
	for i := range d.Cases {
		w := &caseWriter{Document: d, from: &d.Cases[i]}
		doc.Evals = append(doc.Evals, w.write())
	}
	if t := d.Triggers; t != nil {
		if t.Threshold != nil {
			d.Lose(true, "trigger_tests.threshold", "cases with should_trigger need all trials; write them with --to triggers")
		}
		if t.FirstTool {
			d.Lose(true, "trigger_tests.first_tool", "the whole trial decides; write them with --to triggers")
		}
		for _, p := range t.Prompts {
			if len(p.Acceptable) > 0 {
				d.Lose(true, "acceptable skills of the trigger test "+p.Prompt, "should_trigger is about one skill")
			}
			if p.Half {
				d.Lose(false, "confidence of the trigger test "+p.Prompt, "all prompts have the same weight")
			}
			should := p.Should
			doc.Evals = append(doc.Evals, writtenCase{Prompt: p.Prompt, Skill: p.Skill, Should: &should, Reason: p.Reason, ForbiddenSkills: p.Forbidden})
		}
	}
	return dialect.JSONFile(writtenName, doc)
}

// caseWriter writes one case.
type caseWriter struct {
	*dialect.Document
	from   *dialect.Case
	to     writtenCase
	judged bool // an earlier grader asked a judge
}

func (w *caseWriter) lose(verdict bool, part, reason string) {
	w.Lose(verdict, "task "+w.from.ID+": "+part, reason)
}

func (w *caseWriter) write() writtenCase {
	c := w.from
	w.to = writtenCase{ID: c.ID, Description: c.Description, Tags: c.Tags}
	if n, err := strconv.Atoi(c.ID); err == nil && strconv.Itoa(n) == c.ID {
		w.to.ID = n
	}
	if c.Name != c.ID {
		w.to.Name = c.Name
	}
	for _, key := range c.Others {
		w.lose(true, key.Name, "")
	}
	w.writeFiles()
	w.writePrompt()
	for i := range c.Checks {
		w.writeCheck(&c.Checks[i])
	}
	if len(c.Checks) == 0 {
		w.lose(true, "verdict", "nothing checks it, and a case without checks ends in an error")
	}
	return w.to
}

func (w *caseWriter) writePrompt() {
	prompt := w.from.Prompt
	if len(w.from.Files) > 0 {
		var names []string
		for _, f := range w.from.Files {
			names = append(names, f.Path)
		}
		var listed bool
		if prompt, listed = strings.CutSuffix(prompt, inputFiles(names)); !listed {
			w.lose(false, "prompt", "readers append the list of the input files")
		}
	}
	if w.to.Prompt = prompt; len(w.from.FollowUps) > 0 {
		w.to.Prompt = append([]string{prompt}, w.from.FollowUps...)
	}
	if w.Templates && strings.Contains(strings.Join(append(w.from.FollowUps, prompt), ""), "{{") {
		w.lose(true, "prompt", "prompts have no template variables")
	}
}

// writeFiles writes the paths of files that readers find by these, from the directory above that of the
// file, or from that itself.
func (w *caseWriter) writeFiles() {
	dir := filepath.Dir(w.File)
	for _, f := range w.from.Files {
		if f.Content != nil {
			w.to.Files = append(w.to.Files, map[string]string{"path": f.Path, "content": *f.Content})
			continue
		}
		at := filepath.FromSlash(f.Path)
		if f.Source != filepath.Join(filepath.Dir(dir), at) && f.Source != filepath.Join(dir, at) {
			w.lose(true, "file "+f.Path, "its path in the workspace is not its path below the skill or the folder of the evals")
			continue
		}
		w.to.Files = append(w.to.Files, f.Path)
	}
}

// writeCheck writes a grader: the statements of a judge, or one check for each of its options.
func (w *caseWriter) writeCheck(c *dialect.Check) {
	part := fmt.Sprintf("grader %q", c.Name)
	for _, key := range c.Others {
		w.lose(true, part+" "+key.Name, "")
	}
	if w.Templates && dialect.HasVariable(c.Config) {
		w.lose(true, part, "texts of checks have no template variables")
	}
	if c.Type == "prompt" {
		w.writeStatements(c, part)
		return
	}
	if c.Weight != 1 {
		w.lose(false, part+" weight", "all checks count alike")
	}
	before := len(w.to.Assertions)
	keys := make([]string, 0, len(c.Config))
	for key := range c.Config {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if key != "syntax" && !w.writeOption(c, key) {
			w.lose(true, fmt.Sprintf("%s (%s) %s", part, c.Type, key), "")
		}
	}
	if len(keys) == 0 {
		w.lose(true, fmt.Sprintf("%s (%s)", part, c.Type), "")
	}
	if len(w.to.Assertions) > before+1 {
		w.lose(false, part, "each of its options becomes a check of its own")
	}
}

// ofText are the types of checks for the options of the grader text, ofFile those of file.
var (
	ofText = map[string]string{
		"contains_cs": "contains", "not_contains_cs": "not_contains", "regex_match": "regex", "regex_not_match": "not_regex",
		"contains": "regex", "not_contains": "not_regex",
	}
	ofFile = map[string]string{"must_exist": "file_exists", "must_not_exist": "file_not_exists"}
)

// writeOption writes an option of a grader as a check. It returns false if no check says the same.
func (w *caseWriter) writeOption(c *dialect.Check, key string) bool {
	if c.Type == "file" && key == "content_patterns" {
		return w.writeContents(c)
	}
	values, ok := dialect.TextsIn(c.Config[key])
	if !ok {
		return false
	}
	kind := ""
	switch c.Type {
	case "text":
		kind = ofText[key]
	case "file":
		kind = ofFile[key]
	}
	switch {
	case kind == "":
		return false
	case key == "contains" || key == "not_contains": // in any letter case
		values = slices.Clone(values)
		for i, v := range values {
			values[i] = "(?i)" + regexp.QuoteMeta(v)
		}
	case strings.HasSuffix(kind, "regex") && c.Config["syntax"] != "javascript":
		if any := alternatives(values); any != nil && kind == "regex" {
			kind, values = "contains_any", any
			break
		}
		w.lose(true, fmt.Sprintf("grader %q syntax", c.Name), "patterns have the syntax of JavaScript")
	}
	w.add(written{Type: kind, Description: c.Name}, values)
	return true
}

func (w *caseWriter) add(check written, values []string) {
	if check.Values = values; len(values) == 1 {
		check.Value, check.Values = values[0], nil
	}
	w.to.Assertions = append(w.to.Assertions, check)
}

// alternatives returns the texts of a pattern that [oneOf] wrote for contains_any; nil for others.
func alternatives(patterns []string) []string {
	if len(patterns) != 1 {
		return nil
	}
	inner, starts := strings.CutPrefix(patterns[0], "(?:")
	inner, ends := strings.CutSuffix(inner, ")")
	if !starts || !ends {
		return nil
	}
	var list []string
	for _, part := range strings.Split(inner, ")|(?:") {
		text := dialect.Unquote(part)
		if regexp.QuoteMeta(text) != part {
			return nil
		}
		list = append(list, text)
	}
	return list
}

// writeContents writes content_patterns with quoted texts as file_contains.
func (w *caseWriter) writeContents(c *dialect.Check) bool {
	list, _ := c.Config["content_patterns"].([]any)
	var checks []written
	var found [][]string
	for _, item := range list {
		m, _ := item.(map[string]any)
		file, _ := m["path"].(string)
		for key, v := range m {
			if key == "path" {
				continue
			}
			patterns, ok := dialect.TextsIn(v)
			kind := map[string]string{"must_match": "file_contains", "must_not_match": "file_not_contains"}[key]
			if !ok || kind == "" || file == "" {
				return false
			}
			values := make([]string, len(patterns))
			for i, p := range patterns {
				if values[i] = dialect.Unquote(p); regexp.QuoteMeta(values[i]) != p {
					return false
				}
			}
			checks, found = append(checks, written{Type: kind, Description: c.Name, Path: file}), append(found, values)
		}
	}
	for i, check := range checks {
		w.add(check, found[i])
	}
	return len(checks) > 0
}

// writeStatements writes the statements of a judge.
func (w *caseWriter) writeStatements(c *dialect.Check, part string) {
	list, ok := c.Config["statements"].([]any)
	if !ok {
		w.lose(true, part+" (prompt)", "only a judge with statements has an equivalent")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.Config)) {
		if key != "statements" && key != "reference" {
			w.lose(true, part+" "+key, "")
		}
	}
	reference, _ := c.Config["reference"].(string)
	switch {
	case w.judged && reference != w.to.Expected:
		w.lose(true, part+" reference", "a case has one reference, for all of its statements")
	case !w.judged:
		w.to.Expected = reference
	}
	if w.judged {
		w.lose(false, part, "one judge decides all statements of a case")
	}
	w.judged = true
	for _, item := range list {
		text, label, absent := statement(item)
		if expected, ok := strings.CutPrefix(text, expectedPrefix); ok && len(list) == 1 && !absent && w.to.Expected == "" && !w.hasStatements() {
			w.to.Expected = expected
			return
		}
		var s any = text
		if label != "" {
			s = written{Name: label, Text: text}
		}
		switch {
		case !absent:
			w.to.Expectations = append(w.to.Expectations, s)
		case negated().MatchString(text) && len(w.to.Fail) == 0:
			w.to.Forbidden = append(w.to.Forbidden, s)
			w.to.Fail, w.to.Forbidden = w.to.Forbidden, nil
		case len(w.to.Fail) > 0:
			w.to.Fail = append(w.to.Fail, s)
		default:
			w.to.Forbidden = append(w.to.Forbidden, s)
		}
	}
	weight := 1 // the weight that readers give the judge
	if len(w.from.Checks) > 1 {
		weight = len(list)
	}
	if c.Weight != float64(weight) {
		w.lose(false, part+" weight", "the judge counts once per statement")
	}
}

func (w *caseWriter) hasStatements() bool {
	return len(w.to.Expectations)+len(w.to.Forbidden)+len(w.to.Fail) > 0
}

// statement returns the parts of an item of statements.
func statement(item any) (text, label string, absent bool) {
	if m, ok := item.(map[string]any); ok {
		text, _ = m["text"].(string)
		label, _ = m["label"].(string)
		absent, _ = m["absent"].(bool)
		return text, label, absent
	}
	text, _ = item.(string)
	return text, "", false
}
