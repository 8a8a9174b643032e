package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// secretText is in a file that no suite may read. It is not valid YAML, JSON or SKILL.md, and
// each of its keys is unknown, so that a finding would quote it.
const secretText = "---\nname: [hunter2\ntoken-hunter2: hunter2\n---\nhunter2: {\n"

// Symbolic links let a suite read any file of the user, such as an environment in /proc, and
// findings quoted its lines. Only prompts and task files were restricted. Each case replaces one
// file that a suite can name with a link.
func TestAttackLinksLeadNoSuiteToOtherFiles(t *testing.T) {
	t.Parallel()
	const head = "name: s\ntasks: [{id: a, prompt: hi, graders: [{type: text, config: {contains: [hi]}}]}]\n"
	grader := func(grader string) string {
		return "name: s\ntasks: [{id: a, prompt: hi, graders: [" + grader + "]}]\n"
	}
	for _, tt := range []struct {
		name, suite string
		link        string // to a file with the secret, or to its directory where the name ends in /
	}{
		{"trigger tests", head, "trigger_tests.yaml"},
		{"project", head, ".waza.yaml"},
		{"project above", head, "../.waza.yaml"},
		{"task file", "name: s\ntasks: ['tasks/*.yaml']\n", "tasks/a.yaml"},
		{"task file by name", "name: s\ntasks: [tasks/a.yaml]\n", "tasks/a.yaml"},
		{"prompt file", "name: s\ntasks: [{id: a, prompt_file: a.md}]\n", "a.md"},
		{"dataset", "name: s\ntasks_from: rows.csv\n", "rows.csv"},
		{"dataset of YAML", "name: s\ntasks_from: rows.yaml\n", "rows.yaml"},
		{"fixture", "name: s\ntasks: [{id: a, prompt: hi, inputs: {files: [secret.yaml]}}]\n", "fixtures/secret.yaml"},
		{"fixtures", "name: s\ntasks: [{id: a, prompt: hi, inputs: {files: [secret.yaml]}}]\n", "fixtures/"},
		{"context_dir", "name: s\ntasks: [{id: a, prompt: hi, context_dir: data, inputs: {files: [secret.yaml]}}]\n", "data/"},
		{"instruction file", "name: s\nconfig: {instruction_files: [AGENTS.md]}\n" + head[8:], "AGENTS.md"},
		{"instruction file of the fixtures", "name: s\nconfig: {instruction_files: [secret.yaml]}\n" + head[8:], "fixtures/"},
		{"skill", "name: s\nconfig: {skill_directories: [skills]}\n" + head[8:], "skills/x/SKILL.md"},
		{"skill elsewhere", "name: s\nconfig: {skill_directories: [../../other]}\n" + head[8:], "../../other/SKILL.md"},
		{"usual skill", "skill: x\n" + head, "SKILL.md"},
		{"schema", grader("{type: json_schema, config: {schema_file: schema.json}}"), "schema.json"},
		{"schema that a schema refers to", grader("{type: json_schema, config: {schema: {$ref: 'file://$DIR/other.json'}}}"), "other.json"},
		{
			"schema of arguments",
			grader("{type: tool_calls, config: {expect: [{tool: t, args: {x: {json_schema: {$ref: 'file://$DIR/other.json'}}}}]}}"),
			"other.json",
		},
		{"snapshot", grader("{type: diff, config: {expected_files: [{path: a, snapshot: a.txt}]}}"), "fixtures/a.txt"},
		{
			"snapshot of a directory",
			grader("{type: diff, config: {context_dir: want, expected_files: [{path: a, snapshot: secret.yaml}]}}"),
			"want/",
		},
		{"rubric", grader("{type: prompt, config: {model: m, rubric: rubric.md}}"), "rubric.md"},
		{"skill of a grader", grader("{type: trigger, config: {skill_path: x}}"), "x/SKILL.md"},
		{"suite", "", "eval.yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, secret := t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(secret, "secret.yaml"), []byte(secretText), 0o600))
			repository := filepath.Join(dir, "repo")
			suite := filepath.Join(repository, "evals")
			require.NoError(t, os.MkdirAll(filepath.Join(repository, ".git"), 0o755))
			require.NoError(t, os.MkdirAll(suite, 0o755))
			if tt.suite != "" {
				text := strings.ReplaceAll(tt.suite, "$DIR", suite)
				require.NoError(t, os.WriteFile(filepath.Join(suite, "eval.yaml"), []byte(text), 0o644))
			}
			link := filepath.Join(suite, tt.link)
			require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o755))
			target := filepath.Join(secret, "secret.yaml")
			if strings.HasSuffix(tt.link, "/") {
				target = secret
			}
			require.NoError(t, os.Symlink(target, link))

			for _, args := range [][]string{{"validate", suite}, {"validate", suite, "--json"}, {"run", suite, "--executor", "mock"}} {
				cmd := exec.Command(wazaPath(t), args...)
				cmd.Env = environment(t)
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit, "%s", out)
				require.Equal(t, 2, exit.ExitCode(), "%s: %s", args, out)
				require.NotContains(t, string(out), "hunter2")
				require.Regexp(t, "leads out of|escaping-path", string(out), "%s", args)
			}
		})
	}
}

// Teams can share files between suites by links within the repository.
func TestLinksWithinTheRepositoryWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD": "",
		"shared/tasks/a.yaml": "prompt_file: a.md\ninputs: {files: [data.txt]}\ngraders: [{type: json_schema, " +
			"config: {schema_file: schema.json}}]\n",
		"shared/tasks/a.md":      "{}",
		"shared/data/data.txt":   "data",
		"shared/schema.json":     "{\"type\": \"object\"}",
		"shared/triggers.yaml":   "should_trigger_prompts: [{prompt: hi}]\n",
		"shared/project.yaml":    "defaults: {verbose: false}\n",
		"shared/skills/SKILL.md": "---\nname: x\n---\n",
		"evals/eval.yaml": "name: s\nskill: x\nconfig: {skill_directories: [skills], mock: {replies: [{match: '', output: '{}'}]}}\n" +
			"tasks: ['tasks/*.yaml']\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for name, target := range map[string]string{
		"tasks": "../shared/tasks", "fixtures": filepath.Join(dir, "shared/data"), "schema.json": "../shared/schema.json",
		"trigger_tests.yaml": "../shared/triggers.yaml", ".waza.yaml": "../shared/project.yaml", "skills": "../shared/skills",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, "evals", name)))
	}
	cmd := exec.Command(wazaPath(t), "run", filepath.Join(dir, "evals"), "--task", "a")
	cmd.Env = environment(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Links also redirected files that waza writes for a suite: results of a project, and snapshots,
// whose content comes from an agent.
func TestAttackLinksLeadNothingOut(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		".waza.yaml": "paths: {results: kept}\n",
		"eval.yaml": "name: s\nconfig: {executor: command, sandbox: off, command: [sh, -c, 'echo x >made.txt']}\n" +
			"tasks: [{id: a, prompt: hi, graders: [{type: diff, config: {update_snapshots: true, expected_files: [{path: " +
			"made.txt, snapshot: new/made.txt}]}}]}]\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "kept")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "fixtures")))
	cmd := exec.Command(wazaPath(t), "run", dir)
	cmd.Env = environment(t)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 3, exit.ExitCode(), "%s", out)
	require.Contains(t, string(out), `snapshot new/made.txt: a link that leads out of the suite's directory`)
	require.Contains(t, string(out), `"kept" is a link to a place outside the project`)
	written, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, written)
}
