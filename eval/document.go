package eval

import (
	"cmp"
	"reflect"
	"slices"

	"waza/eval/dialect"
)

// settings are keys of config that say how to run a suite. waza run has flags for them, and no verdict
// depends on them alone.
var settings = []string{
	"trials_per_task", "timeout_seconds", "parallel", "workers", "fail_fast", "stopping", "max_attempts", "retry_errors", "executor",
	"model", "models", "judge_model", "judge", "reasoning_effort", "judge_reasoning_effort", "group_by", "first_event_timeout_seconds",
	"max_cost", "max_tokens", "prices", "context_windows", "verbose", "fleet", "inject_skill_body",
}

// Document returns the content of the suite for a writer of another format, to be written to the absolute
// path file. The caller owns the document, and must not change what its cases refer to.
func (s *Suite) Document(file string) *dialect.Document {
	d := &dialect.Document{
		File: file, Name: s.Name, Description: s.Description, Version: s.Version, Skill: s.Skill, Templates: !s.Literal,
		Baseline: s.Baseline,
		Others:   setKeys(s, &Suite{Kind: ToolEval}, "name", "description", "version", "skill", "schemaVersion", "config", "graders", "literal", "baseline", "tasks_from", "range"),
	}
	var defaults Config
	defaults.SetDefaults()
	for _, key := range setKeys(&s.Config, &defaults) {
		if slices.Contains(settings, key) {
			d.Settings = append(d.Settings, "config."+key)
		} else {
			d.Others = append(d.Others, "config."+key)
		}
	}
	for _, t := range s.Tasks {
		d.Cases = append(d.Cases, t.document())
	}
	if s.Triggers != nil {
		d.Triggers = s.Triggers.document(s)
	}
	return d
}

func (t *Task) document() dialect.Case {
	c := dialect.Case{
		ID: t.ID, Name: t.Name, Description: t.Description, Prompt: t.Inputs.Prompt, Tags: t.Tags, FollowUps: t.Inputs.FollowUpPrompts,
		Others: setKeys(t, &Task{Enabled: true}, "id", "name", "description", "tags", "inputs", "graders"),
	}
	for _, key := range setKeys(&t.Inputs, &Inputs{}, "prompt", "prompt_file", "follow_up_prompts", "files") {
		c.Others = append(c.Others, "inputs."+key)
	}
	for _, f := range t.Inputs.Files {
		c.Files = append(c.Files, dialect.File{Path: f.Path, Source: f.Source, Content: f.Content})
	}
	for _, g := range t.Effective {
		check := dialect.Check{
			Name: g.Name, Type: g.Type, Weight: g.Weight, Config: g.Config,
			Others: setKeys(g, &Grader{}, "name", "type", "weight"),
		}
		if g.Group != nil {
			check.Others = append(check.Others, "group "+g.Group.Name)
		}
		c.Checks = append(c.Checks, check)
	}
	return c
}

func (t *TriggerTests) document(s *Suite) *dialect.Triggers {
	out := &dialect.Triggers{Threshold: t.Threshold, FirstTool: t.FirstTool, Trials: s.Config.TrialsPerTask}
	for _, l := range []struct {
		should  bool
		prompts []TriggerPrompt
	}{{true, t.ShouldTrigger}, {false, t.ShouldNotTrigger}} {
		for _, p := range l.prompts {
			w := dialect.TriggerPrompt{
				Prompt: p.Prompt, Skill: cmp.Or(p.Skill, t.Skill), Reason: p.Reason, Should: l.should,
				Acceptable: p.AcceptableSkills, Forbidden: p.ForbiddenSkills, Half: p.Confidence == "medium",
			}
			if w.Skill == s.Skill {
				w.Skill = ""
			}
			out.Prompts = append(out.Prompts, w)
		}
	}
	return out
}

// setKeys returns the keys of a struct whose values differ from the defaults, without those of except.
// Both are pointers to structs of the same type.
func setKeys(v, defaults any, except ...string) (keys []string) {
	value, standard := reflect.ValueOf(v).Elem(), reflect.ValueOf(defaults).Elem()
	for i := range value.NumField() {
		key := value.Type().Field(i).Tag.Get("yaml")
		if key == "" || key == "-" || slices.Contains(except, key) || isEmpty(value.Field(i)) {
			continue
		}
		if !reflect.DeepEqual(value.Field(i).Interface(), standard.Field(i).Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// isEmpty reports whether a value says nothing: a zero value, or a map or list without items.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}
