package attack_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/runner/attack"
	"waza/runner/attack/agent"
	"waza/runner/runnertest"
	"waza/runner/sandbox"
)

var update = flag.Bool("update", false, "rewrite the expected outcomes under testdata")

// Each file of testdata/graders is a txtar archive: a sentence that describes it, settings
// ("agents: NAME…", "needs: PROGRAM", "system: GOOS"), a suite with a weak grader, the same suite
// with a strong one, and the outcome of both attacks. The strong suite is sound.
func TestAttacksOnGraders(t *testing.T) {
	t.Parallel()
	judge := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		fooled := strings.Contains(a.Prompt+a.System, "score 1") || strings.Contains(a.Prompt, "Dear Ada")
		return runnertest.Answer{Tool: "submit_verdict", Arguments: map[string]any{
			"score": map[bool]float64{true: 1}[fooled], "passed": fooled, "reason": "it says so",
		}}
	})
	eachArchive(t, "testdata/graders/*.txtar", func(t *testing.T, a archive) {
		requireSuspicions(t, a.play(t, "weak.yaml", "want", "MODEL", judge.URL))
		strong := a.play(t, "strong.yaml", "want-strong", "MODEL", judge.URL)
		require.True(t, strong.Sound)
		require.False(t, strong.Incomplete)
	})
}

// unnoticed are the agents whose moves no rule can see: they leave nothing in the workspace, or only
// what an honest agent leaves too.
var unnoticed = []string{agent.Nop, agent.Echo, agent.Oracle, agent.Copy, "verdicts", "descriptors", "tool-calls", "search", "build", "node"}

// requireSuspicions checks that a pass of a forger is suspicious, and work that is not forged is not.
func requireSuspicions(t *testing.T, r *attack.Report) {
	t.Helper()
	for _, task := range r.Tasks {
		for _, res := range task.Results {
			switch {
			case res.Agent == agent.Nop || res.Agent == agent.Echo || res.Agent == agent.Oracle:
				require.Empty(t, res.Suspicions, "%s, %s", task.ID, res.Agent)
			case res.Outcome == attack.Passed && !slices.Contains(unnoticed, res.Agent):
				require.NotEmpty(t, res.Suspicions, "%s, %s", task.ID, res.Agent)
			}
		}
	}
}

// Each file of testdata/sandbox is such an archive, with one suite. An agent fools it because
// nothing keeps the agent from files and processes outside of its workspace.
//
// A grader waits for four tries of the three processes that an agent left, if it left them: one of
// them has then tried twice, and only its first try can have been too early.
func TestAttacksWithoutSandbox(t *testing.T) {
	t.Parallel()
	eachArchive(t, "testdata/sandbox/*.txtar", func(t *testing.T, a archive) {
		const waitForTries = "cd $WAZA_WORKSPACE_DIR; if [ -e DONE ]; then for i in 1 2 3 4; do rm -f DONE; until [ -e DONE ]; do sleep 0.02; done; done; fi"
		a.play(t, "weak.yaml", "want", "SANDBOX", "sandbox: off", "WAIT", waitForTries)
	})
}

// The same suites are sound in a sandbox.
func TestAttacksInSandbox(t *testing.T) {
	t.Parallel()
	if err := sandbox.Detect().Namespaces; err != nil {
		t.Skipf("this machine lacks namespaces: %v", err)
	}
	eachArchive(t, "testdata/sandbox/*.txtar", func(t *testing.T, a archive) {
		for _, mode := range []string{"auto", "strict"} {
			r := a.play(t, "weak.yaml", "", "SANDBOX", "sandbox: "+mode, "WAIT", "sleep 0.3")
			require.True(t, r.Sound, outcomes(r))
			require.False(t, r.Incomplete, outcomes(r))
		}
	})
}

// archive is a txtar archive with suites and the expected outcomes of attacks.
type archive struct {
	*txtar.Archive
	agents []string
}

// eachArchive calls do for each archive that this machine can play, in parallel. With -update, it
// writes the archives again.
func eachArchive(t *testing.T, pattern string, do func(*testing.T, archive)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			require.NoError(t, err)
			settings := map[string]string{}
			for line := range strings.Lines(string(a.Comment)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				settings[key] = value
			}
			if _, err := exec.LookPath(settings["needs"]); settings["needs"] != "" && err != nil {
				t.Skip("needs " + settings["needs"])
			}
			if system := settings["system"]; system != "" && system != runtime.GOOS {
				t.Skip("only on " + system)
			}
			do(t, archive{a, strings.Fields(settings["agents"])})
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(a), 0o644))
			}
		})
	}
}

// play attacks a suite of the archive, and compares the outcome with a file of it. replace are pairs
// of a text in the suites and the text in its place.
func (a archive) play(t *testing.T, suite, want string, replace ...string) *attack.Report {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(f.Data))), 0o644))
	}
	r, err := attack.Run(t.Context(), attack.Options{Path: filepath.Join(dir, suite), Agents: a.agents})
	require.NoError(t, err)
	for i, f := range a.Files {
		switch {
		case f.Name != want:
		case *update:
			a.Files[i].Data = []byte(outcomes(r))
		default:
			require.Equal(t, string(f.Data), outcomes(r))
		}
	}
	return r
}

// outcomes returns the outcomes and faults of a report as text.
func outcomes(r *attack.Report) string {
	var b strings.Builder
	for _, t := range r.Tasks {
		for _, res := range t.Results {
			fmt.Fprintf(&b, "%s, %s: %s\n", t.ID, res.Agent, res.Outcome)
		}
	}
	for _, f := range r.Faults {
		fmt.Fprintln(&b, f.Message)
	}
	return b.String()
}

// An attack changes neither the suite nor its directory, although forgers overwrite both.
func TestAttackChangesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const suite = `
name: private
graders: [{name: check, type: program, config: {command: sh, args: [check.sh]}}]
tasks: [{id: a, prompt: Write a.txt., inputs: {files: [in.txt]}}]
`
	content := map[string]string{
		"evals/s/eval.yaml": suite, "evals/s/check.sh": "exit 1\n", "evals/s/fixtures/in.txt": "in\n", "evals/s/notes.md": "notes\n",
		"shared/lib.sh": "lib\n", ".git/HEAD": "ref: refs/heads/main\n",
	}
	for name, text := range content {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "shared", "lib.sh"), filepath.Join(dir, "evals", "s", "lib.sh")))
	before := tree(t, dir)
	total := 0
	r, err := attack.Run(t.Context(), attack.Options{
		Path: filepath.Join(dir, "evals", "s"), Agents: []string{"grader-files", "daemon", "search", "journal"},
		Progress: func(p attack.Progress) {
			total++
			require.Equal(t, []int{total, 4}, []int{p.Done, p.Total})
		},
	})
	require.NoError(t, err)
	require.Equal(t, 4, total)
	require.Equal(t, attack.Failed, r.Tasks[0].Results[0].Outcome, r.Tasks[0].Results[0].Reason)
	require.Equal(t, before, tree(t, dir))
}

// tree returns the files below a directory and their contents.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found[path] = d.Type().String() + string(data)
		return err
	}))
	return found
}

func TestRefusedAttacks(t *testing.T) {
	t.Parallel()
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "eval.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	good := write("name: x\ntasks: [{id: a, prompt: hi}]\n")
	for name, c := range map[string]struct {
		options attack.Options
		want    any
		text    string
	}{
		"unknown agent":  {attack.Options{Path: good, Agents: []string{"nope"}}, new(*attack.AgentError), `unknown agent "nope"; known agents: nop, echo`},
		"missing suite":  {attack.Options{Path: filepath.Join(t.TempDir(), "gone.yaml")}, new(*attack.UnreadError), "gone.yaml"},
		"invalid suite":  {attack.Options{Path: write("name: x\ntasks: [{id: a}]\n")}, new(*attack.SuiteError), "invalid"},
		"kind of suites": {attack.Options{Path: write("name: x\nkind: benchmark\nconfig: {executor: openai, model: m}\ntasks: [{id: a, prompt: hi}]\n")}, new(*attack.KindError), "benchmark"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := attack.Run(t.Context(), c.options)
			require.ErrorAs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
}

// A cancelled attack ends the processes of its agents and removes its copies.
func TestCancelledAttack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: x\ntasks: [{id: a, prompt: hi}, {id: b, prompt: hi}]\n"), 0o644))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	_, err := attack.Run(ctx, attack.Options{Path: path, Progress: func(attack.Progress) { cancel(stop) }})
	require.ErrorIs(t, err, stop)
}

// The table of agents is complete: documents contain it.
func TestAgents(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, a := range agent.All() {
		require.False(t, seen[a.Name], a.Name)
		seen[a.Name] = true
		require.True(t, strings.HasSuffix(a.Summary, "."), a.Name)
		require.True(t, strings.HasSuffix(a.Remedy, "."), a.Name)
		found, ok := agent.Find(a.Name)
		require.True(t, ok)
		require.Equal(t, a.Summary, found.Summary)
	}
	require.Subset(t, agent.Names(), []string{agent.Nop, agent.Echo, agent.Oracle})
}
