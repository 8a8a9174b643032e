package eval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/surroundings"
)

// loadArchive loads eval.yaml of a txtar archive that must not have errors.
func loadArchive(t *testing.T, text string) *eval.Suite {
	t.Helper()
	dir := unpack(t, txtar.Parse([]byte(text)))
	suite, diags, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: vocabulary()})
	require.NoError(t, err)
	require.Empty(t, diags.Errors())
	return suite
}

func ptr[T any](v T) *T { return &v }

func TestDefaults(t *testing.T) {
	t.Parallel()
	s := loadArchive(t, "-- eval.yaml --\nname: x\ntasks: [{prompt: hi}]\n")
	want := eval.Config{
		TrialsPerTask: 1, TimeoutSeconds: 300, Workers: 4, MaxAttempts: 1, RetryErrors: 1, Executor: "mock",
		InjectSkillBody: true, GradeExpected: eval.GradeExpectedAuto,
		Sandbox: surroundings.Sandbox{
			Mode: surroundings.SandboxAuto, Network: surroundings.Network{Open: true}, Keys: surroundings.KeysShared,
			Home: surroundings.HomePrivate, Limits: surroundings.SandboxLimits{Processes: 1024, Disk: 10 << 30},
		},
	}
	require.Empty(t, cmp.Diff(want, s.Config))
	require.Nil(t, s.PassThreshold)
	require.Len(t, s.Tasks, 1)
	require.Equal(t, "task-1", s.Task("task-1").ID)
	require.Equal(t, "task-1", s.Task("task-1").Name)
	require.Equal(t, "eval.yaml", s.Task("task-1").RelFile)
	require.Equal(t, 2, s.Task("task-1").Line)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := loadArchive(t, `-- eval.yaml --
name: x
version: 1.10
skill: greet
pass_threshold: 0.5
config:
  max_workers: 0
  timeout_seconds: 0
  max_attempts: 0
  grade_expected: no
  mcp_servers: {a: {command: x, n: 1, f: 1.5, b: true, z: null, d: 2024-01-02}}
  prompt_as: env
  mock: {seed: 7}
metrics: {pass_threshold: 0.75, accuracy: 0.9, b: {weight: 2, enabled: false}}
hooks: {before_run: [ls], after_task: [{command: "true", exit_codes: [], error_on_fail: yes}]}
tasks: [{prompt: hi, pass_threshold: 1}]
`)
	require.Equal(t, "1.10", s.Version)
	require.Equal(t, ptr(0.5), s.PassThreshold)
	require.Equal(t, 0, s.Config.Workers)
	require.Equal(t, 300.0, s.Config.TimeoutSeconds)
	require.Equal(t, 1, s.Config.MaxAttempts)
	require.Equal(t, eval.GradeExpectedFalse, s.Config.GradeExpected)
	require.Empty(t, cmp.Diff(map[string]any{"a": map[string]any{"command": "x", "n": 1, "f": 1.5, "b": true, "z": nil, "d": "2024-01-02"}},
		s.Config.MCPServers))
	require.Empty(t, cmp.Diff(eval.Metrics{PassThreshold: ptr(0.75), List: []eval.Metric{
		{Name: "accuracy", Weight: 1, Threshold: 0.9, Enabled: true}, {Name: "b", Weight: 2},
	}}, s.Metrics))
	require.Empty(t, cmp.Diff(surroundings.Hooks{BeforeRun: []surroundings.Hook{{Command: "ls", ExitCodes: []int{0}}},
		AfterTask: []surroundings.Hook{{Command: "true", ExitCodes: []int{}, ErrorOnFail: true}}}, s.Hooks))
	require.Equal(t, &mockOptions{Mock: &mockScript{Seed: 7}}, s.ExecutorOptions["mock"])
	require.Equal(t, "env", s.ExecutorOptions["command"].(*commandOptions).PromptAs)
	require.Equal(t, ptr(1.0), s.Task("task-1").PassThreshold)
}

func TestTasks(t *testing.T) {
	t.Parallel()
	s := loadArchive(t, `-- eval.yaml --
name: x
inputs: {language: go, prompt: "Row {{id}}"}
tasks:
  - "tasks/*.yaml"
  - "{b,a}.yaml"
  - id: inline
    prompt: flat
    files: [f.txt, {path: ./g.txt, content: "new"}]
    expected: {behavior: {max_tool_calls: 0}, tool_calls: {required: [{pattern: x}]}}
tasks_from: rows.csv
range: [2, 3]
-- tasks/z.yaml --
id: zed
name: Zed
enabled: false
-- tasks/y.yaml --
inputs:
  prompt_file: y.md
  follow_up_prompts: [more]
  environment: {N: 1}
  context: {a: {b: [1]}}
tags: [t]
-- tasks/y.md --
From a file.
-- a.yaml --
prompt: a
-- b.yaml --
prompt: b
-- fixtures/f.txt --
-- rows.csv --
id,name,language
one,,py
two,Two,js
,Three,
four,,
`)
	var ids []string
	for _, task := range s.Tasks {
		ids = append(ids, task.ID)
	}
	require.Equal(t, []string{"y", "a", "b", "inline", "two", "Three"}, ids)
	y := s.Task("y")
	require.Equal(t, "From a file.\n", y.Inputs.Prompt)
	require.Equal(t, "tasks/y.yaml", y.RelFile)
	require.Equal(t, map[string]string{"N": "1"}, y.Inputs.Environment)
	require.Equal(t, map[string]any{"a": map[string]any{"b": []any{1}}}, y.Inputs.Context)
	inline := s.Task("inline")
	require.Empty(t, cmp.Diff([]eval.InputFile{
		{Path: "f.txt", Source: filepath.Join(s.Dir, "fixtures", "f.txt")}, {Path: "g.txt", Content: ptr("new")},
	},
		inline.Inputs.Files))
	require.Equal(t, ptr(0), inline.Expected.Behavior.MaxToolCalls)
	require.Equal(t, 1, inline.Expected.ToolCalls.Required[0].Count)
	two := s.Task("two")
	require.Equal(t, map[string]string{"id": "two", "name": "Two", "language": "js", "prompt": "Row {{id}}"}, two.Vars)
	row, err := two.Expand(two.Inputs.Prompt, eval.TrialVars{}, eval.MaxExpandedBytes)
	require.NoError(t, err)
	require.Equal(t, "Row two", row)
	require.Equal(t, 3, two.Line)
	require.Equal(t, filepath.Join(s.Dir, "rows.csv"), two.File)
	require.Nil(t, s.Task("zed"))
	require.Nil(t, s.Task("one"))
}

func TestGradersOfATask(t *testing.T) {
	t.Parallel()
	s := loadArchive(t, `-- eval.yaml --
name: x
graders:
  - {name: one, type: text, config: {contains: [a]}}
  - {type: regex, config: {must_match: [b]}}
  - {name: three, type: llm, rubric: be kind, weight: 2}
tasks:
  - id: plain
    prompt: hi
  - id: own
    prompt: hi
    graders:
      - {type: text, contains: [c]}
      - {name: one, type: inline_script, assertions: [x], config: {language: javascript}}
`)
	names := func(graders []*eval.Grader) (out []string) {
		for _, g := range graders {
			out = append(out, g.Name+" "+g.Type+" "+g.TypeAlias)
		}
		return out
	}
	require.Equal(t, []string{"one text ", "regex text regex", "three prompt llm"}, names(s.Graders))
	require.Equal(t, names(s.Graders), names(s.Task("plain").Effective))
	own := s.Task("own")
	require.Equal(t, []string{"one code inline_script", "regex text regex", "three prompt llm", "text text "}, names(own.Effective))
	require.Equal(t, &codeOptions{Assertions: []string{"x"}, Language: "javascript"}, own.Effective[0].Options)
	require.Equal(t, map[string]any{"assertions": []any{"x"}, "language": "javascript"}, own.Effective[0].Config)
	require.Equal(t, &textOptions{RegexMatch: []string{"b"}}, s.Graders[1].Options)
	require.Equal(t, &promptOptions{Rubric: "be kind"}, s.Graders[2].Options)
	require.Equal(t, 2.0, s.Graders[2].Weight)
	require.Equal(t, 1.0, s.Graders[0].Weight)
	require.Equal(t, [3]any{s.File, 12, 9}, [3]any{own.Graders[0].File, own.Graders[0].Line, own.Graders[0].Column})

	d := own.Graders[0].Diagnose(decode.At("contains", 0), decode.Error, decode.CodeBadAssertion, "wrong")
	require.Equal(t, [3]int{12, 33, 34}, [3]int{d.Line, d.Column, d.EndColumn})
	require.Equal(t, `grader "text": wrong`, d.Message)
}

// Load checks a grader of the suite once, even if it applies to many tasks.
func TestSuiteGradersAreCheckedOnce(t *testing.T) {
	t.Parallel()
	checks, tasks := 0, 0
	v := &eval.Vocabulary{Graders: []eval.Kind{{Name: "g", Check: func(c *eval.Check, _ any) {
		checks++
		if c.Task() != nil {
			tasks++
		}
	}}}}
	dir := unpack(t, txtar.Parse([]byte("-- eval.yaml --\nname: x\ngraders: [{type: g}]\ntasks: [{prompt: a}, "+
		"{prompt: b, graders: [{type: g}]}]\n")))
	_, _, err := eval.Load(dir, eval.Options{Vocabulary: v})
	require.NoError(t, err)
	require.Equal(t, [2]int{2, 1}, [2]int{checks, tasks})
}

func TestSkills(t *testing.T) {
	t.Parallel()
	s := loadArchive(t, `-- eval.yaml --
name: x
config: {skill_directories: [skills, one], disabled_skills: [quiet], required_skills: [loud, renamed, one]}
tasks: [{id: a, prompt: hi}, {id: b, prompt: hi, skill_directories: [skills, skills/deeper, one]}]
-- skills/loud/SKILL.md --
-- skills/quiet/SKILL.md --
-- skills/other/SKILL.md --
---
name: renamed
---
-- skills/deeper/down/SKILL.md --
-- one/SKILL.md --
-- one/below/SKILL.md --
`)
	rel := func(dirs []string) (out []string) {
		for _, d := range dirs {
			out = append(out, strings.TrimPrefix(d, s.Dir+"/"))
		}
		return out
	}
	require.Equal(t, []string{"skills/loud", "skills/other", "one"}, rel(s.Task("a").Skills))
	require.Equal(t, []string{"skills/loud", "skills/other", "skills/deeper/down", "one"}, rel(s.Task("b").Skills))
}

// Suites seldom name the directory of the skill under test.
func TestSkillUnderTestIsFound(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"evals/demo", "skills/greet", "skills/greet/evals", "evals"} {
		dir := unpack(t, txtar.Parse([]byte("-- .git/HEAD --\n-- skills/greet/SKILL.md --\n-- "+where+
			"/eval.yaml --\nname: x\nskill: greet\ntasks: [{prompt: a}]\n")))
		s, diags, err := eval.Load(filepath.Join(dir, where), eval.Options{})
		require.NoError(t, err)
		require.False(t, diags.HasErrors())
		require.Equal(t, []string{filepath.Join(dir, "skills", "greet")}, s.Task("task-1").Skills)
	}
}

func TestSuiteOverridesProjectDefaults(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte(`-- .git/HEAD --
-- .waza.yaml --
paths: {results: out/}
defaults: {engine: command, model: m, judgeModel: j, timeout: 7, parallel: true, workers: 9, verbose: true}
-- a/b/eval.yaml --
name: x
config: {workers: 2, command: [run]}
tasks: [{prompt: a}]
`)))
	s, diags, err := eval.Load(filepath.Join(dir, "a", "b", "eval.yaml"), eval.Options{Vocabulary: vocabulary()})
	require.NoError(t, err)
	require.Empty(t, diags.Errors())
	c := s.Config
	require.Equal(t, []any{"command", "m", "j", 7.0, true, 2, true},
		[]any{c.Executor, c.Model, c.JudgeModel, c.TimeoutSeconds, c.Parallel, c.Workers, c.Verbose})
	require.Equal(t, "out/", s.Project.Paths.Results)
	require.Equal(t, filepath.Join(dir, ".waza.yaml"), s.Project.File)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- .git/HEAD --\n-- top.py --\n-- a/near.py --\n-- a/eval.yaml --\nname: x\n")))
	s, _, err := eval.Load(filepath.Join(dir, "a"), eval.Options{})
	require.NoError(t, err)
	wd, err := os.Getwd()
	require.NoError(t, err)
	for _, tt := range []struct {
		rel, abs string
		tried    []string
	}{
		{"near.py", "a/near.py", []string{"a/near.py"}},
		{"top.py", "top.py", []string{"a/top.py", "top.py"}},
		{"lost.py", "", []string{"a/lost.py", "lost.py", filepath.Join(wd, "lost.py")}},
		{"../a", "", []string{"a", "../a", filepath.Join(wd, "../a")}},
	} {
		abs, tried, ok := s.Resolve(tt.rel, "")
		for i := range tt.tried {
			if !filepath.IsAbs(tt.tried[i]) {
				tt.tried[i] = filepath.Join(dir, tt.tried[i])
			}
		}
		require.Equal(t, tt.tried, tried)
		require.Equal(t, tt.abs != "", ok)
		if ok {
			require.Equal(t, filepath.Join(dir, tt.abs), abs)
		}
	}
	_, err = os.Stat("load.go")
	require.NoError(t, err)
	abs, _, ok := s.Resolve("load.go", "")
	require.True(t, ok, "the process's directory is searched last")
	require.Equal(t, filepath.Join(wd, "load.go"), abs)
}

// Findings name files relative to the path that the caller gave, in any directory.
func TestFindingsNameFilesLikeTheCaller(t *testing.T) {
	dir := unpack(t, txtar.Parse([]byte("-- evals/x/eval.yaml --\nname: x\ntasks: [tasks/a.yaml]\n-- evals/x/tasks/a.yaml --\nid: a\n")))
	t.Chdir(filepath.Join(dir, "evals"))
	for path, want := range map[string]string{
		"x/eval.yaml":                          "x/tasks/a.yaml",
		"./x/../x":                             "x/tasks/a.yaml",
		"../evals/x":                           "../evals/x/tasks/a.yaml",
		filepath.Join(dir, "evals", "x") + "/": filepath.Join(dir, "evals/x/tasks/a.yaml"),
	} {
		_, diags, err := eval.Load(path, eval.Options{})
		require.NoError(t, err)
		require.Equal(t, want, diags.Errors()[0].File)
	}
	t.Chdir("x")
	_, diags, err := eval.Load("eval.yaml", eval.Options{})
	require.NoError(t, err)
	require.Equal(t, "tasks/a.yaml", diags.Errors()[0].File)
}

// An editor's unsaved content replaces files on the disk, or adds files.
func TestOverlay(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- eval.yaml --\nname: old\n-- tasks/a.yaml --\nid: a\n")))
	suite := filepath.Join(dir, "eval.yaml")
	o := eval.Options{View: files.View{Overlay: map[string][]byte{
		suite:                                    []byte("name: new\ntasks: [tasks/a.yaml, tasks/unsaved.yaml]\n"),
		filepath.Join(dir, "tasks/a.yaml"):       []byte("id: b\nprompt: hi\n"),
		filepath.Join(dir, "tasks/unsaved.yaml"): []byte("prompt: ho\n"),
		filepath.Join(dir, "other.yaml"):         []byte("name: never saved\n"),
	}}}
	s, diags, err := eval.Load(suite, o)
	require.NoError(t, err)
	require.Empty(t, diags.Errors())
	require.Equal(t, "new", s.Name)
	require.Equal(t, "b", s.Tasks[0].ID) // in the order of the suite
	require.Equal(t, "unsaved", s.Tasks[1].ID)
	s, _, err = eval.Load(filepath.Join(dir, "other.yaml"), o)
	require.NoError(t, err)
	require.Equal(t, "never saved", s.Name)
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- a/eval.yaml --\n-- a/eval.ci.yaml --\n-- b/x --\n")))
	var notFound *discover.NotFoundError
	_, _, err := eval.Load(filepath.Join(dir, "lost.yaml"), eval.Options{})
	require.ErrorAs(t, err, &notFound)
	require.Equal(t, filepath.Join(dir, "lost.yaml"), notFound.Path)
	_, _, err = eval.Load(filepath.Join(dir, "b", "x", "eval.yaml"), eval.Options{})
	require.ErrorAs(t, err, &notFound)
	var ambiguous *discover.AmbiguousError
	_, _, err = eval.Load(filepath.Join(dir, "a"), eval.Options{})
	require.ErrorAs(t, err, &ambiguous)
	require.Len(t, ambiguous.Suites, 2)
	_, _, err = eval.Load(filepath.Join(dir, "b"), eval.Options{})
	require.ErrorAs(t, err, &ambiguous)
	require.Empty(t, ambiguous.Suites)
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"trials_per_task", "timeout_seconds", "workers", "executor", "model", "name"}
	for word, want := range map[string]string{
		"trails_per_task": "trials_per_task", "trialsPerTask": "trials_per_task", "trials-per-task": "trials_per_task",
		"timeout": "timeout_seconds", "worker": "workers", "exectuor": "executor", "nmae": "name", "modle": "model",
		"": "", "zzz": "", "x": "", strings.Repeat("workers", 1000): "", "колонка": "",
	} {
		require.Equal(t, want, decode.Nearest(word, known), word)
	}
}

// Agents get all skills of a project if a suite names no directories.
func TestSkillsOfTheProject(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte(`-- .waza.yaml --
paths: {skills: kit}
-- kit/a/SKILL.md --
-- kit/b/SKILL.md --
-- own/SKILL.md --
-- own/evals/eval.yaml --
name: x
skill: own
tasks: [{prompt: a}, {id: named, prompt: b, skill_directories: [../../kit/a]}]
-- evals/eval.yaml --
name: y
tasks: [{prompt: a}]
`)))
	at := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, filepath.FromSlash(name)))
		}
		return paths
	}
	s, diags, err := eval.Load(filepath.Join(dir, "own", "evals"), eval.Options{})
	require.NoError(t, err)
	require.False(t, diags.HasErrors())
	require.Equal(t, at("own", "kit/a", "kit/b"), s.Task("task-1").Skills)
	require.Equal(t, at("kit/a"), s.Task("named").Skills)
	s, _, err = eval.Load(filepath.Join(dir, "evals"), eval.Options{})
	require.NoError(t, err)
	require.Equal(t, at("kit/a", "kit/b"), s.Task("task-1").Skills)
}

// A project can choose its own names for suites and tasks.
func TestNamesOfTheProject(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte(`-- .waza.yaml --
files: {evalFile: evaluation.yaml, taskGlob: 'cases/*.yaml'}
-- a/evaluation.yaml --
name: a
-- a/cases/one.yaml --
{id: one, prompt: x}
-- b/eval.yaml --
name: b
tasks: [{id: two, prompt: x}]
-- within/.waza.yaml --
-- within/evaluation.yaml --
name: none
`)))
	found, err := discover.Suites(dir, files.View{})
	require.NoError(t, err)
	var names []string
	for _, s := range found.Suites {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"a", "b"}, names)
	s, diags, err := eval.Load(filepath.Join(dir, "a"), eval.Options{})
	require.NoError(t, err)
	require.Empty(t, diags.Errors())
	require.NotNil(t, s.Task("one"))
	require.Equal(t, []string{filepath.Join(dir, "a", "evaluation.yaml")},
		discover.Above(filepath.Join(dir, "a", "cases", "one.yaml"), files.View{}))
	require.True(t, discover.IsSuiteIn(filepath.Join(dir, "a", "evaluation.yaml"), files.View{}))
	require.False(t, discover.IsSuiteIn(filepath.Join(dir, "within", "evaluation.yaml"), files.View{}))
}

// Two tasks with the names of suites were each loaded to find the suite of the other one, without
// an end.
func TestTasksWithNamesOfSuites(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- a.eval.yaml --\n{id: a, prompt: x}\n-- b.eval.yaml --\n{id: b, prompt: x}\n")))
	s, diags, err := eval.Load(filepath.Join(dir, "a.eval.yaml"), eval.Options{})
	require.NoError(t, err)
	require.Nil(t, s)
	require.Len(t, diags, 1)
	require.Contains(t, diags[0].Message, "this is a task, not a suite, and no suite")
}
