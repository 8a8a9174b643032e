package harbor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect/harbor"
)

// Programs beside the suite are copied to the tests. A verdict that a program prints is a loss.
func TestWritePrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"check.sh": "exit 0\n", "q.py": "print(1)\n", "eval.yaml": `
config: {mcp_servers: {s: {url: "http://localhost:1/x"}}}
tasks:
  - id: a
    inputs: {prompt: hi}
    graders:
      - {type: program, name: own, config: {command: ./check.sh, trust_workspace: true, expect: {syntax: javascript}}}
      - {type: program, name: script, config: {command: python3, args: [q.py, check.sh], trust_workspace: true, expect: {exit_code: 0}}}
      - {type: program, name: says, config: {command: make, trust_workspace: true}}
      - {type: program, name: above, config: {command: ../x.sh, trust_workspace: true, expect: {exit_code: 0}}}
      - {type: file, name: link, config: {must_exist: [l]}}
`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	suite, _, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
	require.NoError(t, err)
	d := suite.Document(filepath.Join(dir, "out"))
	list, err := harbor.Dialect().Write(d)
	require.NoError(t, err)
	texts, copies := map[string]string{}, map[string]string{}
	for _, f := range list {
		if f.Content != nil {
			texts[f.Path] = *f.Content
		} else {
			copies[f.Path] = f.Source
		}
	}
	require.Equal(t, map[string]string{"a/tests/check.sh": filepath.Join(dir, "check.sh"), "a/tests/q.py": filepath.Join(dir, "q.py")}, copies)
	require.Contains(t, texts["a/tests/test.sh"], "if '/tests/check.sh' &&\n\t'python3' '/tests/q.py' 'check.sh' &&\n\t'make' &&\n\t'../x.sh' &&\n\t"+
		"{ [ -e 'l' ] || [ -L 'l' ]; }; then")
	require.Contains(t, texts["a/task.toml"], "streamable-http")
	var lost []string
	for _, l := range d.Losses {
		if l.Verdict {
			lost = append(lost, l.String())
		}
	}
	require.Equal(t, []string{
		`not written: task a: grader "says": in Harbor, only the exit code decides, and not a verdict that the program prints`,
		`not written: task a: grader "above": its program is not in the folder of the suite; copy it to tests/`,
	}, lost)
}

// Turns of a suite become steps. Graders of checkpoints and of the task become tests of their steps.
func TestWriteSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.sh"), []byte("touch a.txt c.txt\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(`
name: a
tasks:
  - id: a
    timeout_seconds: 100
    inputs:
      prompt: one
      follow_up_prompts: [two, three]
      checkpoints:
        - after_turn: 1
          agent_timeout_seconds: 30
          on_failure: stop
          graders: [{type: file, name: made, config: {must_exist: [a.txt]}}]
          files: [{path: in/b.txt, content: b}, {path: setup.sh, content: x}, {path: .outside/etc/x, content: x}]
          setup: [make]
        - {after_turn: 2, graders: [{type: text, name: says, config: {contains: [x]}}]}
        - {after_turn: 3, graders: [{type: file, name: late, config: {must_exist: [d.txt]}}], files: [{path: e, content: e}]}
    graders: [{type: file, name: end, config: {must_exist: [c.txt]}}]
    solution: {script: s.sh}
`), 0o600))
	suite, found, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
	require.NoError(t, err)
	require.Empty(t, found.Errors())
	d := suite.Document(filepath.Join(dir, "out"))
	list, err := harbor.Dialect().Write(d)
	require.NoError(t, err)
	texts, copies := map[string]string{}, 0
	for _, f := range list {
		if f.Content != nil {
			texts[f.Path] = *f.Content
		} else {
			copies++
		}
	}
	require.Equal(t, 3, copies) // the solution of each step
	require.Equal(t, "two", texts["a/steps/step-2/instruction.md"])
	require.Equal(t, "b", texts["a/steps/step-2/workdir/in/b.txt"])
	require.Contains(t, texts["a/steps/step-1/tests/test.sh"], "'a.txt'")
	require.Equal(t, "#!/bin/sh\necho 1 >/logs/verifier/reward.txt\n", texts["a/steps/step-2/tests/test.sh"])
	require.Contains(t, texts["a/steps/step-3/tests/test.sh"], "{ [ -e 'd.txt' ] || [ -L 'd.txt' ]; } &&\n\t{ [ -e 'c.txt' ]")
	_, toml, _ := strings.Cut(texts["a/task.toml"], "version = ")
	require.Equal(t, "'1.0'\n\n[agent]\ntimeout_sec = 100.0\n\n[verifier]\n[environment]\n"+
		"[[steps]]\nname = 'step-1'\n\n[steps.min_reward]\nreward = 1.0\n\n[steps.agent]\ntimeout_sec = 30.0\n\n"+
		"[[steps]]\nname = 'step-2'\n\n[[steps]]\nname = 'step-3'\n", toml)
	var lost []string
	for _, l := range d.Losses {
		if l.Verdict {
			lost = append(lost, l.String())
		}
	}
	require.Equal(t, []string{
		`not written: task a: checkpoint after turn 1 setup: write it as workdir/setup.sh of a step`,
		`not written: task a: file setup.sh: a step runs it`,
		`not written: task a: file .outside/etc/x: a step has files in the work folder only`,
		`not written: task a: grader "says" (text): a verifier is a script: write it as tests/test.sh`,
		`not written: task a: checkpoint after turn 3 files: graders of the checkpoint do not see them, and tests/test.sh copies them before all conditions`,
	}, lost)
}

// Files that the workspace gets after the last turn are for the graders: tests/test.sh copies them. The agent does
// not see them.
func TestWriteGradedFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ checkpoint, grader, lost string }{
		"files":    {"files: [{path: in/b.txt, content: b}]", "type: file, config: {must_exist: [a.txt]}", ""},
		"setup":    {"setup: [make]", "type: file, config: {must_exist: [a.txt]}", "checkpoint after turn 1 setup: no step follows; write the commands in tests/test.sh"},
		"verifier": {"files: [{path: b.txt, content: b}]", "type: reward, config: {tests: [tests]}", "files after the last turn: copy them in tests/test.sh"},
		"outside":  {"files: [{path: .outside/etc/x, content: x}]", "type: file, config: {must_exist: [a.txt]}", "file .outside/etc/x: tests/test.sh copies files to the work folder only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "tests"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tests", "test.sh"), nil, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte("name: a\ntasks:\n  - id: a\n    inputs: {prompt: one, checkpoints: [{after_turn: 1, "+
				c.checkpoint+"}]}\n    graders: [{name: g, "+c.grader+"}]\n"), 0o600))
			suite, found, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
			require.NoError(t, err)
			require.Empty(t, found.Errors())
			d := suite.Document(filepath.Join(dir, "out"))
			list, err := harbor.Dialect().Write(d)
			require.NoError(t, err)
			lost := ""
			for _, l := range d.Losses {
				if l.Verdict {
					lost += strings.TrimPrefix(l.String(), "not written: task a: ")
				}
			}
			require.Equal(t, c.lost, lost)
			if name != "files" {
				return
			}
			texts := map[string]string{}
			for _, f := range list {
				texts[f.Path] = *f.Content
			}
			require.Equal(t, "b", texts["a/steps/step-1/tests/files/in/b.txt"])
			require.NotContains(t, texts, "a/steps/step-1/workdir/in/b.txt")
			require.Contains(t, texts["a/steps/step-1/tests/test.sh"], "|| exit 1\ncp -R /tests/files/. . || exit 1\nif ")
		})
	}
}
