package dialect

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/files"
	"waza/eval/pattern"
	"waza/eval/skill"
	"waza/eval/text"
)

// YAMLFile returns a suite as a YAML file for people, see [Encode]. The comments before its first key name
// the losses outside of cases; the losses of a case are those that [Document.LoseIn] added.
func YAMLFile(d *Document, path string, root *yaml.Node) ([]File, error) {
	data, err := Encode(root)
	head := "# waza convert wrote this suite.\n"
	for _, l := range d.Losses {
		if l.inCase {
			continue
		}
		head += commented(l.String()) + "\n"
	}
	return []File{TextFile(path, head+string(data))}, err
}

// LoseIn adds a loss of a part of a case, and a comment with it before the node of the case.
func (d *Document) LoseIn(c *Case, node *yaml.Node, verdict bool, part, reason string) {
	l := Loss{Part: "task " + c.ID + ": " + part, Reason: reason, Verdict: verdict, inCase: true}
	d.Losses = append(d.Losses, l)
	AddComment(node, "not written: "+strings.TrimSuffix(part+": "+reason, ": "))
}

// LoseKeys reports the keys and settings of the suite that a writer did not take.
func (d *Document) LoseKeys() {
	for _, key := range d.Others {
		d.Lose(true, key.Name, "")
	}
	for _, key := range d.Settings {
		d.LoseSetting(key)
	}
}

// TakeUsualSkills removes config.skill_directories if they are places where readers of the format look for
// skills themselves.
func (d *Document) TakeUsualSkills() {
	rest := slices.Clone(d.Others)
	dirs, ok := Take[[]string](&rest, "config.skill_directories")
	isUsual := func(dir string) bool {
		return slices.ContainsFunc(skill.UsualPlaces, func(usual string) bool { return strings.HasSuffix(filepath.ToSlash(dir), "/"+usual) })
	}
	if ok && !slices.ContainsFunc(dirs, func(dir string) bool { return !isUsual(dir) }) {
		d.Others = rest
	}
}

// LoseArms reports the baseline and the trigger tests, for a tool that has neither.
func (d *Document) LoseArms(tool string) {
	if d.Baseline {
		d.Lose(false, "baseline", tool+" has no arm without the skill")
	}
	if d.Triggers != nil {
		d.Lose(true, "trigger_tests", tool+" has no trigger tests; write them with --to trigger-evals.json")
	}
}

// TakeCriteria removes the criteria of a judge from its options: its prompt, or its statements in one text. It
// returns an empty text if it has neither.
func TakeCriteria(options map[string]any) (criteria string, joined bool) {
	if criteria, _ = options["prompt"].(string); criteria != "" {
		delete(options, "prompt")
		return criteria, false
	}
	statements, _ := options["statements"].([]any)
	if len(statements) == 0 || options["mode"] != nil {
		return "", false
	}
	delete(options, "statements")
	return JoinStatements(statements), true
}

// String returns the loss as a sentence.
func (l Loss) String() string {
	return "not written: " + strings.TrimSuffix(l.Part+": "+l.Reason, ": ")
}

// AddComment adds a line to the comment before a node, unless the comment has it. Control characters
// become spaces.
func AddComment(n *yaml.Node, line string) {
	line = commented(line)
	if slices.Contains(strings.Split(n.HeadComment, "\n"), line) {
		return
	}
	n.HeadComment = strings.TrimPrefix(n.HeadComment+"\n"+line, "\n")
}

// maxComment limits the bytes of a line of a comment.
const maxComment = 1000

func commented(line string) string {
	return "# " + text.Clip(strings.Join(strings.Fields(line), " "), maxComment)
}

// Encoded returns a value as a node. It returns nil for nil, and for what YAML has no form of.
func Encoded(v any) *yaml.Node {
	var n yaml.Node
	if v == nil || n.Encode(v) != nil {
		return nil
	}
	return &n
}

// Relative returns the path of a file or folder relative to the directory of the written file, with slashes.
func (d *Document) Relative(path string) string {
	rel, err := filepath.Rel(filepath.Dir(d.File), path)
	if err != nil {
		rel = path
	}
	return filepath.ToSlash(rel)
}

// ProgramFile finds the word of a command line that names a file in the directory of the suite: the program,
// or the script of an interpreter. It returns the path of the file, and -1 without such a file.
func (d *Document) ProgramFile(words []string) (index int, file string) {
	return ProgramFile(d.Dir, words)
}

// ProgramFile is like [Document.ProgramFile] for files in a directory.
func ProgramFile(dir string, words []string) (index int, file string) {
	for _, i := range []int{0, files.ScriptIndex(words)} {
		f, err := os.OpenInRoot(dir, filepath.FromSlash(words[i]))
		if err != nil {
			continue
		}
		info, err := f.Stat()
		f.Close()
		if err == nil && info.Mode().IsRegular() {
			return i, filepath.Join(dir, filepath.FromSlash(words[i]))
		}
	}
	return -1, ""
}

// HasVariable reports whether a text in a value has a template variable.
func HasVariable(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "{{")
	case []any:
		return slices.ContainsFunc(v, HasVariable)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), HasVariable)
	}
	return false
}

// TextsIn returns a text, or the texts of a list that is not empty; ok is false for other values.
func TextsIn(v any) (list []string, ok bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, true
	case []string:
		return v, len(v) > 0
	case []any:
		for _, item := range v {
			one, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, one)
		}
		return list, len(list) > 0
	}
	return nil, false
}

// NumberIn returns a number of a config.
func NumberIn(v any) (f float64, ok bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Named returns the words for a check in losses.
func (c *Check) Named() string { return fmt.Sprintf("grader %q", c.Name) }

// LosePattern adds the loss of a pattern of RE2 that has another meaning in JavaScript, through lose. It
// returns whether the pattern can be written.
func LosePattern(re2, part string, lose func(verdict bool, part, reason string)) bool {
	_, err := pattern.Compile(pattern.JavaScript, re2)
	switch {
	case err != nil || onlyRE2().MatchString(re2):
		lose(true, part, fmt.Sprintf("the pattern %q has another meaning in JavaScript", text.Clip(re2, 80)))
		return false
	case nearlySame().MatchString(re2):
		lose(false, part, `in JavaScript, \s, \w and . know more characters`)
	}
	return true
}

var (
	onlyRE2    = text.Pattern(`\\[AzQECpPaDW]|\(\?[^:i]|\(\?i[^)]|.\(\?i|\[\[:|\\x\{`)
	nearlySame = text.Pattern(`\\[sSwb]|(?:^|[^\\])\.|\(\?i`)
)

// Unquote undoes [regexp.QuoteMeta].
func Unquote(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// JoinStatements returns the statements of a judge as criteria in one text.
func JoinStatements(statements []any) string {
	var b strings.Builder
	b.WriteString("All of this holds:")
	for _, item := range statements {
		statement, _ := item.(string)
		if m, ok := item.(map[string]any); ok {
			statement, _ = m["text"].(string)
			if m["absent"] == true {
				statement = "This is absent: " + statement
			}
		}
		b.WriteString("\n- " + statement)
	}
	return b.String()
}
