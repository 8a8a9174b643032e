package eval

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// settings are keys of config that say how to run a suite. waza run has flags for them, and no verdict
// depends on them alone.
var settings = []string{
	"trials_per_task", "timeout_seconds", "parallel", "workers", "fail_fast", "stopping", "decide", "max_attempts", "retry_errors", "executor",
	"model", "models", "judge_model", "judge", "reasoning_effort", "judge_reasoning_effort", "group_by", "first_event_timeout_seconds",
	"max_cost", "max_tokens", "prices", "context_windows", "verbose", "fleet", "inject_skill_body",
}

// Document returns the content of the suite for a writer of another format, to be written to the absolute
// path file. The caller owns the document, and must not change what its cases refer to.
func (s *Suite) Document(file string) *dialect.Document {
	d := &dialect.Document{
		Dir: s.Dir, File: file, Name: s.Name, Description: s.Description, Version: s.Version, Skill: s.Skill, Templates: !s.Literal,
		Baseline: s.Baseline,
		Others:   setKeys(s, &Suite{Kind: ToolEval}, "name", "description", "version", "skill", "schemaVersion", "config", "graders", "literal", "baseline", "tasks_from", "range"),
	}
	var defaults Config
	defaults.SetDefaults()
	for _, key := range setKeys(&s.Config, &defaults) {
		name := "config." + key.Name
		switch {
		case len(s.Config.Cells) > 0 && (key.Name == "matrix" || key.Name == "models"): // those of the cells
		case key.Name == "cells":
			var cells []any
			if n := decode.Lookup(decode.Lookup(s.src.Root, "config"), "cells"); n != nil && n.Decode(&cells) == nil {
				key.Value = cells
			}
			d.Others = append(d.Others, dialect.Key{Name: name, Value: key.Value})
		case key.Name == "skill_directories":
			d.Others = append(d.Others, dialect.Key{Name: name, Value: s.paths(s.Config.SkillDirectories)})
		case slices.Contains(settings, key.Name):
			d.Settings = append(d.Settings, dialect.Key{Name: name, Value: key.Value})
		default:
			d.Others = append(d.Others, dialect.Key{Name: name, Value: key.Value})
		}
	}
	for _, p := range dialect.Pairs(decode.Lookup(s.src.Root, "config")) {
		var value any
		if !decode.TakesKey(&s.Config, p.Key.Value) && p.Value != nil && p.Value.Decode(&value) == nil {
			d.Settings = append(d.Settings, dialect.Key{Name: "config." + p.Key.Value, Value: value, OfExecutor: true})
		}
	}
	for _, t := range s.Tasks {
		d.Cases = append(d.Cases, s.caseOf(t))
	}
	if s.Triggers != nil {
		d.Triggers = s.Triggers.document(s)
	}
	return d
}

// paths returns absolute paths.
func (s *Suite) paths(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = s.Path(name)
	}
	return list
}

func (s *Suite) caseOf(t *Task) dialect.Case {
	c := dialect.Case{
		ID: t.ID, Name: t.Name, Description: t.Description, Prompt: t.Inputs.Prompt, Tags: t.Tags, FollowUps: t.Inputs.FollowUpPrompts,
		Files: filesOf(t.Inputs.Files), Checks: checksOf(t.Effective), Skills: t.Skills,
		Others: setKeys(t, &Task{Enabled: true, ScoreThreshold: s.ScoreThreshold}, "id", "name", "description", "tags", "inputs", "graders"),
	}
	if t.SkillDirectories != nil && len(t.SkillDirectories) == 0 { // no skills, in place of those of the suite
		c.Others = append(c.Others, dialect.Key{Name: "skill_directories", Value: []string{}})
	}
	for i, key := range c.Others {
		switch key.Name {
		case "skill_directories":
			c.Others[i].Value = s.paths(t.SkillDirectories)
		case "solution":
			c.Others[i].Value = t.Solution.document()
		}
	}
	for _, key := range setKeys(&t.Inputs, &Inputs{}, "prompt", "prompt_file", "follow_up_prompts", "files") {
		if key.Name == "checkpoints" {
			key.Value = checkpointsOf(t.Inputs.Checkpoints)
		}
		if key.Name == "history" {
			var history []dialect.Message
			for _, m := range t.Inputs.History {
				history = append(history, dialect.Message(m))
			}
			key.Value = history
		}
		c.Others = append(c.Others, dialect.Key{Name: "inputs." + key.Name, Value: key.Value})
	}
	return c
}

func (s *Solution) document() dialect.Solution {
	d := dialect.Solution{Script: s.ScriptFile, Files: filesOf(s.Files), Output: s.Output}
	for _, turn := range s.FollowUps {
		d.FollowUps = append(d.FollowUps, dialect.Solution{Script: turn.ScriptFile, Files: filesOf(turn.Files)})
	}
	return d
}

func filesOf(files []InputFile) (list []dialect.File) {
	for _, f := range files {
		list = append(list, dialect.File{Path: f.Path, Source: f.Source, Content: f.Content})
	}
	return list
}

func checkpointsOf(points []Checkpoint) (list []dialect.CaseCheckpoint) {
	for _, p := range points {
		list = append(list, dialect.CaseCheckpoint{
			AfterTurn: p.AfterTurn, AgentTimeout: p.AgentTimeoutSeconds, OnFailure: p.OnFailure, Checks: checksOf(p.Graders),
			Files: filesOf(p.Files), Setup: p.Setup,
		})
	}
	return list
}

func checksOf(graders []*Grader) (list []dialect.Check) {
	for _, g := range graders {
		if members := membersOf(g); members != nil {
			list = append(list, members...)
			continue
		}
		check := dialect.Check{
			Name: g.Name, Type: g.Type, Weight: g.Weight, Config: g.Config,
			Others: setKeys(g, &Grader{}, "name", "type", "weight"),
		}
		if g.Group != nil {
			check.Others = append(check.Others, dialect.Key{Name: "group", Value: dialect.Group{
				Name: g.Group.Name, Weight: g.Group.Weight, Threshold: g.Group.Threshold, Optional: g.Group.Optional, Aggregate: string(g.Group.Aggregate),
			}})
		}
		list = append(list, check)
	}
	return list
}

// membersOf returns the graders of a group that the loader left as it is, because it knew no kinds of
// graders; nil for other graders.
func membersOf(g *Grader) (list []dialect.Check) {
	graders, ok := g.Config["graders"].([]any)
	if !ok || g.Type != "group" {
		return nil
	}
	group := dialect.Group{Name: g.Name, Weight: g.Weight, Optional: g.Optional}
	if threshold, ok := dialect.NumberIn(g.Config["threshold"]); ok {
		group.Threshold = &threshold
	}
	if rule, _ := g.Config["aggregate"].(string); rule != string(Mean) {
		group.Aggregate = rule
	}
	for _, item := range graders {
		m, _ := item.(map[string]any)
		c := dialect.Check{Weight: 1}
		c.Type, _ = m["type"].(string)
		if c.Name, _ = m["name"].(string); c.Name == "" {
			c.Name = c.Type
		}
		if weight, ok := dialect.NumberIn(m["weight"]); ok && weight > 0 {
			c.Weight = weight
		}
		c.Config, _ = m["config"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !slices.Contains([]string{"type", "name", "weight", "config"}, key) {
				c.Others = append(c.Others, dialect.Key{Name: key, Value: m[key]})
			}
		}
		c.Others = append(c.Others, dialect.Key{Name: "group", Value: group})
		list = append(list, c)
	}
	return list
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
// Both are pointers to structs of the same type. Values are no pointers.
func setKeys(v, defaults any, except ...string) (keys dialect.Keys) {
	value, standard := reflect.ValueOf(v).Elem(), reflect.ValueOf(defaults).Elem()
	for i := range value.NumField() {
		key := value.Type().Field(i).Tag.Get("yaml")
		if key == "" || key == "-" || slices.Contains(except, key) || isEmpty(value.Field(i)) {
			continue
		}
		if !reflect.DeepEqual(value.Field(i).Interface(), standard.Field(i).Interface()) {
			keys = append(keys, dialect.Key{Name: key, Value: reflect.Indirect(value.Field(i)).Interface()})
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
