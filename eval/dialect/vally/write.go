package vally

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/surroundings"
)

// writer writes a suite as an eval.yaml of Vally.
type writer struct {
	*dialect.Document
	threshold bool                 // the score decides, instead of every grader
	weights   map[string][]weighed // by the types of graders
	servers   map[string]any       // of all stimuli
	skills    []string             // of stimuli that name none
	inProject bool                 // the file has a .vally.yaml
	suites    bool                 // a tag names a suite of it
}

// write returns a suite as an eval.yaml. Every task becomes the stimulus that the translation reads as the
// same task.
func write(d *dialect.Document) ([]dialect.File, error) {
	w := &writer{Document: d, weights: map[string][]weighed{}, inProject: hasProject(filepath.Dir(d.File))}
	root := dialect.NewMap(nil)
	for _, p := range []struct{ key, value string }{{"name", d.Name}, {"description", d.Description}, {"version", d.Version}} {
		if p.value != "" {
			root.Set(p.key, dialect.Scalar(nil, p.value))
		}
	}
	w.setConfig(root)
	threshold, ok := dialect.Take[float64](&d.Others, "score_threshold")
	w.threshold = ok
	w.servers, _ = dialect.Take[map[string]any](&d.Others, "config.mcp_servers")
	w.skills, _ = dialect.Take[[]string](&d.Others, "config.skill_directories")
	stimuli := dialect.List(nil)
	for i := range d.Cases {
		s := &stimulusWriter{writer: w, from: &d.Cases[i], to: dialect.NewMap(nil), environment: dialect.NewMap(nil), names: map[string]bool{}}
		s.write()
		stimuli.Content = append(stimuli.Content, s.to.Node)
	}
	w.shareEnvironment(root, stimuli)
	w.setScoring(root, threshold)
	root.Set("stimuli", stimuli)
	w.loseRest()
	return dialect.YAMLFile(d, writtenName, root.Node)
}

// hasProject reports whether a directory or one above it has a project file.
func hasProject(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, projectName)); err == nil {
			return true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return false
		}
		dir = above
	}
}

// loseRest reports the parts of the suite that are not in the file.
func (w *writer) loseRest() {
	w.LoseKeys()
	if w.suites {
		w.Lose(false, "tags "+suiteTag+":NAME", "the suites of a project are in "+projectName)
	}
	if w.Skill != "" && !slices.ContainsFunc(w.Cases, func(c dialect.Case) bool { return len(c.Skills) > 0 }) {
		w.Lose(true, "skill", "waza does not find its folder, which the environment would name")
	}
	w.LoseArms("Vally")
	if len(w.Cases) == 0 {
		w.Lose(true, "tasks", "the suite has none, and a file of Vally needs one")
	}
}

// setConfig sets the run settings.
func (w *writer) setConfig(root dialect.Map) {
	config := dialect.NewMap(nil)
	if runs, ok := dialect.Take[int](&w.Settings, "config.trials_per_task"); ok {
		config.Set("runs", dialect.Scalar(nil, runs))
	}
	if seconds, ok := dialect.Take[float64](&w.Settings, "config.timeout_seconds"); ok {
		config.Set("timeout", duration(seconds))
	}
	for _, key := range []string{"model", "judge_model", "judge_reasoning_effort"} {
		if value, ok := dialect.Take[string](&w.Settings, "config."+key); ok {
			config.Set(key, dialect.Scalar(nil, value))
		}
	}
	for _, key := range w.Settings {
		if id, _ := key.Value.(string); key.Name == "config.executor" && slices.Contains(executors, id) {
			dialect.Take[string](&w.Settings, key.Name)
			config.Set("executor", dialect.Scalar(nil, id))
			break
		}
	}
	if config.Len() > 0 {
		root.Set("config", config.Node)
	}
}

// duration returns a number of seconds as a duration with a unit.
func duration(seconds float64) *yaml.Node {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d%time.Minute == 0:
		return dialect.Scalar(nil, fmt.Sprintf("%dm", d/time.Minute))
	case d%time.Second == 0:
		return dialect.Scalar(nil, fmt.Sprintf("%ds", d/time.Second))
	}
	return dialect.Scalar(nil, d.String())
}

// A weighed grader has been written without its weight.
type weighed struct {
	grader dialect.Map
	weight float64
}

// setScoring sets the least score and the weights: that of a type if all of its graders share it.
func (w *writer) setScoring(root dialect.Map, threshold float64) {
	scoring, weights := dialect.NewMap(nil), dialect.NewMap(nil)
	for _, kind := range slices.Sorted(maps.Keys(w.weights)) {
		graders := w.weights[kind]
		first := graders[0].weight
		if !slices.ContainsFunc(graders, func(g weighed) bool { return g.weight != first }) {
			if first != 1 {
				weights.Set(kind, dialect.Scalar(nil, first))
			}
			continue
		}
		for _, g := range graders {
			if g.weight != 1 {
				g.grader.Set("weight", dialect.Scalar(nil, g.weight))
			}
		}
	}
	if weights.Len() > 0 {
		scoring.Set("weights", weights.Node)
	}
	if w.threshold {
		scoring.Set("threshold", dialect.Scalar(nil, threshold))
	}
	if scoring.Len() > 0 {
		root.Set("scoring", scoring.Node)
	}
}

// shareEnvironment moves an environment that all stimuli have to the suite.
func (w *writer) shareEnvironment(root dialect.Map, stimuli *yaml.Node) {
	var shared string
	for i, n := range stimuli.Content {
		data, err := yaml.Marshal((dialect.Map{Node: n}).Get("environment"))
		if err != nil || i > 0 && string(data) != shared {
			return
		}
		shared = string(data)
	}
	if len(stimuli.Content) < 2 {
		return
	}
	root.Set("environment", (dialect.Map{Node: stimuli.Content[0]}).Get("environment"))
	for _, n := range stimuli.Content {
		for k := 0; k < len(n.Content); k += 2 {
			if n.Content[k].Value == "environment" {
				n.Content = slices.Delete(n.Content, k, k+2)
				break
			}
		}
	}
}

// stimulusWriter writes one task.
type stimulusWriter struct {
	*writer
	from        *dialect.Case
	to          dialect.Map
	environment dialect.Map
	limits      dialect.Map // constraints
	config      dialect.Map
	names       map[string]bool // of the graders until now
	effort      string          // of all judges; empty if they differ
}

func (s *stimulusWriter) lose(verdict bool, part, reason string) {
	s.LoseIn(s.from, s.to.Node, verdict, part, reason)
}

func (s *stimulusWriter) write() {
	c := s.from
	s.limits, s.config = dialect.NewMap(nil), dialect.NewMap(nil)
	s.to.Set("name", dialect.Scalar(nil, c.ID))
	if c.Name != c.ID {
		s.lose(false, "name", "a stimulus has one name, which is the id")
	}
	if c.Description != "" {
		s.to.Set("description", dialect.Scalar(nil, c.Description))
	}
	s.setTags()
	s.setPrompts()
	if runs, ok := dialect.Take[int](&c.Others, "trials"); ok {
		s.to.Set("runs", dialect.Scalar(nil, runs))
	}
	if seconds, ok := dialect.Take[float64](&c.Others, "timeout_seconds"); ok {
		s.config.Set("timeout", duration(seconds))
	}
	if model, ok := dialect.Take[string](&c.Others, "model"); ok {
		s.config.Set("model", dialect.Scalar(nil, model))
	}
	s.setEnvironment()
	s.takeCheckpoints()
	s.effort = effortOf(c.Checks)
	graders := dialect.List(nil)
	for left := c.Checks; len(left) > 0; {
		n := membersIn(left)
		if panel := s.panel(left[:n]); panel != nil {
			graders.Content = append(graders.Content, panel)
		} else {
			for i := range n {
				graders.Content = append(graders.Content, s.grader(&left[i])...)
			}
		}
		left = left[n:]
	}
	for _, p := range []struct {
		key string
		m   dialect.Map
	}{{"config", s.config}, {"environment", s.environment}, {"constraints", s.limits}} {
		if p.m.Len() > 0 {
			s.to.Set(p.key, p.m.Node)
		}
	}
	setList(s.to, "graders", graders)
	for _, key := range c.Others {
		reason, _ := key.Value.(string)
		if key.Name != "blocked" {
			reason = ""
		}
		s.lose(true, key.Name, reason)
	}
}

// effortOf returns the reasoning effort that all judges of a task have; empty if they differ.
func effortOf(checks []dialect.Check) (effort string) {
	first := true
	for i := range checks {
		if checks[i].Type != "prompt" {
			continue
		}
		own, _ := checks[i].Config["reasoning_effort"].(string)
		if !first && own != effort {
			return ""
		}
		effort, first = own, false
	}
	return effort
}

// membersIn returns the number of graders that are in the group of the first; 1 if it is in none.
func membersIn(checks []dialect.Check) int {
	groupOf := func(c *dialect.Check) (dialect.Group, bool) {
		others := c.Others
		return dialect.Take[dialect.Group](&others, "group")
	}
	group, ok := groupOf(&checks[0])
	n := 1
	for ok && n < len(checks) {
		other, in := groupOf(&checks[n])
		if !in || other.Name != group.Name {
			break
		}
		n++
	}
	return n
}

// panel writes a group of judges that differ only in their models; nil if Vally cannot say the group.
func (s *stimulusWriter) panel(members []dialect.Check) *yaml.Node {
	first := members[0]
	group, ok := dialect.Take[dialect.Group](&first.Others, "group")
	voting := group.Aggregate == majority
	if !ok || voting == (group.Threshold != nil) || group.Optional && !s.threshold || group.Aggregate != "" && !slices.Contains(aggregations, group.Aggregate) {
		return nil
	}
	// judgeOf returns the options of a judge that all must have, and its model.
	judgeOf := func(c dialect.Check) (rest map[string]any, model string) {
		rest = maps.Clone(c.Config)
		model, _ = rest["model"].(string)
		delete(rest, "model")
		if !voting { // the score decides, not the judge's own threshold
			rest["threshold"] = *group.Threshold
		}
		for key := range rest {
			ok = ok && slices.Contains([]string{"prompt", "threshold", "reasoning_effort"}, key)
		}
		effort, _ := rest["reasoning_effort"].(string)
		ok = ok && c.Type == "prompt" && c.Weight == 1 && model != "" && rest["threshold"] != nil && effort == s.effort
		return rest, model
	}
	rest, _ := judgeOf(first)
	var models []string
	for _, m := range members {
		other, model := judgeOf(m)
		_, _ = dialect.Take[dialect.Group](&m.Others, "group")
		ok = ok && reflect.DeepEqual(other, rest) && slices.EqualFunc(m.Others, first.Others, func(a, b dialect.Key) bool {
			return a.Name == "turn" && a == b
		})
		models = append(models, model)
	}
	if !ok {
		return nil
	}
	for i, m := range members {
		if name := s.unusedName(group.Name + " of " + models[i]); name != m.Name {
			s.lose(false, m.Named(), fmt.Sprintf("the judges of a panel have no names, so this one is %q", name))
		}
		s.names[s.unusedName(group.Name+" of "+models[i])] = true
	}
	first.Name = group.Name
	turn, _ := dialect.Take[int](&first.Others, "turn")
	c := &checkWriter{stimulusWriter: s, from: &first, left: rest}
	c.judge()
	config := c.out[0].config
	config.Set("models", dialect.Texts(nil, models...))
	if group.Aggregate != "" {
		config.Set("aggregation", dialect.Scalar(nil, group.Aggregate))
	}
	weight := group.Weight
	if group.Optional {
		weight = 0
	}
	return c.built(writtenGrader{"panel", config}, turn, weight)
}

func (s *stimulusWriter) setTags() {
	tags := dialect.NewMap(nil)
	for _, t := range s.from.Tags {
		key, value, ok := strings.Cut(t, ":")
		switch {
		case !ok || key == "" || value == "":
			s.lose(false, "tag "+t, "tags have the form KEY:VALUE")
		case key == suiteTag && s.inProject:
			s.suites = true
		case slices.Contains(executorTags, key) || strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{"):
			s.lose(false, "tag "+t, "it would be a setting of an executor")
		case tags.Get(key) == nil:
			tags.Set(key, dialect.Scalar(nil, value))
		default:
			before := tags.Get(key)
			if before.Kind == yaml.ScalarNode {
				before = dialect.List(nil, before)
			}
			before.Content = append(before.Content, dialect.Scalar(nil, value))
			tags.Set(key, before)
		}
	}
	if tags.Len() > 0 {
		s.to.Set("tags", tags.Node)
	}
}

func (s *stimulusWriter) setPrompts() {
	all := append([]string{s.from.Prompt}, s.from.FollowUps...)
	if s.Templates && strings.Contains(strings.Join(all, ""), "{{") {
		s.lose(true, "prompt", "prompts have no template variables")
	}
	for _, found := range parameter().FindAllStringSubmatch(strings.Join(all, "\n"), -1) {
		if found[2] != "" {
			s.lose(true, "prompt", "Vally replaces "+found[0]+" by a parameter")
			break
		}
	}
	if len(all) == 1 {
		s.to.Set("prompt", dialect.Scalar(nil, all[0]))
		return
	}
	s.to.Set("turns", dialect.Texts(nil, all...))
}

// setEnvironment sets the skills, files, commands and servers.
func (s *stimulusWriter) setEnvironment() {
	c := s.from
	dirs, own := dialect.Take[[]string](&c.Others, "skill_directories")
	switch {
	case own:
	case s.skills != nil:
		dirs = s.skills
	case s.Skill != "":
		dirs = c.Skills
	}
	skills, files := dialect.List(nil), dialect.List(nil)
	for _, dir := range dirs {
		skills.Content = append(skills.Content, dialect.Scalar(nil, s.Relative(dir)))
	}
	if setList(s.environment, "skills", skills); own && len(dirs) == 0 {
		s.environment.Set("skills", skills) // none, in place of those of the project
	}
	for _, f := range c.Files {
		if f.Content != nil {
			s.lose(true, "file "+f.Path, "Vally copies files, so write the text to a file")
			continue
		}
		m := dialect.NewMap(nil)
		m.Set("src", dialect.Scalar(nil, s.Relative(f.Source)))
		m.Set("dest", dialect.Scalar(nil, f.Path))
		files.Content = append(files.Content, m.Node)
	}
	setList(s.environment, "files", files)
	if commands, ok := dialect.Take[[]string](&c.Others, "inputs.setup"); ok {
		s.environment.Set(commandsKey, dialect.Texts(nil, commands...))
	}
	if env := s.takeVariables(); len(env) > 0 {
		s.environment.Set("env", dialect.Encoded(env))
	}
	s.setServers()
	s.setRepository()
}

// takeVariables removes the variables of the agent, unless Vally would expand one of them.
func (s *stimulusWriter) takeVariables() map[string]string {
	const name = "inputs.environment"
	for _, key := range s.from.Others {
		env, _ := key.Value.(map[string]string)
		if key.Name == name && !strings.Contains(strings.Join(slices.Collect(maps.Values(env)), ""), "$") {
			dialect.Take[map[string]string](&s.from.Others, name)
			return env
		}
	}
	return nil
}

var serverKeys = []string{"type", "command", "args", "url", "env", "headers"}

func (s *stimulusWriter) setServers() {
	all := maps.Clone(s.servers)
	own, _ := dialect.Take[map[string]any](&s.from.Others, "mcp_servers")
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, own)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, key := range slices.Sorted(maps.Keys(asMap(all[name]))) {
			if !slices.Contains(serverKeys, key) {
				s.lose(true, "MCP server "+name+" "+key, "")
			}
		}
	}
	if len(all) > 0 {
		s.environment.Set("mcpServers", dialect.Encoded(all))
	}
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func (s *stimulusWriter) setRepository() {
	for _, key := range s.from.Others {
		repos, ok := key.Value.([]surroundings.Repo)
		if !ok || len(repos) != 1 || repos[0].Dest != "" && repos[0].Dest != "." {
			continue
		}
		dialect.Take[[]surroundings.Repo](&s.from.Others, key.Name)
		git := dialect.NewMap(nil)
		git.Set("source", dialect.Scalar(nil, s.Relative(repos[0].Dir)))
		if commit := repos[0].Commit; commit != "" && commit != "HEAD" {
			git.Set("ref", dialect.Scalar(nil, commit))
		}
		s.environment.Set("git", git.Node)
		return
	}
}

// takeCheckpoints writes checkpoints as constraints, which Vally checks at the end.
func (s *stimulusWriter) takeCheckpoints() {
	points, ok := dialect.Take[[]dialect.CaseCheckpoint](&s.from.Others, "inputs.checkpoints")
	if !ok {
		return
	}
	for _, p := range points {
		if p.AfterTurn != 1+len(s.from.FollowUps) || p.OnFailure != "" && p.OnFailure != "continue" ||
			len(p.Files)+len(p.Setup) > 0 || p.AgentTimeout > 0 {
			s.lose(true, fmt.Sprintf("checkpoint after turn %d", p.AfterTurn), "Vally checks only limits and skills, at the end")
			continue
		}
		for i := range p.Checks {
			c := &p.Checks[i]
			if len(c.Others) > 0 || !s.constrain(c.Type, maps.Clone(c.Config)) {
				s.lose(true, fmt.Sprintf("checkpoint after turn %d: %s", p.AfterTurn, c.Named()), "Vally checks only limits and skills, at the end")
			}
		}
	}
}

// constrain writes the limits of behavior, or required skills, as constraints. It returns false if these
// cannot say them.
func (s *stimulusWriter) constrain(kind string, options map[string]any) bool {
	limits := dialect.NewMap(nil)
	switch kind {
	case "skill_invocation":
		skills, ok := dialect.TextsIn(options["required_skills"])
		if !ok || options["mode"] != "any_order" || len(options) != 2 {
			return false
		}
		limits.Set("expect_skills", dialect.Texts(nil, skills...))
	case "tool_constraint":
		tools := expectedTools(options)
		if tools == nil {
			return false
		}
		limits.Set("expect_tools", dialect.Texts(nil, tools...))
	case "behavior":
		for key, value := range options {
			switch key {
			case "max_iterations":
				limits.Set("max_turns", dialect.Encoded(value))
			case "max_tokens":
				limits.Set(key, dialect.Encoded(value))
			case "max_duration_ms":
				ms, ok := dialect.NumberIn(value)
				if !ok {
					return false
				}
				limits.Set("max_duration", duration(ms/1000))
			default:
				return false
			}
		}
	default:
		return false
	}
	pairs := dialect.Pairs(limits.Node)
	for _, p := range pairs {
		if s.limits.Get(p.Key.Value) != nil {
			return false
		}
	}
	slices.SortFunc(pairs, func(a, b decode.Pair) int { return cmp.Compare(a.Key.Value, b.Key.Value) })
	for _, p := range pairs {
		s.limits.Set(p.Key.Value, p.Value)
	}
	return true
}

// expectedTools returns the names of tools that must be called, if the options demand nothing else.
func expectedTools(options map[string]any) (names []string) {
	items, _ := options["expect_tools"].([]any)
	if len(options) != 1 {
		return nil
	}
	for _, item := range items {
		rule := asMap(item)
		tool, _ := rule["tool"].(string)
		name := dialect.Unquote(strings.TrimSuffix(strings.TrimPrefix(tool, "^"), "$"))
		if len(rule) != 1 || name == "" || tool != "^"+regexp.QuoteMeta(name)+"$" {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// writtenGrader is a grader of Vally.
type writtenGrader struct {
	kind   string
	config dialect.Map
}

// checkWriter writes one grader as one or more of Vally.
type checkWriter struct {
	*stimulusWriter
	from *dialect.Check
	left map[string]any // options that are not written yet
	turn int            // from 1 on; 0 for none
	out  []writtenGrader

	negate, optional bool
}

// writers write graders by the types of waza. Options that remain are reported.
var writers = map[string]func(*checkWriter){
	"text": (*checkWriter).text, "file": (*checkWriter).file, "code": (*checkWriter).code, "skill_invocation": (*checkWriter).skills,
	"prompt": (*checkWriter).judge, "behavior": (*checkWriter).behavior, "tool_calls": (*checkWriter).toolCalls,
	"tool_constraint": (*checkWriter).toolRules, "program": (*checkWriter).command,
}

func (s *stimulusWriter) grader(from *dialect.Check) (graders []*yaml.Node) {
	c := &checkWriter{stimulusWriter: s, from: from, left: maps.Clone(from.Config)}
	part := from.Named()
	if s.Templates && dialect.HasVariable(from.Config) {
		s.lose(true, part, "texts of graders have no template variables")
	}
	c.negate, _ = dialect.Take[bool](&from.Others, "negate")
	c.turn, _ = dialect.Take[int](&from.Others, "turn")
	c.optional, _ = dialect.Take[bool](&from.Others, "optional")
	write := writers[from.Type]
	if write == nil {
		s.lose(true, fmt.Sprintf("%s (%s)", part, from.Type), "Vally has no such grader")
		return nil
	}
	write(c)
	for _, key := range slices.Sorted(maps.Keys(c.left)) {
		s.lose(true, fmt.Sprintf("%s (%s) %s", part, from.Type, key), "")
	}
	for _, key := range from.Others {
		s.lose(true, part+" "+key.Name, "")
	}
	if c.negate {
		s.lose(true, part+" negate", "")
	}
	if len(c.out) > 1 {
		s.lose(false, part, "each of its options becomes a grader of its own")
	}
	weight := from.Weight
	switch {
	case c.optional && s.threshold:
		weight = 0
	case c.optional && len(c.out) > 0:
		s.lose(true, part+" optional", "without a least score, every grader of Vally must pass")
	}
	for _, g := range c.out {
		graders = append(graders, c.built(g, c.turn, weight))
	}
	return graders
}

// built returns a grader with its name, unless it is the one that the reader gives it.
func (c *checkWriter) built(g writtenGrader, turn int, weight float64) *yaml.Node {
	m := dialect.NewMap(nil)
	m.Set("type", dialect.Scalar(nil, g.kind))
	standard := c.unusedName(g.kind)
	name := c.from.Name
	if name != standard {
		name = c.unusedName(name)
		m.Set("name", dialect.Scalar(nil, name))
	}
	c.names[name] = true
	if g.config.Len() > 0 {
		m.Set("config", g.config.Node)
	}
	if turn > 0 {
		m.Set("turn", dialect.Scalar(nil, turn-1))
	}
	c.weights[g.kind] = append(c.weights[g.kind], weighed{m, weight})
	return m.Node
}

// unusedName returns a name that no grader of the stimulus has, as the reader finds it.
func (s *stimulusWriter) unusedName(name string) string {
	unique := name
	for k := 2; s.names[unique]; k++ {
		unique = fmt.Sprintf("%s, %d", name, k)
	}
	return unique
}

// add adds a grader with options: keys and values in turn. It leaves out values that are nil.
func (c *checkWriter) add(kind string, options ...any) dialect.Map {
	config := dialect.NewMap(nil)
	for i := 0; i < len(options); i += 2 {
		config.Set(options[i].(string), dialect.Encoded(options[i+1]))
	}
	c.out = append(c.out, writtenGrader{kind, config})
	return config
}

// take removes an option.
func (c *checkWriter) take(key string) any {
	v := c.left[key]
	delete(c.left, key)
	return v
}

// takeIf removes an option with a value, and returns whether it has that value.
func (c *checkWriter) takeIf(key string, value any) bool {
	if c.left[key] != value {
		return false
	}
	delete(c.left, key)
	return true
}

// patterns removes an option with regular expressions; ok is false if Vally cannot say them.
func (c *checkWriter) patterns(v any, javascript bool) (list []string, ok bool) {
	list, ok = dialect.TextsIn(v)
	for _, p := range list {
		ok = ok && (javascript || dialect.LosePattern(p, c.from.Named(), c.lose))
	}
	return list, ok
}

// absentOr returns the opposite if the grader is negated. A grader of several checks has no opposite.
func (c *checkWriter) absentOr(absent bool, several bool) bool {
	if c.negate && !several {
		c.negate = false
		return !absent
	}
	return absent
}

func (c *checkWriter) text() {
	javascript := c.takeIf("syntax", "javascript")
	several := len(c.left) > 1
	for _, key := range []string{"contains", "contains_cs", "not_contains", "not_contains_cs", "regex_match", "regex_not_match"} {
		values, ok := dialect.TextsIn(c.left[key])
		if strings.HasPrefix(key, "regex") && ok {
			values, ok = c.patterns(values, javascript)
		}
		if !ok || slices.Contains(values, "") {
			continue
		}
		delete(c.left, key)
		absent := c.absentOr(strings.Contains(key, "not_"), several || len(values) > 1)
		for _, v := range values {
			switch {
			case strings.HasPrefix(key, "contains"), strings.HasPrefix(key, "not_contains"):
				config := c.add(either(absent, "output-not-contains", "output-contains"), "substring", v)
				if strings.HasSuffix(key, "_cs") {
					config.Set("case_sensitive", dialect.Scalar(nil, true))
				}
			case v == `[\s\S]` && !absent:
				c.add("exit-success")
			default:
				c.add(either(absent, "output-not-matches", "output-matches"), "pattern", v)
			}
		}
	}
}

func (c *checkWriter) file() {
	javascript := c.takeIf("syntax", "javascript")
	several := len(c.left) > 1
	for _, key := range []string{"must_exist", "must_not_exist"} {
		paths, ok := dialect.TextsIn(c.left[key])
		if !ok {
			continue
		}
		delete(c.left, key)
		kind := either(c.absentOr(key == "must_not_exist", several || len(paths) > 1), "file-not-exists", "file-exists")
		for _, p := range paths {
			c.add(kind, "path", p)
		}
	}
	items, _ := c.left["content_patterns"].([]any)
	for _, item := range items {
		if !c.content(asMap(item), javascript, several || len(items) > 1) {
			return // the option remains, and is reported
		}
	}
	delete(c.left, "content_patterns")
}

// content writes the patterns of one path. Vally has only the opposite of a match, which a file that does
// not exist has, too.
func (c *checkWriter) content(m map[string]any, javascript, several bool) bool {
	path, _ := m["path"].(string)
	patterns, ok := c.patterns(m["must_match"], javascript)
	if path == "" || !ok || len(m) != 2 {
		return false
	}
	absent := c.absentOr(false, several || len(patterns) > 1)
	for _, p := range patterns {
		plain, folds := strings.CutPrefix(p, "(?i)")
		word := dialect.Unquote(plain)
		switch {
		case regexp.QuoteMeta(word) == plain && (word != plain || strings.HasPrefix(c.from.Name, "file-contains") || strings.HasPrefix(c.from.Name, "file-not-contains")):
			config := c.add(either(absent, "file-not-contains", "file-contains"), "path", path, "substring", word)
			if !folds {
				config.Set("case_sensitive", dialect.Scalar(nil, true))
			}
		default:
			c.add(either(absent, "file-not-matches", "file-matches"), "path", path, "pattern", p)
		}
	}
	return true
}

func (c *checkWriter) code() {
	assertions, _ := dialect.TextsIn(c.left["assertions"])
	if c.left["language"] != "javascript" || len(assertions) != 1 || len(c.left) != 2 {
		return
	}
	var most json.Number
	switch n, _ := fmt.Sscanf(assertions[0], "errors.length <= %s", &most); {
	case assertions[0] == completedCode:
		c.add("completed")
	case n == 1 && assertions[0] == "errors.length <= "+most.String():
		value, err := most.Float64()
		if err != nil {
			return
		}
		config := c.add("error-count")
		if value != 0 {
			config.Set("max", dialect.Scalar(nil, value))
		}
	default:
		return
	}
	c.left = nil
}

func (c *checkWriter) skills() {
	if !c.takeIf("mode", "any_order") {
		return
	}
	if !c.takeIf("score", "pass") {
		c.lose(c.threshold, c.from.Named()+" score", "in Vally, the score is 1 or 0")
	}
	c.takeIf("allow_extra", true)
	c.add("skill-invocation", "required", c.take("required_skills"), "disallowed", c.take("forbidden_skills"))
}

// judge writes a judge. Vally's scales are part of the prompt.
func (c *checkWriter) judge() {
	criteria, joined := dialect.TakeCriteria(c.left)
	switch {
	case criteria == "":
		return
	case joined:
		c.lose(false, c.from.Named(), "one judge decides about all statements together")
	}
	config, scoring := dialect.NewMap(nil), ""
	for name, scale := range scales {
		if before, ok := strings.CutSuffix(criteria, "\n\n"+scale); ok {
			criteria, scoring = before, name
		}
	}
	if scoring == "" {
		scoring = "binary"
		if c.left["threshold"] != nil {
			scoring = "scale_1_10"
		}
		c.lose(false, c.from.Named(), "the judge answers on a scale of Vally, "+scoring)
	}
	if criteria != defaultRubric {
		config.Set("prompt", dialect.Scalar(nil, criteria))
	}
	if scoring != "scale_1_5" {
		config.Set("scoring", dialect.Scalar(nil, scoring))
	}
	if threshold := c.take("threshold"); threshold != nil && threshold != 0.5 {
		config.Set("threshold", dialect.Encoded(threshold))
	}
	config.Set("model", dialect.Encoded(c.take("model")))
	if effort, ok := c.left["reasoning_effort"].(string); ok && c.effort == effort {
		delete(c.left, "reasoning_effort")
		c.config.Set("judge_reasoning_effort", dialect.Scalar(nil, effort))
	}
	c.out = append(c.out, writtenGrader{"prompt", config})
}

func (c *checkWriter) behavior() {
	limit, _ := dialect.NumberIn(c.left["max_duration_ms"])
	calls := c.left["max_tool_calls"]
	switch {
	case len(c.left) == 1 && limit > 0:
		c.add("wall-time").Set("max", duration(limit/1000))
	case len(c.left) == 1 && calls != nil:
		c.add("tool-call-count", "max", calls)
	case len(c.left) == 1 && c.left["max_iterations"] != nil:
		c.add("turn-count", "max", c.left["max_iterations"])
	case len(c.left) == 1 && c.left["max_tokens"] != nil:
		c.add("token-budget", "max", c.left["max_tokens"])
	case !c.threshold && !c.negate && !c.optional && c.turn == 0 && c.constrain("behavior", c.left):
		c.lose(false, c.from.Named(), "Vally checks these limits as constraints, which have no score")
	default:
		return
	}
	c.left = nil
}

func (c *checkWriter) toolCalls() {
	if c.left["min_calls"] != nil || c.left["max_calls"] != nil {
		c.add("tool-call-count", "min", c.take("min_calls"), "max", c.take("max_calls"))
	}
	if c.left["required_tools"] != nil || c.left["forbidden_tools"] != nil {
		c.add("tool-calls", "required", c.take("required_tools"), "disallowed", c.take("forbidden_tools"))
	}
}

func (c *checkWriter) toolRules() {
	javascript := c.takeIf("syntax", "javascript")
	config := dialect.NewMap(nil)
	for _, list := range [][2]string{{"expect_tools", "required"}, {"reject_tools", "disallowed"}} {
		items, _ := c.left[list[0]].([]any)
		rules := dialect.List(nil)
		for _, item := range items {
			if rule := c.rule(asMap(item), javascript); rule != nil {
				rules.Content = append(rules.Content, rule)
			}
		}
		if len(items) > 0 && len(rules.Content) == len(items) {
			delete(c.left, list[0])
			config.Set(list[1], rules)
		}
	}
	if config.Len() == 0 {
		return
	}
	if c.takeIf("ordered", true) {
		config.Set("ordered", dialect.Scalar(nil, true))
	}
	c.out = append(c.out, writtenGrader{"tool-calls", config})
}

// ruleKeys are the keys of rules in Vally by those of waza.
var ruleKeys = []struct{ waza, vally string }{
	{"tool", "name"}, {"command_pattern", "command"}, {"path_pattern", "path"}, {"args_pattern", "pattern"}, {"result_pattern", "result"},
}

// rule returns a rule about calls of tools; nil if Vally cannot say it.
func (c *checkWriter) rule(from map[string]any, javascript bool) *yaml.Node {
	left, rule := maps.Clone(from), dialect.NewMap(nil)
	for _, key := range ruleKeys {
		if left[key.waza] == nil {
			continue
		}
		list, ok := c.patterns(left[key.waza], javascript)
		if !ok || len(list) != 1 {
			return nil
		}
		delete(left, key.waza)
		rule.Set(key.vally, dialect.Scalar(nil, list[0]))
	}
	if args := asMap(left["args"]); len(args) > 0 {
		delete(left, "args")
		to := dialect.NewMap(nil)
		for _, name := range slices.Sorted(maps.Keys(args)) {
			m := asMap(args[name])
			list, ok := c.patterns(m["regex"], javascript)
			if !ok || len(list) != 1 || len(m) != 1 {
				return nil
			}
			to.Set(name, dialect.Scalar(nil, list[0]))
		}
		rule.Set("args", to.Node)
	}
	if len(left) > 0 || rule.Len() == 0 {
		return nil
	}
	if name := dialect.TextOf(rule.Get("name")); rule.Len() == 1 && name != "" {
		plain, starts := strings.CutPrefix(name, "^")
		plain, ends := strings.CutSuffix(plain, "$")
		if starts && ends && plain != "" && regexp.QuoteMeta(plain) == plain {
			return dialect.Scalar(nil, plain)
		}
	}
	return rule.Node
}

// command writes a program. One without expectations decides itself, the others are commands with an
// expected exit code and output.
func (c *checkWriter) command() {
	command, _ := c.left["command"].(string)
	if command == "" {
		return
	}
	delete(c.left, "command")
	args, _ := dialect.TextsIn(c.take("args"))
	if !c.takeIf("trust_workspace", true) {
		c.lose(true, c.from.Named()+" trust_workspace", "Vally starts programs in the workspace")
	}
	if !c.takeIf("network", true) {
		c.lose(false, c.from.Named()+" network", "in Vally, programs have the network")
	}
	if words := append([]string{command}, args...); filepath.Dir(c.File) != c.Dir {
		if i, file := c.ProgramFile(words); i >= 0 {
			words[i] = c.Relative(file)
			command, args = words[0], words[1:]
		}
	}
	env := maps.Clone(asMap(c.take("env")))
	config, kind := dialect.NewMap(nil), "run-command"
	if c.left["expect"] == nil {
		kind = "program"
		c.takeIf("workspace", workspaceVariable)
		c.takeIf("trajectory", inputVariable)
		if !c.takeIf("strict", true) {
			c.lose(false, c.from.Named(), "in Vally, a program prints a result with passed, or nothing")
		}
		c.setProgram(config, command, args)
	} else {
		c.setCommand(config, command, args)
	}
	config.Set("sub_path", dialect.Encoded(c.take("sub_path")))
	if limit, ok := dialect.NumberIn(c.take("timeout")); ok && limit != 60 {
		config.Set("timeout", duration(limit))
	}
	if len(env) > 0 {
		config.Set("env", dialect.Encoded(env))
	}
	c.out = append(c.out, writtenGrader{kind, config})
}

func (c *checkWriter) setProgram(config dialect.Map, program string, args []string) {
	if script, ok := strings.CutSuffix(at(args, 1), ` "$@"`); ok && program == "sh" && at(args, 0) == "-c" && at(args, 2) == "sh" {
		config.Set("program", dialect.Scalar(nil, script))
		config.Set("shell", dialect.Scalar(nil, true))
		args = args[3:]
	} else {
		config.Set("program", dialect.Scalar(nil, program))
	}
	if len(args) > 0 {
		config.Set("args", dialect.Texts(nil, args...))
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func (c *checkWriter) setCommand(config dialect.Map, command string, args []string) {
	if command == "sh" && len(args) == 2 && args[0] == "-c" {
		config.Set("command", dialect.Scalar(nil, args[1]))
	} else {
		config.Set("command", dialect.Scalar(nil, command))
		config.Set("args", dialect.Texts(nil, args...))
	}
	expect := maps.Clone(asMap(c.take("expect")))
	javascript := expect["syntax"] == "javascript"
	delete(expect, "syntax")
	if code := expect["exit_code"]; code != nil {
		config.Set("expected_exit_code", dialect.Encoded(code))
		delete(expect, "exit_code")
	}
	for _, key := range []string{"stdout_contains", "stderr_contains", "stdout_matches", "stdout_not_matches"} {
		texts, ok := dialect.TextsIn(expect[key])
		if ok && strings.HasSuffix(key, "matches") {
			texts, ok = c.patterns(texts, javascript)
		}
		if ok {
			config.Set(key, dialect.Texts(nil, texts...))
			delete(expect, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(expect)) {
		c.lose(true, c.from.Named()+" expect."+key, "")
	}
}
