package vally

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// stimulus translates one stimulus.
type stimulus struct {
	*translator
	node    *yaml.Node
	number  int // from 1
	task    dialect.Map
	inputs  dialect.Map
	names   map[string]bool // of the graders until now
	within  string          // names the part of an experiment that is being translated, before reasons
	blocked []string        // reasons why the stimulus cannot be carried out or graded

	// The model of its eval and its executor with their places; empty if flags and .waza.yaml decide.
	model, executor         string
	modelNode, executorNode *yaml.Node
}

var stimulusKeys = []string{
	"name", "description", "prompt", "turns", "graders", "tags", "environment", "constraints", "rubric", "config", "runs", "artifacts",
	"simulation", "grading_environment",
}

// isPrivate reports whether a key of a stimulus is one that projects use for their own scripts, which
// join fragments to suites.
func isPrivate(key string) bool {
	return slices.Contains([]string{"moderation", "surface_signatures", "category", "invariants"}, key) || strings.HasPrefix(key, "customized_")
}

func (s *stimulus) get(key string) *yaml.Node {
	n := decode.Follow(decode.Lookup(s.node, key))
	if decode.IsNull(n) {
		return nil
	}
	return n
}

// block reports why the stimulus cannot be carried out or graded. Its trials end in an error.
func (s *stimulus) block(at *yaml.Node, code decode.Code, format string, args ...any) {
	reason := s.within + fmt.Sprintf(format, args...)
	if !slices.Contains(s.blocked, reason) {
		s.blocked = append(s.blocked, reason)
	}
	s.Reportf(s.Source, at, decode.Warning, code, "%s; trials of this task end in an error", reason)
}

func (s *stimulus) translate() *yaml.Node {
	s.task, s.inputs, s.names = dialect.NewMap(s.node), dialect.NewMap(s.node), map[string]bool{}
	s.checkKeys()
	s.addID()
	if n := s.get("description"); dialect.TextOf(n) != "" {
		s.task.Set("description", dialect.Scalar(n, n.Value))
	}
	s.addTags()
	s.addPrompts()
	s.addSettings()
	s.addEnvironment()
	s.addConstraints()
	graders := s.graders()
	s.checkEarlyEnd()
	s.task.Set("inputs", s.inputs.Node)
	if len(graders) > 0 {
		s.task.Set("graders", dialect.List(s.node, graders...))
	}
	if len(s.blocked) > 0 {
		s.task.Set("blocked", dialect.Scalar(s.node, strings.Join(s.blocked, "; ")))
		_, s.executor = s.executorOf(s.settings.get("executor")) // it needs no cell of its own
	}
	s.arms.add(s)
	return s.task.Node
}

// checkKeys reports unknown keys. Vally refuses them since 0.17, except those of fragments, which a
// script of the project removes before.
func (s *stimulus) checkKeys() {
	for _, p := range dialect.Pairs(s.node) {
		switch key := p.Key.Value; {
		case slices.Contains(stimulusKeys, key):
		case key == "timeout":
			s.warnOnce("stimulus.timeout", p.Key, decode.CodeNoEffect, "timeout of a stimulus has no effect, and Vally refuses it since 0.17; write config: {timeout: …}")
		case isPrivate(key):
			s.warnOnce("stimulus."+key, p.Key, decode.CodeNoEffect, "key %q of a stimulus has no effect", text.Clip(key, 60))
		default:
			s.Reportf(s.Source, p.Key, decode.Error, decode.CodeUnknownKey, "unknown key %q in a stimulus; its keys are %s",
				text.Clip(key, 60), strings.Join(stimulusKeys, ", "))
		}
	}
	if n := s.get("simulation"); n != nil {
		s.block(n, decode.CodeUnavailable, "waza does not simulate the answers of MCP servers as Vally's simulation does")
	}
	if n := s.get("artifacts"); n != nil {
		s.warnOnce("artifacts", n, decode.CodeNoEffect, artifactsHint)
	}
}

// addID sets the id: the name, else the number. A repeated name gets a number.
func (s *stimulus) addID() {
	n := s.get("name")
	name := dialect.TextOf(n)
	if name == "" {
		n, name = s.node, fmt.Sprint(s.number)
	}
	name = s.prefix + name
	id := name
	for k := 2; s.ids[id]; k++ {
		id = fmt.Sprintf("%s-%d", name, k)
	}
	if id != name {
		s.Reportf(s.Source, n, decode.Warning, decode.CodeDuplicateID, "an earlier stimulus has the name %q, so this task is %q", text.Clip(name, 60), text.Clip(id, 60))
	}
	s.ids[id] = true
	s.task.Set("id", dialect.Scalar(n, id))
}

// executorTags are tags by which projects control executors of their own.
var executorTags = []string{"earlyTerminate", "systemPrompt", "requiredSkills", "takeScreenshot"}

// A tag is a key of tags with one of its values.
type tag struct{ key, value string }

// tagsOf returns the tags of the stimulus, with those that it inherits from the suite. It leaves out
// settings of executors.
func (s *stimulus) tagsOf() (tags []tag) {
	own := s.get("tags")
	for _, from := range []*yaml.Node{own, decode.Follow(decode.Lookup(s.root, "tags"))} {
		for _, p := range dialect.Pairs(from) {
			key := p.Key.Value
			inherited := from != own
			if inherited && decode.Lookup(own, key) != nil || s.isSetting(p) {
				continue
			}
			for _, value := range valuesOf(p.Value) {
				tags = append(tags, tag{key, value})
			}
		}
	}
	return tags
}

// isSetting reports tags that are settings of a project's own executor, and returns whether a tag is one.
func (s *stimulus) isSetting(p decode.Pair) bool {
	key, value := p.Key.Value, dialect.TextOf(p.Value)
	isJSON := strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{")
	if !isJSON && !slices.Contains(executorTags, key) {
		return false
	}
	s.warnOnce("tags."+key, p.Key, decode.CodeNoEffect, "the tag %q is a setting of an executor that waza does not have, and has no effect", text.Clip(key, 60))
	return true
}

// checkEarlyEnd blocks a stimulus that a project's own executor ends early, and whose grader completed
// says nothing then.
func (s *stimulus) checkEarlyEnd() {
	early := decode.Lookup(s.get("tags"), executorTags[0])
	if early == nil {
		early = decode.Lookup(decode.Follow(decode.Lookup(s.root, "tags")), executorTags[0])
	}
	for _, g := range dialect.Items(s.get("graders")) {
		if early != nil && dialect.TextOf(decode.Lookup(g, "type")) == "completed" {
			s.block(g, decode.CodeUnavailable, "the tag earlyTerminate ends the agent before it completes, which the grader completed does not allow")
			return
		}
	}
}

func (s *stimulus) addTags() {
	n := s.get("tags")
	if n != nil && n.Kind != yaml.MappingNode {
		s.Reportf(s.Source, n, decode.Error, decode.CodeWrongType, "tags must be a map, got %s", describe(n))
		return
	}
	list := dialect.List(n)
	tags := s.tagsOf()
	for _, name := range s.suitesOf(tags) {
		tags = append(tags, tag{suiteTag, name})
	}
	for _, t := range tags {
		list.Content = append(list.Content, dialect.Scalar(n, t.key+":"+t.value))
	}
	if len(list.Content) > 0 {
		s.task.Set("tags", list)
	}
}

// addPrompts sets the prompt, or the prompts of several turns.
func (s *stimulus) addPrompts() {
	prompt, turns := s.get("prompt"), s.get("turns")
	if prompt != nil && turns != nil {
		s.block(turns, decode.CodeInvalidValue, "a stimulus has either prompt or turns, not both")
	}
	prompts := []*yaml.Node{prompt}
	if prompt == nil {
		prompts = nil
		for i, item := range dialect.Items(turns) {
			n := item
			if n.Kind == yaml.MappingNode {
				n = decode.Follow(decode.Lookup(item, "prompt"))
				s.onlyKeys(origin{}, item, "a turn", "prompt")
			}
			if dialect.TextOf(n) == "" {
				s.block(item, decode.CodeWrongType, "turns[%d] must be a text, or a map with prompt, got %s", i, describe(item))
				continue
			}
			prompts = append(prompts, n)
		}
	}
	if len(prompts) == 0 || dialect.TextOf(prompts[0]) == "" {
		if len(s.blocked) == 0 {
			s.block(s.node, decode.CodeMissingPrompt, "the stimulus has no prompt")
		}
		s.inputs.Set("prompt", dialect.Scalar(s.node, ""))
		return
	}
	s.inputs.Set("prompt", dialect.Scalar(prompts[0], s.filled(prompts[0]).Value))
	if len(prompts) > 1 {
		more := dialect.List(turns)
		for _, n := range prompts[1:] {
			more.Content = append(more.Content, dialect.Scalar(n, s.filled(n).Value))
		}
		s.inputs.Set("follow_up_prompts", more)
	}
}
