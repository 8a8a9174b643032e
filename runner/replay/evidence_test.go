package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/history"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// damagedRun is a run of TwoTasks whose files are changed.
type damagedRun struct {
	*testing.T
	runner *runner.Runner
	id     string
	dir    string // of the run
	files  map[string][]byte
}

func newDamagedRun(t *testing.T) *damagedRun {
	t.Helper()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	d := &damagedRun{T: t, runner: r, id: live.ID(), dir: filepath.Join(state, "runs", live.ID()), files: map[string][]byte{}}
	for _, name := range []string{"run.json", "journal.jsonl", "result.json"} {
		d.files[name], err = os.ReadFile(filepath.Join(d.dir, name))
		require.NoError(t, err)
	}
	return d
}

// with replaces files of the run by damaged ones and restores the others. nil removes a file.
func (d *damagedRun) with(files map[string][]byte) record.Handle {
	d.Helper()
	for name, b := range d.files {
		path := filepath.Join(d.dir, name)
		if changed, ok := files[name]; ok {
			b = changed
		}
		if b == nil {
			require.NoError(d, os.RemoveAll(path)) // the last change may have removed it
		} else {
			require.NoError(d, os.WriteFile(path, b, 0o600))
		}
	}
	h, err := d.runner.Catalog().Run(d.id)
	require.NoError(d, err)
	return h
}

// faces checks that each view of the run reports the same damage, status and trials.
func (d *damagedRun) faces(name string, h record.Handle, status record.Status, trials int) *record.Damage {
	d.Helper()
	damage, err := h.Damage()
	require.NoError(d, err, name)
	require.NotNil(d, damage, name)
	p, err := h.Progress()
	require.NoError(d, err, name)
	require.Equal(d, status, p.Status, name)
	require.Equal(d, trials, p.Trials.Done(), name)
	listed := 0
	require.NoError(d, h.Trials(func(int, *record.Trial) error { listed++; return nil }))
	require.Equal(d, trials, listed, name)
	res := runnertest.ResultOf(d.T, h)
	require.Equal(d, status, res.Status, name)
	listed = 0
	for _, task := range res.Tasks {
		listed += len(task.Trials)
	}
	require.Equal(d, trials, listed, name)
	require.Contains(d, text(d.T, h), `"damage":{`, name)

	infos, err := d.runner.Catalog().List(0)
	require.NoError(d, err, name)
	require.Len(d, infos, 1, name)
	require.Equal(d, damage, infos[0].Damage, name)
	require.Equal(d, status, infos[0].Status, name)
	require.Equal(d, trials, infos[0].Trials.Done(), name)
	if h.Record().Suite.Path != "" {
		history, err := history.Read(context.Background(), d.runner.Catalog(), history.Options{})
		require.NoError(d, err, name)
		require.Equal(d, damage, history.Runs[0].Damage, name)
	}
	return damage
}

// A truncated journal, a bad byte in run.json or result.json, and an empty result.json were
// accepted, hid the run or broke its readers.
func TestAttackDamagedRecord(t *testing.T) {
	t.Parallel()
	d := newDamagedRun(t)
	h := d.with(nil)
	none, err := h.Damage()
	require.NoError(t, err)
	require.Nil(t, none)
	require.NotContains(t, text(t, h), `"crc"`)
	require.NotContains(t, text(t, h), `"lines"`)
	whole := runnertest.ResultOf(t, h)

	// The result is written before the last line, which contains the same. A run that is killed
	// in between has lost nothing.
	lines := bytes.SplitAfter(d.files["journal.jsonl"], []byte("\n"))
	total := len(lines) - 2
	killed := d.with(map[string][]byte{"journal.jsonl": bytes.Join(lines[:total], nil)})
	none, err = killed.Damage()
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, whole, runnertest.ResultOf(t, killed))
	events := runnertest.Follow(t, killed, 1)
	require.Equal(t, record.End, events[len(events)-1].Type)
	require.Len(t, events, total+1)
	for _, kept := range []int{0, 1, total / 2, total - 1} {
		name := fmt.Sprintf("a journal of %d of %d lines", kept, total)
		h := d.with(map[string][]byte{"journal.jsonl": bytes.Join(lines[:kept], nil)})
		damage := d.faces(name, h, record.StatusCompleted, 4)
		require.True(t, damage.Ends, name)
		require.EqualValues(t, total-kept, damage.Events, name)
		require.Contains(t, damage.String(), "the end of the journal is missing", name)
	}
	for i := range d.files["run.json"] {
		b := bytes.Clone(d.files["run.json"])
		if b[i] ^= 4; i%23 > 0 && i < len(b)-12 {
			continue
		}
		h := d.with(map[string][]byte{"run.json": b})
		name := fmt.Sprintf("byte %d of run.json: %s", i, b[max(0, i-20):i])
		damage := d.faces(name, h, record.StatusCompleted, 4)
		require.Len(t, damage.Files, 1, name)
		require.True(t, damage.Files[0].Restored, name)
		require.Equal(t, "two", h.Record().Suite.Name, name)
	}
	for i := range d.files["result.json"] {
		b := bytes.Clone(d.files["result.json"])
		if b[i] ^= 4; i%97 > 0 && i < len(b)-24 {
			continue
		}
		h := d.with(map[string][]byte{"result.json": b})
		name := fmt.Sprintf("byte %d of result.json: %s", i, b[max(0, i-20):i])
		damage := d.faces(name, h, record.StatusCompleted, 4)
		require.Equal(t, "result.json", damage.Files[0].File, name)
		require.Equal(t, whole, runnertest.ResultOf(t, h), name)
	}
	for name, files := range map[string]map[string][]byte{
		"run.json is missing":    {"run.json": nil},
		"run.json is empty":      {"run.json": {}},
		"run.json is half":       {"run.json": d.files["run.json"][:200]},
		"result.json is empty":   {"result.json": {}},
		"result.json is half":    {"result.json": d.files["result.json"][:200]},
		"journal is missing":     {"journal.jsonl": nil},
		"only the journal":       {"run.json": nil, "result.json": {}},
		"both are of zeros":      {"run.json": make([]byte, 500), "result.json": make([]byte, 500)},
		"result.json is of text": {"result.json": []byte("hello")},
	} {
		d.faces(name, d.with(files), record.StatusCompleted, 4)
	}
	// Nothing of the run is readable except its existence.
	h = d.with(map[string][]byte{"run.json": []byte("{"), "journal.jsonl": {}, "result.json": []byte("{")})
	damage := d.faces("all", h, record.StatusInterrupted, 0)
	require.Len(t, damage.Files, 2)
	require.Equal(t, d.id, h.ID())
	found, err := d.runner.Catalog().Find("", catalog.LatestRun)
	require.NoError(t, err)
	require.Equal(t, d.id, found.ID())
}
