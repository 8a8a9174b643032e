package scaffold

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"waza/eval"
	"waza/eval/project"
	"waza/eval/skill"
	"waza/eval/text"
)

// Limits of what a suite takes from the description of a skill.
const (
	mostPrompts  = 50 // of each kind of trigger test
	mostKeywords = 4
	maxPrompt    = 500 // characters
)

// taskData is the data of the template of a task.
type taskData struct {
	ID, Name, Description string
	Tags                  []string
	Prompt                string
	Files                 []string
	Trigger               string // true, false or empty
	Graders               []graderData
}

type graderData struct {
	Type, Name string
	Config     []configData
}

type configData struct {
	Key    string
	Values []string
}

// layout describes where the files of a suite are.
type layout struct {
	dir      string // of the suite, relative to that of the scaffold, with slashes
	evalFile string
	tasks    string // directory of task files, relative to the suite
	glob     string // the pattern that matches them
	suffix   string // of their names
	executor string // the suite's executor; empty if the project names one
}

// layoutOf returns the layout that a project sets; p can be nil.
func layoutOf(p *eval.Project, dir string) layout {
	l := layout{dir: dir, evalFile: "eval.yaml", tasks: "tasks", glob: "tasks/*.yaml", suffix: ".yaml", executor: "mock"}
	if p == nil {
		return l
	}
	if p.Defaults.Engine != nil {
		l.executor = ""
	}
	f := p.Files
	l.evalFile, l.suffix = cmp.Or(f.EvalFile, l.evalFile), cmp.Or(f.TaskFileSuffix, l.suffix)
	if f.TaskGlob != "" || f.TaskFileSuffix != "" {
		l.glob = cmp.Or(f.TaskGlob, "tasks/*"+l.suffix)
	}
	// Tasks go where the pattern finds them, or else to tasks/.
	if dir, last := path.Split(l.glob); !strings.ContainsAny(dir, `*?[{\`) && filepath.IsLocal(cmp.Or(dir, ".")) &&
		strings.HasPrefix(last, "*") && !strings.ContainsAny(last[1:], `*?[{\`) {
		l.tasks = path.Clean(cmp.Or(dir, "."))
		l.suffix = last[1:]
	} else {
		l.glob = "tasks/*" + l.suffix
	}
	return l
}

func (l layout) task(id string) string { return path.Join(l.dir, l.tasks, id+l.suffix) }

// suiteData is the data of the template of a suite.
type suiteData struct {
	Name, Description, Skill, Executor, Glob string
	Efficiency                               bool
}

func (l layout) suite(s *scaffold, name, description string, efficiency bool) {
	s.file(path.Join(l.dir, l.evalFile), render("eval.yaml", suiteData{
		Name: name + "-eval", Description: description, Skill: name, Executor: l.executor, Glob: l.glob, Efficiency: efficiency,
	}))
}

// fromSkill adds a suite made from a skill's description: a task for each of the first phrases
// of USE FOR and DO NOT USE FOR, and trigger tests for all of them.
func (l layout) fromSkill(s *scaffold, sk *skill.Skill, name string) {
	use, avoid := prompts(sk, name)
	l.suite(s, name, "Does an agent with the skill "+name+" do what its description says?", true)
	for i, p := range use[:min(len(use), 2)] {
		s.task(l, taskData{
			ID: fmt.Sprintf("positive-trigger-%d", i+1), Name: "Uses the skill: " + text.Clip(p, 60), Tags: []string{"trigger", "positive"},
			Prompt: p, Trigger: "true", Graders: onTopic(p),
		})
	}
	s.task(l, taskData{
		ID: "negative-trigger-1", Name: "Leaves the skill alone: " + text.Clip(avoid[0], 60), Tags: []string{"trigger", "negative"},
		Prompt: avoid[0], Trigger: "false",
	})
	l.triggers(s, name, use, avoid)
}

func (s *scaffold) task(l layout, t taskData) { s.file(l.task(t.ID), render("task.yaml", t)) }

func (l layout) triggers(s *scaffold, name string, use, avoid []string) {
	s.file(path.Join(l.dir, "trigger_tests.yaml"), render("trigger_tests.yaml", struct {
		Skill      string
		Use, Avoid []string
	}{name, use, avoid}))
}

// firstTasks adds the tasks of a new skill.
func (l layout) firstTasks(s *scaffold, sk *skill.Skill, name string) {
	use, avoid := prompts(sk, name)
	l.suite(s, name, "Does an agent with the skill "+name+" do what its description says?", false)
	s.task(l, taskData{
		ID: "basic-usage", Name: "Basic usage", Description: "What users ask for most.", Tags: []string{"basic"},
		Prompt: use[0], Files: []string{"sample.py"}, Trigger: "true", Graders: onTopic(use[0]),
	})
	s.task(l, taskData{
		ID: "edge-case", Name: "Edge case", Description: "A prompt without clear instructions.", Tags: []string{"edge"},
		Prompt: "Help.",
	})
	s.task(l, taskData{
		ID: "should-not-trigger", Name: "Should not trigger", Description: "A prompt that the skill is not for.",
		Tags:   []string{"trigger", "negative"},
		Prompt: avoid[0], Trigger: "false",
	})
	l.triggers(s, name, use, avoid)
	s.file(path.Join(l.dir, "fixtures/sample.py"), render("sample.py", nil))
}

// prompts returns the phrases that the description of a skill lists. If it lists none, they come
// from the skill's name and summary. Neither list is empty.
func prompts(sk *skill.Skill, name string) (use, avoid []string) {
	use, avoid = sk.Phrases()
	use, avoid = plain(use), plain(avoid)
	if len(use) == 0 {
		words := strings.ReplaceAll(name, "-", " ")
		use = []string{"Help me with " + words + "."}
		if s := plain([]string{sk.Summary()}); len(s) > 0 {
			use = append(use, "Use the skill "+name+" for this: "+text.Clip(s[0], 200))
		}
	}
	if len(avoid) == 0 {
		avoid = []string{"What is the capital of France?"}
	}
	return use, avoid
}

// plain makes prompts from phrases: limited, without duplicates, and without text that looks
// like a template variable.
func plain(phrases []string) (out []string) {
	for _, p := range phrases {
		p = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(p, ""))
		p = text.Clip(strings.Join(strings.Fields(withoutVariables(p)), " "), maxPrompt)
		if p != "" && !slices.Contains(out, p) && len(out) < mostPrompts {
			out = append(out, p)
		}
	}
	return out
}

// withoutVariables returns a text that the suite does not take for one with template variables.
func withoutVariables(s string) string {
	for strings.Contains(s, "{{") { // each time, three braces leave two
		s = strings.ReplaceAll(s, "{{", "{ {")
	}
	return s
}

// onTopic returns a grader that looks for words of a prompt in the answer.
func onTopic(prompt string) []graderData {
	words := keywords(prompt, mostKeywords)
	if len(words) == 0 {
		return nil
	}
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	return []graderData{
		{Type: "text", Name: "on-topic", Config: []configData{{"regex_match", []string{"(?i)(" + strings.Join(words, "|") + ")"}}}},
	}
}

// fillers are words that do not describe a topic.
var fillers = strings.Fields("about after also been before could does each every from have help here into just " +
	"like make many more most much only other over please should show some such than that their them then there " +
	"these they this those through using very want what when where which while will with would your")

// keywords returns at most n words of a text that describe its topic.
func keywords(s string, n int) (out []string) {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, w := range words {
		if len([]rune(w)) >= 4 && len(w) <= 40 && !slices.Contains(fillers, w) && !slices.Contains(out, w) && len(out) < n {
			out = append(out, w)
		}
	}
	return out
}

// dirOr returns a directory of a project, or the usual one.
func dirOr(given, usual string) string { return strings.TrimSuffix(cmp.Or(given, usual), "/") }

// pathsOf returns the directories of a project, which can be nil, relative to it.
func pathsOf(p *eval.Project) (skills, evals string) {
	var paths project.Paths
	if p != nil {
		paths = p.Paths
	}
	return dirOr(paths.Skills, "skills"), dirOr(paths.Evals, "evals")
}

// TriggerTests returns a trigger_tests.yaml with the phrases of a skill's description.
func TriggerTests(sk *skill.Skill, name string) string {
	use, avoid := prompts(sk, name)
	return render("trigger_tests.yaml", struct {
		Skill      string
		Use, Avoid []string
	}{name, use, avoid})
}
