package runner_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// strictGraders has a grader of each type that reads files of the suite. All of them fail an
// agent that does nothing.
const strictGraders = `
-- eval.yaml --
name: strict
config: {executor: agent, retry_errors: 0}
graders:
GRADER
tasks: [{id: a, prompt: hi}, {id: b, prompt: hi}]
-- check.sh --
#!/bin/sh
exit 1
-- imports.py --
import verdict, sys
sys.exit(0 if verdict.passed() else 1)
-- verdict.py --
import rules
def passed(): return rules.PASSED
-- rules.py --
PASSED = False
-- data/run.sh --
. "$(dirname "$0")/../data/lib.sh"
verdict
-- data/lib.sh --
verdict() { return 1; }
-- schema.json --
{"$ref": "more.json"}
-- more.json --
{"type": "array"}
-- want/out.txt --
good
-- skill/SKILL.md --
---
name: tea
description: Brews tea.
---
Brew tea.
`

// tampering is what an agent does to the files of a grader.
type tampering struct {
	grader string
	fake   map[string]string // what the agent writes into the suite
	gone   string            // what it removes
	names  string            // the changed files
	needs  string
}

func (c *tampering) apply(t *testing.T, dir string) {
	for name, text := range c.fake {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	if c.gone != "" {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, c.gone)))
	}
}

// requireRunAgain runs the suite twice with its planned files. Trials whose graders' files changed
// are not reused; those of the first of these runs are.
func (c *tampering) requireRunAgain(t *testing.T, r *runnertest.Cached, files string) {
	t.Helper()
	res, executed := r.Run(files, record.Request{})
	require.Equal(t, c.names != "", executed == "a-1 b-1", executed)
	require.Equal(t, record.Failed, res.Trial(t, "a", 1).Verdict)
	require.Empty(t, res.Trial(t, "a", 1).ChangedFiles())
	_, executed = r.Run(files, record.Request{})
	require.Empty(t, executed)
}

// A grader that the agent changed during the run decided the verdict, and the cache kept it. The
// planned content decides, the verdict names the file, and nothing reuses the trial.
func TestAttackChangedGraderFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]tampering{
		"program": {
			"{type: program, config: {command: ./check.sh}}", map[string]string{"check.sh": "#!/bin/sh\nexit 0"}, "",
			"check.sh", "sh",
		},
		"argument": {
			"{type: program, config: {command: sh, args: [check.sh]}}", map[string]string{"check.sh": "exit 0"}, "",
			"check.sh", "sh",
		},
		"script": {
			"{type: script, config: {script: check.sh}}", map[string]string{"check.sh": "exit 0"}, "", "check.sh",
			"sh",
		},
		"removed program": {"{type: program, config: {command: sh, args: [check.sh]}}", nil, "check.sh", "check.sh", "sh"},
		"imported module": {
			"{type: script, config: {script: imports.py}}", map[string]string{"rules.py": "PASSED = True"}, "",
			"rules.py", "python3",
		},
		"sourced file": {
			"{type: program, config: {command: sh, args: [data/run.sh]}}",
			map[string]string{"data/lib.sh": "verdict() { return 0; }"}, "", "data/lib.sh", "sh",
		},
		"schema": {
			"{type: json_schema, config: {schema_file: schema.json}}", map[string]string{"schema.json": "true"}, "",
			"schema.json", "",
		},
		"referred schema": {
			"{type: json_schema, config: {schema_file: schema.json}}", map[string]string{"more.json": "true"}, "",
			"more.json", "",
		},
		"snapshot": {
			"{type: diff, config: {context_dir: want, expected_files: [{path: out.txt, snapshot: out.txt}]}}",
			map[string]string{"want/out.txt": "bad"}, "", "want/out.txt", "",
		},
		"removed snapshot": {
			"{type: diff, config: {context_dir: want, expected_files: [{path: out.txt, snapshot: out.txt}]}}", nil,
			"want", "want/out.txt", "",
		},
		"snapshot in earlier place": {
			"{type: diff, config: {expected_files: [{path: out.txt, snapshot: want/out.txt}]}}",
			map[string]string{"fixtures/want/out.txt": "bad"}, "", "", "",
		},
		"skill": {
			"{type: trigger, config: {skill_path: skill, threshold: 0.9}}",
			map[string]string{"skill/SKILL.md": "---\nname: hi\ndescription: hi hello\n---\nhi"}, "",
			"skill/SKILL.md", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.needs); c.needs != "" && err != nil {
				t.Skip("needs " + c.needs)
			}
			files := runnertest.Replace(t, strictGraders, "GRADER", "  - "+c.grader)
			tampers := true
			r := runnertest.NewCached(t, func(_ context.Context, tr *executor.Trial) (string, error) {
				dir, err := tr.Dir()
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, "out.txt"), []byte("bad"), 0o644))
				if tampers {
					c.apply(t, tr.Suite.Dir)
				}
				return "{}", nil
			})
			res, _ := r.Run(files, record.Request{})
			for _, task := range []string{"a", "b"} {
				trial := res.Trial(t, task, 1)
				require.Equal(t, record.Failed, trial.Verdict, "%+v", trial.Graders)
				require.Equal(t, c.names, strings.Join(trial.ChangedFiles(), " "))
				if c.names != "" {
					require.Contains(t, trial.Graders[0].Feedback, "grader file "+c.names+" changed during the run; waza graded with its planned content")
				}
			}
			tampers = false
			c.requireRunAgain(t, r, files)
		})
	}
}

// Trials whose graders' files changed run again when the run is resumed, and are not graded
// again.
func TestAttackChangedGraderFilesLater(t *testing.T) {
	t.Parallel()
	tampers := true
	r := runnertest.NewCached(t, func(_ context.Context, tr *executor.Trial) (string, error) {
		text := "#!/bin/sh\nexit 1\n"
		if tampers {
			text = "exit 0\n"
		}
		return "", os.WriteFile(filepath.Join(tr.Suite.Dir, "check.sh"), []byte(text), 0o755)
	})
	files := runnertest.Replace(t, strictGraders, "GRADER", "  - {type: program, config: {command: sh, args: [check.sh]}}")
	live := runnertest.Start(t, r.R, files, record.Request{})
	<-live.Done()
	require.Contains(t, runnertest.Logs(runnertest.Follow(t, live, 1)), "grader file check.sh changed during the run")
	dir := live.Record().Suite.Path
	graded, res := runnertest.GradeAgain(t, r.R, live.ID(), runnertest.Replace(t, files, "exit 1", "exit 0"), regrade.GradeOptions{})
	require.Equal(t, 2, graded.Kept)
	require.Contains(t, strings.Join(graded.Warnings, "\n"),
		"task a, trial 1: not graded because grader file changed during the run: check.sh; run it again")
	require.Equal(t, record.Failed, res.Trial(t, "a", 1).Verdict)

	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "check.sh"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	runnertest.CutRun(t, filepath.Join(r.State, "runs", live.ID()), runnertest.Before(`"task_complete"`))
	tampers = false
	res, _ = runnertest.Resumed(t, r.R, live.ID())
	require.Empty(t, res.Trial(t, "a", 1).ChangedFiles())
	require.Empty(t, res.Trial(t, "b", 1).ChangedFiles())
}

// An agent that changed the files of its suite decided what later trials measured: their fixtures,
// their instructions, the agent's own program and the scripts of hooks. These trials end in error.
func TestAttackChangedSuiteFiles(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: s
config: {executor: command, command: [sh, agent.sh], retry_errors: 0, instruction_files: [rules.md], sandbox: off}
HOOKS
tasks:
- {id: a, prompt: hi}
- {id: b, inputs: {prompt: hi, files: [in.txt]}}
-- agent.sh --
cat >/dev/null
echo changed >"$(dirname "$0")/CHANGED"
-- fixtures/in.txt --
question
-- rules.md --
Be brief.
-- hook.sh --
true
`
	for name, c := range map[string]struct{ changed, hooks string }{
		"fixture":        {"fixtures/in.txt", ""},
		"program":        {"agent.sh", ""},
		"instructions":   {"rules.md", ""},
		"script of hook": {"hook.sh", "hooks: {after_task: [{command: sh hook.sh, error_on_fail: true}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := runnertest.Run(t, runnertest.Replace(t, files, "CHANGED", c.changed, "HOOKS", c.hooks), record.Request{})
			if c.hooks == "" {
				require.Equal(t, record.Passed, res.Trial(t, "a", 1).Verdict, res.Trial(t, "a", 1).Error)
				trial := res.Trial(t, "b", 1)
				require.Equal(t, record.Errored, trial.Verdict)
				require.Contains(t, trial.Error, c.changed+" changed since the run was planned; start the run again")
				return
			}
			task := res.Task(t, "a")
			require.Equal(t, record.Errored, task.Verdict)
			require.Contains(t, task.Error, c.changed+" changed since the run was planned")
		})
	}
}

// surrounded has graders that find files which no option and no text names. All of them fail an
// agent that does nothing.
const surrounded = `
-- eval.yaml --
name: surrounded
config: {executor: agent, retry_errors: 0}
graders:
  - GRADER
tasks: [{id: a, prompt: hi}, {id: b, prompt: hi}]
-- check/check.py --
import json, sys
sys.exit(1)
-- check/computed.py --
import importlib, sys
sys.exit(0 if importlib.import_module("ru" + "les").PASSED else 1)
-- check/rules.py --
PASSED = False
-- check/data.py --
import os, pathlib, sys
here = pathlib.Path(__file__).resolve().parent / "cases"
sys.exit(0 if any("pass" in (here / name).read_text() for name in os.listdir(here)) else 1)
-- check/cases/1 --
code=1
-- check/glob.sh --
for f in "${0%/*}"/cases/*; do . "$f"; done
exit $code
-- check/needs.sh --
for f in "${0%/*}"/cases/*; do exit 1; done
-- check/wrap.sh --
#!/bin/sh
exec "${0%/*}/tool-$(echo x)"
-- check/tool-x --
#!/bin/sh
exit 1
-- check/up.sh --
for f in "${0%/*}"/../shared/*; do . "$f"; done
exit $code
-- shared/1 --
code=1
-- check/check.js --
try { require("colors-x") } catch { process.exit(1) }
-- packages/check.js --
require("ws")
process.exit(1)
-- packages/node_modules/ws/index.js --
try { require("faster") } catch {}
-- check/package.py --
import sys
import tools.lib
sys.exit(0 if tools.lib.PASSED else 1)
-- check/tools/__init__.py --
-- check/tools/lib.py --
PASSED = False
`

// Files that no option names decided verdicts: modules, packages, data and programs beside a
// script that it finds by itself. A program sees only files of the time when the run was planned.
func TestAttackFilesBesideGraders(t *testing.T) {
	t.Parallel()
	const passes = "import os\nos._exit(0)\n"
	python, sh, node := "python3", "sh", "node"
	for name, c := range map[string]tampering{
		"module beside a script": {
			"{type: script, config: {script: check/check.py}}", map[string]string{"check/json.py": passes}, "",
			"check/json.py", python,
		},
		"module beside an argument": {
			"{type: program, config: {command: python3, args: [check/check.py]}}",
			map[string]string{"check/json.py": passes}, "", "check/json.py", python,
		},
		"compiled module": {
			"{type: script, config: {script: check/check.py}}",
			map[string]string{"check/json.pyc": "not even compiled"}, "", "check/json.pyc", python,
		},
		"module beside a changed script": {
			"{type: script, config: {script: check/check.py}}",
			map[string]string{"check/json.py": passes, "check/check.py": "import json"}, "",
			"check/check.py check/json.py", python,
		},
		"package of modules": {
			"{type: script, config: {script: check/check.py}}", map[string]string{"check/json/__init__.py": passes},
			"", "check/json", python,
		},
		"computed import": {
			"{type: script, config: {script: check/computed.py}}",
			map[string]string{"check/rules.py": "PASSED = True"}, "", "check/rules.py", python,
		},
		"listed data": {
			"{type: script, config: {script: check/data.py}}", map[string]string{"check/cases/2": "pass"}, "",
			"check/cases/2", python,
		},
		"changed data": {
			"{type: script, config: {script: check/data.py}}", map[string]string{"check/cases/1": "pass"}, "",
			"check/cases/1", python,
		},
		"pattern": {
			"{type: program, config: {command: sh, args: [check/glob.sh]}}",
			map[string]string{"check/cases/2": "code=0"}, "", "check/cases/2", sh,
		},
		"removed data": {
			"{type: program, config: {command: sh, args: [check/needs.sh]}}", nil, "check/cases/1", "check/cases/1",
			sh,
		},
		"removed directory": {
			"{type: program, config: {command: sh, args: [check/needs.sh]}}", nil, "check/cases", "check/cases", sh,
		},
		"computed program": {
			"{type: program, config: {command: ./check/wrap.sh}}",
			map[string]string{"check/tool-x": "#!/bin/sh\nexit 0\n"}, "", "check/tool-x", sh,
		},
		"directory above": {
			"{type: program, config: {command: sh, args: [check/up.sh]}}", map[string]string{"shared/2": "code=0"},
			"", "shared/2", sh,
		},
		"package of node": {
			"{type: script, config: {script: check/check.js}}",
			map[string]string{"check/node_modules/colors-x/index.js": ""}, "", "check/node_modules", node,
		},
		"package of node above": {
			"{type: program, config: {command: node, args: [check/check.js]}}",
			map[string]string{"node_modules/colors-x/index.js": ""}, "", "node_modules", node,
		},
		"optional package of node": {
			"{type: script, config: {script: packages/check.js}}",
			map[string]string{"packages/node_modules/faster/index.js": "process.exit(0)"}, "",
			"packages/node_modules/faster", node,
		},
		"module in a package": {
			"{type: script, config: {script: check/package.py}}",
			map[string]string{"check/tools/lib.py": "PASSED = True"}, "", "check/tools/lib.py", python,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skip("needs " + c.needs)
			}
			files := runnertest.Replace(t, surrounded, "GRADER", c.grader)
			tampers := true
			r := runnertest.NewCached(t, func(_ context.Context, tr *executor.Trial) (string, error) {
				if tampers {
					c.apply(t, tr.Suite.Dir)
				}
				return "", nil
			})
			res, _, events := r.Follow(files, record.Request{})
			for _, task := range []string{"a", "b"} {
				trial := res.Trial(t, task, 1)
				require.Equal(t, record.Failed, trial.Verdict, "%s %+v", trial.Error, trial.Graders)
				require.Equal(t, c.names, strings.Join(trial.ChangedFiles(), " "))
				require.Contains(t, trial.Graders[0].Feedback, "during the run; waza graded with")
			}
			require.Contains(t, runnertest.Logs(events), strings.Fields(c.names)[0])
			tampers = false
			c.requireRunAgain(t, r, files)
		})
	}
}

// A judge is asked with the planned rubric, although the agent changed the file.
func TestAttackChangedRubric(t *testing.T) {
	t.Parallel()
	m := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		good := !strings.Contains(a.Prompt+a.System, "The letter is signed.")
		return runnertest.Answer{
			Tool:      "submit_verdict",
			Arguments: map[string]any{"score": map[bool]float64{true: 1}[good], "passed": good, "reason": "r"},
		}
	})
	files := runnertest.Replace(t, strictGraders, "GRADER",
		"  - {name: judge, type: prompt, config: {rubric: rubric.md, model: m, base_url: '"+m.URL+"'}}") +
		"-- rubric.md --\nThe letter is signed.\n"
	tampers := true
	r := runnertest.NewCached(t, func(_ context.Context, tr *executor.Trial) (string, error) {
		if tampers {
			return "", os.WriteFile(filepath.Join(tr.Suite.Dir, "rubric.md"), []byte("Anything is fine.\n"), 0o600)
		}
		return "", nil
	})
	for range 2 {
		res, executed := r.Run(files, record.Request{})
		require.Equal(t, "a-1 b-1", executed)
		for _, task := range []string{"a", "b"} {
			trial := res.Trial(t, task, 1)
			require.Equal(t, record.Failed, trial.Verdict, trial.Error)
			require.Equal(t, tampers, len(trial.ChangedFiles()) == 1, "%v", trial.ChangedFiles())
		}
		tampers = false
	}
	_, executed := r.Run(files, record.Request{})
	require.Empty(t, executed)
}

// Graders of checkpoints use planned files, too, and the cache does not keep such a trial.
func TestAttackGradersOfCheckpoints(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	const files = `
-- eval.yaml --
name: s
config: {executor: command, command: [sh, agent.sh], retry_errors: 0, sandbox: off}
tasks:
  - id: t
    inputs: {prompt: one, follow_up_prompts: [two]}
    checkpoints:
      - after_turn: 1
        graders: [{type: program, config: {command: python3, args: [check/check.py]}}]
-- agent.sh --
cat >/dev/null
FAKE
-- check/check.py --
import json, sys
sys.exit(1)
`
	for name, fake := range map[string]string{
		"new module":     `echo 'import os; os._exit(0)' >"$WAZA_SUITE_DIR/check/json.py"`,
		"changed script": `echo 'import os; os._exit(0)' >"$WAZA_SUITE_DIR/check/check.py"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runnertest.NewRunner(t)
			for range 2 {
				live := runnertest.Start(t, r, runnertest.Replace(t, files, "FAKE", fake), record.Request{Cache: true})
				<-live.Done()
				trial := runnertest.ResultOf(t, live).Trial(t, "t", 1)
				require.Equal(t, record.Failed, trial.Verdict, trial.Error)
				require.Len(t, trial.ChangedFiles(), 1)
				require.Nil(t, trial.Cached)
			}
		})
	}
}

// Files of graders that somebody writes by right: graders write beside themselves, and hooks
// before tasks prepare data.
func TestFilesBesideGradersThatChange(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: s
config: {executor: mock, retry_errors: 0, trials_per_task: 2, sandbox: off}
HOOKS
graders: [{type: program, config: {command: sh, args: [check/check.sh]}}]
tasks: [{id: a, prompt: hi}, {id: b, prompt: hi}]
-- check/check.sh --
CHECK
-- check/old.log --
line
`
	for name, c := range map[string]struct {
		hooks, check string
		changed      bool
	}{
		"a grader writes beside itself": {"", `echo run >>"${0%/*}/new.log"; echo run >>"${0%/*}/old.log"`, true},
		"a hook before tasks":           {"hooks: {before_task: [{command: echo yes >check/expected}]}", `grep -q yes "${0%/*}/expected"`, false},
		"caches of tools":               {"", `mkdir -p "${0%/*}/.pytest_cache/x" "${0%/*}/__pycache__"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := runnertest.Run(t, runnertest.Replace(t, files, "HOOKS", c.hooks, "CHECK", c.check), record.Request{})
			changed := false
			for _, task := range []string{"a", "b"} {
				for n := range 2 {
					trial := res.Trial(t, task, n+1)
					require.Equal(t, record.Passed, trial.Verdict, "%s %+v", trial.Error, trial.Graders)
					changed = changed || trial.ChangedFiles() != nil
				}
			}
			require.Equal(t, c.changed, changed)
		})
	}
}

// The cache keeps no trial whose graders' files changed, or that waza could not check.
func TestAttackUncheckedTrialsAreNotReused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		grade record.Grade
		want  bool
	}{
		{record.Grade{}, true},
		{record.Grade{ChangedFiles: []string{"check.py"}}, false},
		{record.Grade{Unchecked: "node_modules"}, false},
	} {
		trial := record.Trial{Verdict: record.Passed, Graders: []record.Grade{{}, c.grade}}
		require.Equal(t, c.want, trial.Reusable(), "%+v", c.grade)
	}
}
