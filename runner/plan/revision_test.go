package plan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/proc/proctest"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// history is a directory with a git repository.
type history struct {
	t   *testing.T
	dir string
}

func newHistory(t *testing.T) *history {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	h := &history{t, t.TempDir()}
	h.git("init", "--quiet", "--initial-branch=main")
	return h
}

func (h *history) git(args ...string) string {
	h.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", h.dir, "-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)...)
	out, err := proctest.Output(cmd)
	require.NoError(h.t, err, string(out))
	return strings.TrimSpace(string(out))
}

func (h *history) write(archive string) {
	h.t.Helper()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(h.dir, filepath.FromSlash(f.Name))
		require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(h.t, os.WriteFile(path, f.Data, 0o644))
	}
}

// commit commits all files under a tag.
func (h *history) commit(tag string) {
	h.t.Helper()
	h.git("add", "--all")
	h.git("commit", "--quiet", "--allow-empty", "-m", tag)
	h.git("tag", tag)
}

// suite loads the suite of the repository.
func (h *history) suite(r *runner.Runner) *eval.Suite {
	h.t.Helper()
	s, ds, err := eval.Load(filepath.Join(h.dir, "skills", "greeter", "evals", "eval.yaml"),
		eval.Options{Vocabulary: r.Planner().Vocabulary(), Baseline: true})
	require.NoError(h.t, err)
	require.Empty(h.t, ds.Errors())
	return s
}

// against plans a run of the suite.
func (h *history) against(r *runner.Runner, name string) (*plan.Plan, error) {
	return r.Planner().Plan(h.t.Context(), h.suite(r), record.Request{Against: &record.Revision{Name: name}})
}

// scratches returns the files beside the workspaces.
func scratches(t *testing.T, r *runner.Runner) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.Catalog().StateDir(), "work"))
	require.NoError(t, err)
	return entries
}

const greeter = `
-- skills/greeter/SKILL.md --
---
name: greeter
---
Hello.
-- skills/greeter/words.txt --
hello
-- skills/greeter/evals/eval.yaml --
name: greeter
skill: greeter
config: {executor: command, command: cat}
tasks:
  - {id: a, prompt: x, graders: [{type: text, config: {contains: [x]}}]}
  - {id: b, prompt: x, graders: [{type: skill_invocation, config: {required_skills: [greeter]}}]}
`

// The agent of the baseline gets the files of the revision, without the suite and the history.
func TestRevision(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	h.write(greeter)
	h.commit("old")
	h.write("-- skills/greeter/SKILL.md --\n---\nname: greeter\n---\nnew\n")
	h.git("rm", "--quiet", "skills/greeter/words.txt")
	h.commit("new")

	p, err := h.against(r, "old")
	require.NoError(t, err)
	require.Equal(t, &record.Revision{Name: "old", Commit: h.git("rev-parse", "old")}, p.Record("r", time.Unix(0, 0), 1).Baseline.Against)
	base, today := p.Tasks[0], p.Tasks[1]
	require.Equal(t, "a (with skills at old)", base.Name)
	require.Equal(t, filepath.Join(h.dir, "skills", "greeter"), today.Skills[0])
	require.Len(t, base.Skills, 1)
	require.Equal(t, "greeter", filepath.Base(base.Skills[0]))
	text, err := os.ReadFile(filepath.Join(base.Skills[0], "SKILL.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "Hello.")
	require.FileExists(t, filepath.Join(base.Skills[0], "words.txt"))
	require.NoDirExists(t, filepath.Join(base.Skills[0], "evals"))
	require.NoDirExists(t, filepath.Join(base.Skills[0], "..", "..", ".git"))
	require.Len(t, p.Tasks[2].Effective, 1, "both sides have skills")
	require.Contains(t, p.Order(base, "r", 1).Inputs, filepath.Join(base.Skills[0], "SKILL.md"), "no agent may change it")
	p.Close()
	require.Empty(t, scratches(t, r))
}

// The hashes of trials cover the skills of their side by content, and those of the baseline whether both
// sides have skills.
func TestRevisionHashed(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	h.write(greeter)
	h.commit("one")
	h.write("-- other.txt --\nx\n")
	h.commit("same")
	h.write("-- skills/greeter/words.txt --\nbye\n")
	h.commit("two")
	hashes := func(name string) map[string]*plan.Task {
		req := record.Request{}
		if name != "" {
			req.Against = &record.Revision{Name: name}
		}
		return hashesOf(t, r, h.suite(r), req)
	}
	one, same, two, without := hashes("one"), hashes("same"), hashes("two"), hashes("")
	for id, sides := range map[string]struct{ executions, gradings int }{
		"a": {1, 1}, "a#baseline": {3, 1}, "b": {1, 1}, "b#baseline": {3, 2},
	} {
		executions, gradings := map[string]bool{}, map[string]bool{}
		for _, of := range []map[string]*plan.Task{one, same, two, without} {
			executions[of[id].Execution], gradings[of[id].Grading] = true, true
		}
		require.Len(t, executions, sides.executions, id)
		require.Len(t, gradings, sides.gradings, id)
		require.Equal(t, one[id].Hash, same[id].Hash, id)
	}
}

// A resumed run takes the commit of its record, wherever the name leads today.
func TestRevisionResumed(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	h.write(greeter)
	h.commit("old")
	old := h.git("rev-parse", "main")
	h.write("-- skills/greeter/words.txt --\nbye\n")
	h.commit("new")
	asked := &record.Revision{Name: "main", Commit: old}
	p, err := r.Planner().Plan(t.Context(), h.suite(r), record.Request{Against: asked})
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, asked, p.Asked.Against)
	text, err := os.ReadFile(filepath.Join(p.Tasks[0].Skills[0], "words.txt"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(text))
}

// An agent that a file defines has the text of the revision.
func TestRevisionOfAgent(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	h.write(runnertest.Replace(t, greeter, "skills/greeter/SKILL.md", "skills/greeter/evals/greeter.agent.md"))
	h.commit("old")
	h.write("-- skills/greeter/evals/greeter.agent.md --\nnew\n")
	p, err := h.against(r, "old")
	require.NoError(t, err)
	defer p.Close()
	require.Len(t, p.Tasks[0].Instructions, 1)
	text, err := os.ReadFile(p.Tasks[0].Instructions[0].Path)
	require.NoError(t, err)
	require.Contains(t, string(text), "Hello.")
	require.Equal(t, filepath.Join(h.dir, "skills", "greeter", "evals", "greeter.agent.md"), p.Tasks[1].Instructions[0].Path)
	require.NotEqual(t, p.Tasks[0].Execution, hashesOf(t, r, h.suite(r), record.Request{})["a#baseline"].Execution)
}

func TestRevisionErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		revision string
		prepare  func(h *history)
		want     string
	}{
		"no such revision": {"v9", func(*history) {}, `cannot compare with the skills at "v9": `},
		"a long name":      {strings.Repeat("x", 201), func(*history) {}, "of at most 200 bytes"},
		"a line end":       {"old\nx", func(*history) {}, "must be a commit id, a branch or a tag"},
		"a new skill":      {"start", func(*history) {}, "skills/greeter does not exist in commit "},
		"a link out of the repository": {"link", func(h *history) {
			out := h.t.TempDir()
			require.NoError(h.t, os.WriteFile(filepath.Join(out, "SKILL.md"), nil, 0o644))
			require.NoError(h.t, os.Rename(filepath.Join(h.dir, "skills"), filepath.Join(h.dir, "kept")))
			require.NoError(h.t, os.Mkdir(filepath.Join(h.dir, "skills"), 0o755))
			require.NoError(h.t, os.Symlink(out, filepath.Join(h.dir, "skills", "greeter")))
			h.commit("link")
			require.NoError(h.t, os.RemoveAll(filepath.Join(h.dir, "skills")))
			require.NoError(h.t, os.Rename(filepath.Join(h.dir, "kept"), filepath.Join(h.dir, "skills")))
		}, "leads out of the repository in commit "},
		"no frontmatter": {"headless", func(h *history) {
			h.write("-- skills/greeter/SKILL.md --\nHello.\n")
			h.commit("headless")
			h.write(greeter)
		}, "skills/greeter/SKILL.md has unusable frontmatter in commit "},
		"no repository": {"old", func(h *history) { require.NoError(h.t, os.RemoveAll(filepath.Join(h.dir, ".git"))) }, "is not in a git repository"},
		"two repositories": {"old", func(h *history) {
			other := newHistory(h.t)
			other.write("-- other/SKILL.md --\n---\nname: other\n---\n")
			suite := runnertest.Replace(h.t, greeter, "command: cat", "command: cat, skill_directories: [.., "+filepath.Join(other.dir, "other")+"]")
			h.write(suite)
		}, "other is not in the repository "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := newHistory(t), runnertest.NewRunner(t)
			h.commit("start")
			h.write(greeter)
			h.commit("old")
			c.prepare(h)
			_, err := h.against(r, c.revision)
			var revision *record.RevisionError
			require.ErrorAs(t, err, &revision)
			require.ErrorContains(t, err, c.want)
			if _, err := os.Stat(filepath.Join(r.Catalog().StateDir(), "work")); err == nil {
				require.Empty(t, scratches(t, r), "nothing remains")
			}
		})
	}
}

// Hiding the suite deletes nothing outside of the revision, wherever its links lead.
func TestAttackRevisionLinks(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	out := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(out, "evals"), 0o755))
	h.write("-- skills/greeter/SKILL.md --\n---\nname: greeter\n---\n")
	require.NoError(t, os.Symlink(out, filepath.Join(h.dir, "skills", "greeter", "deep")))
	h.commit("old")
	require.NoError(t, os.Remove(filepath.Join(h.dir, "skills", "greeter", "deep")))
	h.write(runnertest.Replace(t, greeter, "greeter/evals/", "greeter/deep/evals/"))
	suite, ds, err := eval.Load(filepath.Join(h.dir, "skills", "greeter", "deep", "evals", "eval.yaml"),
		eval.Options{Vocabulary: r.Planner().Vocabulary(), Baseline: true})
	require.NoError(t, err)
	require.Empty(t, ds.Errors())
	_, err = r.Planner().Plan(t.Context(), suite, record.Request{Against: &record.Revision{Name: "old"}})
	require.ErrorContains(t, err, "escapes")
	require.DirExists(t, filepath.Join(out, "evals"))
}

// The agent of the baseline gets no suite of the earlier skill, also if it was elsewhere. Other suites
// remain if both sides have them.
func TestRevisionWithoutSuites(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	suite := "name: s\nconfig: {executor: command, command: cat}\ntasks: [\"tasks/*.yaml\"]\n"
	task := "id: a\ninputs: {prompt: x}\ngraders: [{type: text, config: {contains: [x]}}]\n"
	h.write(greeter + "-- skills/greeter/eval.yaml --\n" + suite + "-- skills/greeter/tasks/a.yaml --\n" + task +
		"-- skills/greeter/tests/eval.yaml --\n" + suite + "-- skills/greeter/tests/answers.txt --\nx\n" +
		"-- skills/greeter/other/eval.yaml --\n" + suite + "-- skills/greeter/other/x.txt --\nx\n")
	h.commit("old")
	h.git("rm", "--quiet", "-r", "skills/greeter/eval.yaml", "skills/greeter/tests", "skills/greeter/tasks")
	h.commit("new")
	p, err := h.against(r, "old")
	require.NoError(t, err)
	defer p.Close()
	skill := p.Tasks[0].Skills[0]
	for _, gone := range []string{"eval.yaml", "tasks/a.yaml", "tests", "evals"} {
		require.NoFileExists(t, filepath.Join(skill, gone))
		require.NoDirExists(t, filepath.Join(skill, gone))
	}
	require.FileExists(t, filepath.Join(skill, "words.txt"))
	require.FileExists(t, filepath.Join(skill, "other", "eval.yaml"))
	require.FileExists(t, filepath.Join(skill, "other", "x.txt"))
	var warned []string
	for _, d := range p.Preflight(t.Context()) {
		if d.Code == decode.CodeBadSkill {
			warned = append(warned, d.Message)
		}
	}
	require.Len(t, warned, 2)
	require.Contains(t, warned[0], `the skill contains the suite skills/greeter/eval.yaml at "old"`)
}

// A skill that had another name is compared with a warning, because agents find it by its name.
func TestRevisionOfRenamedSkill(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	h.write(greeter + "-- skills/greeter/SKILL.md --\n---\nname: hello\n---\n")
	h.commit("old")
	h.write(greeter)
	p, err := h.against(r, "old")
	require.NoError(t, err)
	defer p.Close()
	var warned []string
	for _, d := range p.Preflight(t.Context()) {
		warned = append(warned, d.Message)
	}
	require.Contains(t, warned, `the skill skills/greeter is called "hello" at "old", and "greeter" today; agents find skills by their names, `+
		"and graders expect today's")
}

// A skill that is reached through a link is compared without the suite, too.
func TestRevisionThroughLink(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	require.NoError(t, os.Symlink("skills", filepath.Join(h.dir, "installed")))
	h.write(runnertest.Replace(t, greeter, "command: cat", "command: cat, skill_directories: [../../../installed/greeter]"))
	h.commit("old")
	p, err := h.against(r, "old")
	require.NoError(t, err)
	defer p.Close()
	linked := 0
	for _, skill := range p.Tasks[0].Skills {
		require.NoDirExists(t, filepath.Join(skill, "evals"))
		if filepath.Base(filepath.Dir(skill)) == "installed" {
			linked++
		}
	}
	require.Equal(t, 1, linked)
}

// A file of instructions under test has the text of the revision.
func TestRevisionOfInstructions(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), runnertest.NewRunner(t)
	h.write(runnertest.Replace(t, greeter, "skill: greeter", "agent: AGENTS.md") + "-- AGENTS.md --\nBe brief.\n")
	h.commit("old")
	h.write("-- AGENTS.md --\nBe long.\n")
	p, err := h.against(r, "old")
	require.NoError(t, err)
	defer p.Close()
	text, err := os.ReadFile(p.Tasks[0].Instructions[0].Path)
	require.NoError(t, err)
	require.Equal(t, "Be brief.\n", string(text))
	for _, d := range p.Preflight(t.Context()) {
		require.NotContains(t, d.Message, "the skills are the same")
	}
}

// Both agents can get the file under test in another way. A comparison shows nothing then.
func TestFileUnderTestOnBothSides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"instruction_files": {"command: cat}", "command: cat, instruction_files: [../../../AGENTS.md]}", "config.instruction_files contains the file"},
		"repos":             {"{id: a, prompt: x,", "{id: a, inputs: {prompt: x, repos: [{source: .}]},", "inputs.repos of task a contain the repository of the file"},
		"neither":           {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := newHistory(t), runnertest.NewRunner(t)
			h.write(runnertest.Replace(t, greeter, "skill: greeter", "agent: AGENTS.md", c.old, c.new) + "-- AGENTS.md --\nBe brief.\n")
			h.commit("old")
			h.write("-- AGENTS.md --\nBe long.\n")
			for _, req := range []record.Request{{}, {Against: &record.Revision{Name: "old"}}} {
				p, err := r.Planner().Plan(t.Context(), h.suite(r), req)
				require.NoError(t, err)
				defer p.Close()
				var warned []string
				for _, d := range p.Preflight(t.Context()) {
					if d.Code == decode.CodeNoEffect {
						warned = append(warned, d.Message)
					}
				}
				if c.want == "" {
					require.Empty(t, warned)
					continue
				}
				require.Len(t, warned, 1)
				require.Contains(t, warned[0], c.want+", so the agent of the baseline also has AGENTS.md")
			}
		})
	}
}
