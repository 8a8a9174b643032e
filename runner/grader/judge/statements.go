package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
	"waza/runner/internal/given"
	"waza/runner/provider"
)

// Statements are marked one by one, by the rules of the grader of anthropics/skills
// (skills/skill-creator/agents/grader.md): a pass needs evidence that can be cited, and that the work
// was really done. Without evidence, with evidence against it, or in doubt, a statement fails. There is
// no partial credit.

// A Statement is a sentence about the work of the agent. In YAML it is a text, or a map.
type Statement struct {
	// The statement. Can use template variables.
	Text string `yaml:"text" jsonschema:"required"`
	// Short name of the statement in results.
	Label string `yaml:"label" json:",omitempty"`
	// The statement names something that the work must lack: it passes if that is absent.
	Absent bool `yaml:"absent" json:",omitempty"`
}

// DecodeShape decodes a text or a map.
func (s *Statement) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		d.Into(n, &s.Text)
		return
	}
	d.Structure(n, s, nil)
}

// maxStatements limits the statements of a grader.
const maxStatements = 200

func (o *PromptOptions) checkStatements(c *eval.Check) {
	if len(o.Statements) > maxStatements {
		c.Errorf(decode.At("statements"), decode.CodeTooLarge, "more than %d statements", maxStatements)
	}
	for i, s := range o.Statements {
		if strings.TrimSpace(s.Text) == "" {
			c.Errorf(decode.At("statements", i), decode.CodeInvalidValue, "statements[%d] is empty", i)
		}
	}
	if o.Mode == modePairwise && len(o.Statements) > 0 {
		c.Errorf(decode.At("statements"), decode.CodeInvalidValue, "statements cannot be judged pairwise")
	}
}

// A mark is a judge's verdict about one statement.
type mark struct {
	Text     string `json:"text"`
	Label    string `json:"label,omitempty"`
	Absent   bool   `json:"absent,omitempty"`
	Passed   bool   `json:"passed"`
	Evidence string `json:"evidence"`
}

const statementRules = `Mark each of the numbered statements below as passed or failed, with evidence.

Pass a statement only if the data shows that it is true, and you can cite where. The work must really be done: a file of the right name with wrong content fails. Fail it if there is no evidence, if there is evidence against it, if it cannot be checked from the data, or if it is true only by accident. In doubt, fail it. There is no partial credit.`

const absentRule = ` (this must NOT be so: the statement passes only if the data shows that it is absent)`

// statementCriteria returns the criteria of a judge that marks statements.
func (g *judgeGrader) statementCriteria(s *grader.Subject) string {
	var b strings.Builder
	if more := strings.TrimSpace(s.Expanded(g.rubric.text)); more != "" {
		b.WriteString(more + "\n\n")
	}
	b.WriteString(statementRules + "\n")
	for i, st := range g.options.Statements {
		fmt.Fprintf(&b, "\n%d. %s", i+1, strings.TrimSpace(s.Expanded(st.Text)))
		if st.Absent {
			b.WriteString(absentRule)
		}
	}
	if g.options.Reference != "" {
		b.WriteString("\n\nThe reference describes a good result. It explains the statements and is no evidence.")
	}
	return b.String()
}

var marksAnswer = provider.Answer{
	Name: "submit_marks", Description: "Marks every statement as passed or failed.",
	Schema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"marks": map[string]any{"type": "array", "items": map[string]any{
				"type": "object",
				"properties": map[string]any{
					"number":   map[string]any{"type": "integer", "description": "The number of the statement."},
					"evidence": map[string]any{"type": "string", "description": "What in the data shows the verdict: a quotation, or a place in a file."},
					"passed":   map[string]any{"type": "boolean", "description": "Whether the statement passes."},
				},
				"required": []string{"number", "evidence", "passed"}, "additionalProperties": false,
			}},
		},
		"required": []string{"marks"}, "additionalProperties": false,
	},
}

// judgeStatements lets a judge mark each statement.
func (g *judgeGrader) judgeStatements(ctx context.Context, j judge, s *grader.Subject) (opinion, error) {
	o := opinion{Judge: j.model}
	err := g.ask(ctx, j, g.brief(s, false), marksAnswer, &o.usage, func(raw json.RawMessage) (err error) {
		o.Statements, err = g.takeMarks(raw, s)
		return err
	})
	if err != nil {
		return o, err
	}
	passes := 0
	var failed []string
	for _, m := range o.Statements {
		if m.Passed {
			passes++
		} else {
			failed = append(failed, m.line())
		}
	}
	o.Score = float64(passes) / float64(len(o.Statements))
	o.Passed = g.options.passes(o.Score, passes == len(o.Statements))
	o.Reason = strings.Join(failed, "; ")
	return o, nil
}

func (m mark) line() string {
	name := m.Text
	if m.Label != "" {
		name = m.Label
	}
	return fmt.Sprintf("%s: %s", grader.Excerpt(name), m.Evidence)
}

// takeMarks returns the marks of all statements. Every statement needs exactly one.
func (g *judgeGrader) takeMarks(raw json.RawMessage, s *grader.Subject) ([]mark, error) {
	var a struct {
		Marks *[]struct {
			Number   int
			Passed   given.Bool
			Evidence string
		}
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if a.Marks == nil {
		return nil, errors.New("marks is missing")
	}
	marks := make([]mark, len(g.options.Statements))
	for i, st := range g.options.Statements {
		marks[i] = mark{Text: g.reason(s.Expanded(st.Text)), Label: st.Label, Absent: st.Absent}
	}
	marked := make([]bool, len(marks))
	for _, m := range *a.Marks {
		i := m.Number - 1
		switch {
		case i < 0 || i >= len(marks):
			return nil, fmt.Errorf("there is no statement %d", m.Number)
		case marked[i]:
			return nil, fmt.Errorf("statement %d is marked twice", m.Number)
		case !m.Passed.Given:
			return nil, fmt.Errorf("passed is missing for statement %d", m.Number)
		}
		marked[i] = true
		marks[i].Passed, marks[i].Evidence = m.Passed.Value, g.reason(m.Evidence)
		if marks[i].Passed && marks[i].Evidence == "" {
			marks[i].Passed, marks[i].Evidence = false, "the judge cited no evidence, so the statement fails"
		}
	}
	if i := slices.Index(marked, false); i >= 0 {
		return nil, fmt.Errorf("statement %d is not marked", i+1)
	}
	return marks, nil
}

// Limits of the files that a judge of statements sees.
const (
	maxShownFiles   = 200      // names
	maxShownEntries = 5000     // that the search visits
	maxShownBytes   = 96 << 10 // of all contents
)

// addCreated adds the files that the agent left in its workspace, other than those that it was given.
func (g *judgeGrader) addCreated(f *fences, s *grader.Subject) {
	root, err := grader.OpenWorkspace(s)
	if err != nil {
		f.add("created files", "(the workspace cannot be read)", maxJudgeFile)
		return
	}
	defer root.Close()
	given := map[string]bool{}
	for _, in := range s.Task.Inputs.Files {
		given[path.Clean(in.Path)] = true
	}
	skills := map[string]bool{}
	for _, dir := range s.Task.Skills {
		skills[path.Base(strings.ReplaceAll(dir, `\`, "/"))] = true
	}
	var names []string
	entries, more := 0, false
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > maxShownEntries || len(names) >= maxShownFiles {
			more = true
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return nil // unreadable
		case d.IsDir():
			if d.Name() == ".git" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			if _, err := root.Stat(path.Join(name, "SKILL.md")); err == nil && skills[d.Name()] {
				return fs.SkipDir // a skill that the agent was given
			}
		case d.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	list := "(none)"
	if len(names) > 0 {
		lines := make([]string, len(names))
		for i, name := range names {
			if lines[i] = strings.Map(printable, name); given[name] {
				lines[i] += " (given to the agent; it may have changed it)"
			}
		}
		list = strings.Join(lines, "\n")
	}
	if more {
		list += "\n(and more files)"
	}
	f.add("files in the workspace", list, maxJudgeFile)
	room := maxShownBytes
	for _, name := range names {
		if slices.Contains(g.options.Files, name) {
			continue // shown anyway
		}
		if s.MissingAt(name) != nil {
			continue
		}
		data, err := grader.ReadFile(root, name)
		if err != nil || !utf8.Valid(data) || slices.Contains(data, 0) {
			continue
		}
		if room -= min(len(data), maxJudgeFile); room < 0 {
			f.add("note", "(the contents of the other files are left out)", maxJudgeFile)
			return
		}
		f.add("file "+strings.Map(printable, name), string(data), maxJudgeFile)
	}
}
