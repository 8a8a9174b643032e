// Package readiness checks whether a skill is ready for use: whether its SKILL.md follows the
// Agent Skills specification, how good its description is, how many tokens it has, whether its
// links work, and whether it has a valid suite. Call [Check].
//
// The names of the checks and the JSON form are those of other tools, so that programs that read
// their results can read these.
package readiness

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/tokens"
)

// A Report contains the results for one skill.
type Report struct {
	Name       string     `json:"name"`
	Path       string     `json:"path"` // of the SKILL.md, relative to the caller's directory
	Ready      bool       `json:"ready"`
	Compliance Compliance `json:"compliance"`
	Tokens     Tokens     `json:"tokenBudget"`
	Spec       []Finding  `json:"specCompliance"`
	// MCP is nil for a skill whose description has no "INVOKES:".
	MCP      *MCP      `json:"mcpIntegration,omitempty"`
	Links    *Links    `json:"links,omitempty"`
	Eval     Eval      `json:"eval"`
	Schema   *Schema   `json:"schema,omitempty"` // nil without a suite
	Advisory []Finding `json:"advisoryChecks"`
	Next     []string  `json:"nextSteps"`
}

// Compliance is the quality of the description.
type Compliance struct {
	Level  Level   `json:"level"`
	Issues []Issue `json:"issues"`
}

// An Issue is something to change.
type Issue struct {
	Severity string `json:"severity"` // error, warning
	Message  string `json:"message"`
}

// Tokens compares a SKILL.md with its limit.
type Tokens struct {
	Count    int    `json:"count"`
	Limit    int    `json:"limit"`
	Exceeded bool   `json:"exceeded"`
	Warning  bool   `json:"warning"` // at or above tokens.warningThreshold
	Status   string `json:"status"`  // ok, warning, exceeded
}

// A Finding is the result of one check.
type Finding struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Summary string `json:"summary"`
	Status  string `json:"status"` // ok, warning, error
	// Evidence is the text that causes the finding, and Line its line in SKILL.md, counted from
	// 1. Both are absent if there is no fault.
	Evidence string `json:"evidence,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// Eval describes the suite of the skill.
type Eval struct {
	Found bool   `json:"found"`
	Path  string `json:"path,omitempty"`
}

// Schema is whether the suite and its tasks are valid, like in `waza validate`.
type Schema struct {
	EvalErrors []string            `json:"evalErrors"`
	TaskErrors map[string][]string `json:"taskErrors"` // by file
	Valid      bool                `json:"valid"`
}

// Options control how a skill is checked. The zero value checks everything except the suite's
// graders and executors, and URLs.
type Options struct {
	// Vocabulary lists the graders and executors of suites.
	Vocabulary *eval.Vocabulary
	// Suites finds the suites of skills; nil means suites at the usual paths only.
	Suites *Suites
	// Limits are token limits; nil means those of the skill's directory.
	Limits *tokens.Limits
	// URLs returns the reasons why URLs do not answer, by URL; nil disables the check.
	URLs func(urls []string) map[string]string
	// Shown returns a path as findings show it; nil leaves paths unchanged.
	Shown func(path string) string
}

// Check checks the skill in a directory, which must be absolute. It returns an error if the
// SKILL.md or the token limits cannot be read.
func Check(dir string, o Options) (*Report, error) {
	s, err := skill.Read(dir)
	if err != nil {
		return nil, err
	}
	if o.Shown == nil {
		o.Shown = func(path string) string { return path }
	}
	r := &Report{Name: s.Name, Path: o.Shown(s.File), Compliance: complianceOf(s), Spec: specOf(s), MCP: mcpOf(s), Advisory: adviceOf(s)}
	r.Name = cmp.Or(r.Name, filepath.Base(dir))
	if r.Tokens, err = budgetOf(s, o); err != nil {
		return nil, err
	}
	if r.Links, err = linksOf(s, o); err != nil {
		return nil, err
	}
	r.checkSuite(s, o)
	r.Ready = r.Compliance.Level >= MediumHigh && !r.Tokens.Exceeded && r.Links.Passed &&
		(r.Schema == nil || r.Schema.Valid) && r.SpecPassed() == len(r.Spec)
	r.addNextSteps(s)
	return r, nil
}

// SpecPassed returns the number of passed checks of the specification.
func (r *Report) SpecPassed() (n int) {
	for _, f := range r.Spec {
		if f.Passed {
			n++
		}
	}
	return n
}

func budgetOf(s *skill.Skill, o Options) (Tokens, error) {
	if o.Limits == nil {
		limits, _, err := tokens.FindLimits(s.Dir)
		if err != nil {
			return Tokens{}, err
		}
		o.Limits = limits
	}
	n, err := tokens.Count(s.Text)
	if err != nil {
		return Tokens{}, fmt.Errorf("%s: %w", s.File, err)
	}
	t := Tokens{Count: n, Status: "ok"}
	t.Limit, _ = o.Limits.Of(s.File)
	t.Exceeded = n > t.Limit
	t.Warning = o.Limits.Warning > 0 && n >= o.Limits.Warning
	switch {
	case t.Exceeded:
		t.Status = "exceeded"
	case t.Warning:
		t.Status = "warning"
	}
	return t, nil
}

// checkSuite finds the suite and its faults.
func (r *Report) checkSuite(s *skill.Skill, o Options) {
	suites := o.Suites
	if suites == nil {
		suites = &Suites{}
	}
	path := suites.Of(s.Dir, r.Name)
	if path == "" {
		return
	}
	r.Eval = Eval{Found: true, Path: o.Shown(path)}
	r.Schema = &Schema{EvalErrors: []string{}, TaskErrors: map[string][]string{}, Valid: true}
	_, ds, err := eval.Load(path, eval.Options{Vocabulary: o.Vocabulary})
	if err != nil {
		r.Schema.Valid = false
		r.Schema.EvalErrors = append(r.Schema.EvalErrors, err.Error())
		return
	}
	for _, d := range ds {
		if d.Severity != decode.Error {
			continue
		}
		r.Schema.Valid = false
		what := d.Message
		if d.Line > 0 {
			what = fmt.Sprintf("line %d: %s", d.Line, d.Message)
		}
		if filepath.Base(d.File) == filepath.Base(path) {
			r.Schema.EvalErrors = append(r.Schema.EvalErrors, what)
		} else {
			file := o.Shown(filepath.FromSlash(d.File))
			r.Schema.TaskErrors[file] = append(r.Schema.TaskErrors[file], what)
		}
	}
}

// addNextSteps lists the next steps, the most important first.
func (r *Report) addNextSteps(s *skill.Skill) {
	r.Next = []string{}
	add := func(format string, args ...any) { r.Next = append(r.Next, fmt.Sprintf(format, args...)) }
	for _, f := range r.Spec {
		if !f.Passed {
			add("%s: %s", f.Name, f.Summary)
		}
		if s.Problem != nil {
			break // the first check reports it, and the others need the frontmatter
		}
	}
	if r.Compliance.Level < MediumHigh && s.Problem == nil {
		for _, i := range r.Compliance.Issues {
			add("%s", i.Message)
		}
	}
	if r.Tokens.Exceeded {
		add("Shorten SKILL.md by %s (see `waza tokens suggest`), or raise the limit in .waza.yaml",
			text.Count(r.Tokens.Count-r.Tokens.Limit, "token", "tokens"))
	}
	if n := r.Links.faults(); n > 0 {
		add("Repair %s", text.Count(n, "link", "links"))
	}
	switch {
	case !r.Eval.Found:
		add("Write a suite: waza new eval %s", r.Name)
	case !r.Schema.Valid:
		add("Fix the suite: waza validate %s", r.Eval.Path)
	case r.Ready:
		add("Run the suite: waza run %s", r.Eval.Path)
	}
}

// contains reports whether a text contains one of the phrases, in any letter case.
func contains(s string, phrases ...string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(s, p) })
}
