package runner_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor/acp"
	"waza/runner/grader/builtin"
	"waza/runner/internal/bundle"
	"waza/runner/plan"
	"waza/runner/proc/proctest"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
	"waza/runner/trial"
)

// objects is a [bundle.Store] in memory.
type objects struct {
	mu      sync.Mutex // guards content
	content map[string][]byte
}

func (o *objects) Has(_ context.Context, name string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.content[name]
	return ok, nil
}

func (o *objects) Put(_ context.Context, name string, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.content[name] = b
	return nil
}

func (o *objects) Get(_ context.Context, name string) (io.ReadCloser, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.content[name]
	if !ok {
		return nil, bundle.ErrMissing
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (o *objects) Delete(_ context.Context, name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.content, name)
	return nil
}

// names returns the names of all objects.
func (o *objects) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.content))
}

// away executes trials like another machine: it has the files of a bundle in a separate
// directory, and workspaces are returned by content.
type away struct {
	store  *objects
	packed *bundle.Packed
	files  *bundle.Unpacked
	kept   *bundle.Kept
	dir    string

	mu  sync.Mutex
	env *trial.Env
}

// goAway packs the files of a plan, and unpacks them elsewhere.
func goAway(t *testing.T, p *plan.Plan) *away {
	t.Helper()
	w := &away{store: &objects{content: map[string][]byte{}}, dir: t.TempDir()}
	var orders []*record.Order
	for i, task := range p.Tasks {
		o := p.Order(task, "run", i+1)
		orders = append(orders, &o)
	}
	var err error
	w.packed, err = bundle.Pack(t.Context(), w.store, bundle.Contents{Orders: orders, Files: p.Files.Files})
	require.NoError(t, err)
	w.files, err = bundle.Unpack(t.Context(), w.store, w.packed.Hash(), filepath.Join(w.dir, "bundles"), bundle.Limits{})
	require.NoError(t, err)
	w.kept = bundle.NewKept(filepath.Join(w.dir, "left"), w.files)
	t.Cleanup(func() {
		if w.env != nil {
			_ = w.env.Close()
			w.env.Grading.Close()
			w.env.Pool.Close()
		}
		_ = w.files.Close()
	})
	return w
}

func (w *away) do(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial {
	sent, err := w.receive(env, o)
	if err != nil {
		return trial.Broken(ctx, o, err)
	}
	defer w.kept.Drop(sent)
	res := trial.Do(ctx, w.env, sent)
	parcel, err := w.kept.Send(ctx, w.store, sent, res)
	if err != nil {
		return trial.Broken(ctx, o, err)
	}
	b, err := json.Marshal(struct {
		Trial *record.Trial
		Files *bundle.Parcel
	}{res, parcel})
	if err != nil {
		return trial.Broken(ctx, o, err)
	}
	var back struct {
		Trial *record.Trial
		Files *bundle.Parcel
	}
	if err := json.Unmarshal(b, &back); err != nil {
		return trial.Broken(ctx, o, err)
	}
	if err := back.Files.Unload(ctx, w.store, back.Trial, env.Blobs, bundle.Limits{}); err != nil {
		return trial.Broken(ctx, o, err)
	}
	if err := back.Files.Delete(ctx, w.store); err != nil {
		return trial.Broken(ctx, o, err)
	}
	res.Workspace = back.Trial.Workspace // [TestSuitesTravel] checks the rest of the result
	return res
}

// receive returns the order with the paths of that place.
func (w *away) receive(env *trial.Env, o *record.Order) (*record.Order, error) {
	moved, err := w.packed.Relocate(o)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(moved)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	decoder := w.env
	if decoder == nil {
		decoder = &trial.Env{Executors: plan.Executors, Graders: builtin.Graders}
	}
	sent, err := decoder.Decode(b)
	if err == nil {
		sent, err = w.files.Relocate(sent)
	}
	if err != nil {
		return nil, err
	}
	if w.env == nil {
		w.env = trial.NewEnv(sent, plan.Executors, builtin.Graders, nil)
		w.env.Grading.Agents = acp.Judges{}
		w.env.Dir, w.env.BlobsOf = filepath.Join(w.dir, "work"), w.kept.Of
		w.env.Owner, w.env.Stopping = env.Owner, env.Stopping
	}
	return sent, nil
}

// names maps the directories of the bundle to their original directories.
func (w *away) names(t *testing.T, p *plan.Plan) *strings.Replacer {
	t.Helper()
	o := p.Order(p.Tasks[0], "run", 1)
	moved, err := w.packed.Relocate(&o)
	require.NoError(t, err)
	here, err := w.files.Relocate(moved)
	require.NoError(t, err)
	return strings.NewReplacer(here.Suite.Root(), o.Suite.Root(), here.Suite.WorkDir, o.Suite.WorkDir,
		filepath.Join(w.dir, "work"), "STATE/work")
}

// hasHooks reports whether the owner runs programs of the suite during trials.
func hasHooks(s *eval.Suite) bool {
	h := s.Hooks
	return len(h.BeforeRun)+len(h.AfterRun)+len(h.BeforeTask)+len(h.AfterTask) > 0
}

// Trials can be executed by another process that receives only encoded orders, and where only the
// bundle of the suite exists. Whole suites leave the same records, even when the directory of the plan
// was removed.
func TestSuitesTravel(t *testing.T) {
	t.Parallel()
	for _, path := range allSuites(t) {
		t.Run(nameOf(path), func(t *testing.T) {
			t.Parallel()
			top := filepath.Join(t.TempDir(), "owner")
			root, rest := partOf(path)
			require.NoError(t, os.CopyFS(top, os.DirFS(root)))
			require.NoError(t, os.Mkdir(filepath.Join(top, ".git"), 0o755))
			path := filepath.Join(top, rest)
			here := recordsOf(t, path, nil)

			other := &elsewhere{envs: map[string]*trial.Env{}}
			defer other.close()
			require.Empty(t, cmp.Diff(here, recordsOf(t, path, other.do)), "by order")

			state := t.TempDir()
			var w *away
			r, err := runner.New(runner.Options{
				StateDir: state,
				Do:       func(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial { return w.do(ctx, env, o) },
			})
			require.NoError(t, err)
			suite, _, err := eval.Load(path, eval.Options{Vocabulary: r.Planner().Vocabulary()})
			require.NoError(t, err)
			p, err := r.Planner().Plan(t.Context(), suite, oneWorker(suite))
			require.NoError(t, err)
			w = goAway(t, p)
			names := w.names(t, p)
			if !hasHooks(suite) {
				require.NoError(t, os.Rename(top, top+"-gone"))
			}
			require.Empty(t, cmp.Diff(here, recordsIn(t, r, p, state, names)), "by content")
		})
	}
}

// Workspaces are returned unchanged: large, many, binary, changed and deleted files. They can be
// graded again.
func TestWhatTrialsLeaveTravels(t *testing.T) {
	t.Parallel()
	const files = `
-- agent.sh --
#!/bin/sh
set -e
yes large | head -c 3000000 > large.bin
printf '\000\377\001' > binary.bin
mkdir many empty
for i in 1 2 3 4 5 6 7 8 9; do echo "file $i" > many/$i.txt; done
echo more >> edited.txt
chmod 755 edited.txt
rm gone.txt
ln -s many/1.txt link
touch none
-- fixtures/edited.txt --
one
-- fixtures/gone.txt --
gone
-- fixtures/same.txt --
same
-- eval.yaml --
name: leaves
config: {executor: command, command: ./agent.sh, trials_per_task: 2}
tasks:
  - id: a
    inputs: {prompt: x, files: [edited.txt, gone.txt, same.txt, big.txt, {path: empty.txt, content: ""}]}
    graders:
      - {type: file, name: left, config: {must_exist: [large.bin, many/9.txt], must_not_exist: [gone.txt]}}
-- fixtures/big.txt --
`
	suite := files + strings.Repeat("a line of a large fixture\n", 10_000)
	var lists []string
	for _, remote := range []bool{false, true} {
		state := t.TempDir()
		var w *away
		o := runner.Options{StateDir: state}
		if remote {
			o.Do = func(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial { return w.do(ctx, env, o) }
		}
		r, err := runner.New(o)
		require.NoError(t, err)
		p, err := r.Planner().Plan(t.Context(), runnertest.Load(t, r, suite), record.Request{})
		require.NoError(t, err)
		if remote {
			w = goAway(t, p)
			require.NoError(t, os.Rename(p.Suite.Dir, p.Suite.Dir+"-gone"))
			t.Cleanup(func() { _ = os.Rename(p.Suite.Dir+"-gone", p.Suite.Dir) })
		}
		run, err := r.Start(p)
		require.NoError(t, err)
		<-run.Done()
		lists = append(lists, leftBy(t, run))

		// The content itself is kept, not only the results of graders.
		again := runnertest.Load(t, r,
			strings.Replace(suite, "must_exist: [large.bin, many/9.txt]",
				"must_exist: [none], content_patterns: [{path: many/9.txt, must_match: [file 9]}, {path: big.txt, must_match: [a line]}]",
				1))
		g, err := r.Amender().Grade(t.Context(), run.ID(), again, regrade.GradeOptions{})
		require.NoError(t, err)
		require.Equal(t, 2, g.Graded)
		require.Equal(t, 2, g.Summary.Trials.Passed, "%+v", g.Summary)
		if remote {
			require.Len(t, w.store.names(), 2, "the manifest and a fixture: what trials left was deleted")
		}
	}
	require.Contains(t, lists[0], "gone.txt changed file")
	require.Empty(t, cmp.Diff(strings.Split(lists[0], "\n"), strings.Split(lists[1], "\n")))
}

// A commit of a repository is checked out at the place in the order, although the repository was
// not transferred.
func TestRepositoriesTravel(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	repo := filepath.Join(t.TempDir(), "repo")
	require.NoError(t, os.MkdirAll(repo, 0o755))
	git := func(args ...string) {
		out, err := proctest.Output(exec.Command("git",
			append([]string{"-C", repo, "-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)...))
		require.NoError(t, err, string(out))
	}
	git("init", "--quiet", "--initial-branch=main")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, os.WriteFile(filepath.Join(repo, "file.txt"), []byte(text), 0o644))
		git("add", ".")
		git("commit", "--quiet", "-m", text)
	}
	var w *away
	r, err := runner.New(runner.Options{
		StateDir: t.TempDir(),
		Do:       func(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial { return w.do(ctx, env, o) },
	})
	require.NoError(t, err)
	p, err := r.Planner().Plan(t.Context(), runnertest.Load(t, r, `
-- eval.yaml --
name: repositories
config: {executor: command, command: "cat old/file.txt new/file.txt && git -C old log --format=' %s' && git -C new log --format=' %s' && git -C new status --short"}
tasks:
  - id: a
    inputs: {prompt: x, repos: [{source: `+repo+`, commit: main~1, dest: old}, {source: `+repo+`, dest: new}]}
`), record.Request{})
	require.NoError(t, err)
	w = goAway(t, p)
	require.NoError(t, os.Rename(repo, repo+"-gone"))
	run, err := r.Start(p)
	require.NoError(t, err)
	<-run.Done()
	require.NoError(t, run.Trials(func(_ int, res *record.Trial) error {
		require.Equal(t, "onetwo one\n two\n one", strings.TrimSpace(res.Output), res.Error)
		return nil
	}))
}

// leftBy lists the workspaces of a run's trials, with hashes of readable contents.
func leftBy(t *testing.T, h record.Handle) string {
	t.Helper()
	blobs, err := h.Blobs()
	require.NoError(t, err)
	defer blobs.Close()
	var b strings.Builder
	content := func(blob *record.Blob) string {
		if blob == nil {
			return "-"
		}
		data, err := blobs.Get(*blob)
		require.NoError(t, err)
		return fmt.Sprintf("%x", sha256.Sum256(data))
	}
	require.NoError(t, h.Trials(func(_ int, res *record.Trial) error {
		require.NotNil(t, res.Workspace, res.Error)
		fmt.Fprintf(&b, "trial %d: %s\n", res.TrialNum, res.Verdict)
		for _, e := range slices.Concat(res.Workspace.Entries, res.Workspace.Removed) {
			fmt.Fprintf(&b, "%s %s %s %o %s %s %s %s\n", e.Path, e.Given, e.Type, e.Mode, e.Link, e.Omitted, content(e.Blob), content(e.Before))
		}
		return nil
	}))
	return b.String()
}
