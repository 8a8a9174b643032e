package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval"
	"waza/eval/skill"
	"waza/runner/readiness"
)

type skillInput struct {
	SkillPath string `json:"skill_path" jsonschema:"directory of the skill, or its SKILL.md"`
}

// skillChecked is the result of waza check in compact form.
type skillChecked struct {
	SkillPath   string   `json:"skillPath"`
	Name        string   `json:"name,omitempty"`
	HasSkill    bool     `json:"hasSkill" jsonschema:"whether the skill has a SKILL.md"`
	Ready       bool     `json:"ready" jsonschema:"whether SKILL.md meets the specification and the token limit, has at least level Medium-High, and links and suite are valid"`
	Level       string   `json:"level,omitempty" jsonschema:"how well the description explains when to use the skill: Invalid, Low, Medium, Medium-High or High"`
	Tokens      int      `json:"tokens,omitempty" jsonschema:"number of tokens of SKILL.md"`
	TokenLimit  int      `json:"tokenLimit,omitempty"`
	HasEval     bool     `json:"hasEval" jsonschema:"whether a suite tests the skill"`
	EvalPath    string   `json:"evalPath,omitempty" jsonschema:"path of that suite"`
	EvalValid   *bool    `json:"evalValid,omitempty" jsonschema:"whether that suite is valid; absent if it was not checked (use waza_eval_validate)"`
	BrokenLinks int      `json:"brokenLinks" jsonschema:"number of links to missing files, to folders, or to files outside of the skill"`
	LinkIssues  []string `json:"linkIssues,omitempty"`
	Issues      []string `json:"issues,omitempty" jsonschema:"reasons why the skill is not ready, besides links and suite"`
	Advice      []string `json:"advice,omitempty" jsonschema:"optional improvements"`
	NextSteps   []string `json:"nextSteps,omitempty"`
	Message     string   `json:"message"`
}

// checkSkill reports whether a skill is ready, like waza check; it does not check URLs.
func (s suiteTools) checkSkill(_ context.Context, _ *sdk.CallToolRequest, in skillInput) (*skillChecked, error) {
	path, err := s.within("skill_path", in.SkillPath)
	if err != nil {
		return nil, err
	}
	if filepath.Base(path) == skill.FileName {
		path = filepath.Dir(path)
	}
	r := &skillChecked{SkillPath: path}
	dir := filepath.Join(s.dir, path)
	if _, err := os.Stat(filepath.Join(dir, skill.FileName)); err != nil {
		r.Message = fmt.Sprintf("%s has no %s", path, skill.FileName)
		return r, nil
	}
	project, _, err := eval.FindProject(dir)
	if err != nil {
		return nil, err
	}
	found, err := readiness.Check(dir,
		readiness.Options{
			Vocabulary: s.runner.Planner().Vocabulary(), Suites: &readiness.Suites{Project: project, Dir: s.dir},
			Shown: s.relative,
		})
	if err != nil {
		return nil, err
	}
	r.report(found)
	r.Message = r.sumUp()
	return r, nil
}

// report copies the findings.
func (r *skillChecked) report(f *readiness.Report) {
	r.HasSkill, r.Name, r.Ready, r.Level = true, shorten(f.Name, 100), f.Ready, f.Compliance.Level.String()
	r.Tokens, r.TokenLimit = f.Tokens.Count, f.Tokens.Limit
	r.HasEval, r.EvalPath = f.Eval.Found, f.Eval.Path
	if f.Schema != nil {
		r.EvalValid = &f.Schema.Valid
	}
	for _, of := range []struct {
		list    *[]string
		found   []readiness.Finding
		healthy func(readiness.Finding) bool
	}{
		{&r.Issues, f.Spec, func(f readiness.Finding) bool { return f.Passed }},
		{&r.Advice, f.Advisory, func(f readiness.Finding) bool { return f.Passed && f.Status == "ok" }},
	} {
		for _, x := range of.found {
			if of.healthy(x) || len(*of.list) == maxFindings {
				continue
			}
			at := f.Path
			if x.Line > 0 {
				at = fmt.Sprintf("%s:%d", f.Path, x.Line)
			}
			*of.list = append(*of.list, shorten(fmt.Sprintf("%s: %s: %s", at, x.Name, x.Summary), maxSentence))
		}
	}
	for _, i := range f.Compliance.Issues {
		r.Issues = append(r.Issues, shorten(i.Message, maxSentence))
	}
	if f.Tokens.Exceeded {
		r.Issues = append(r.Issues, fmt.Sprintf("SKILL.md has %d tokens, the limit is %d", f.Tokens.Count, f.Tokens.Limit))
	}
	if f.Links != nil {
		for _, list := range [][]readiness.Link{f.Links.Broken, f.Links.Directories, f.Links.Escapes} {
			for _, l := range list {
				if r.BrokenLinks++; r.BrokenLinks <= maxFindings {
					r.LinkIssues = append(r.LinkIssues, shorten(fmt.Sprintf("%s:%d: %s: %s", l.Source, l.Line, l.Target, l.Reason), maxSentence))
				}
			}
		}
	}
	for _, step := range f.Next[:min(len(f.Next), maxFindings)] {
		r.NextSteps = append(r.NextSteps, shorten(step, maxSentence))
	}
}

func (r *skillChecked) sumUp() string {
	switch {
	case r.Ready && r.HasEval:
		return "the skill is ready; run " + r.EvalPath
	case r.Ready:
		return "the skill is ready but has no suite"
	case len(r.NextSteps) > 0:
		return "the skill is not ready: " + r.NextSteps[0]
	}
	return "the skill is not ready"
}
