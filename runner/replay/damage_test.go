package replay_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/runnertest"
)

// journalFile returns the path of a run's journal.
func journalFile(stateDir, id string) string {
	return filepath.Join(stateDir, "runs", id, "journal.jsonl")
}

// breakLines changes a byte in lines of a run's journal, counted from 1, and returns the offset
// of the first.
func breakLines(t *testing.T, file string, numbers ...int) (offset int64) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	for i, n := range numbers {
		if i == 0 {
			offset = int64(len(bytes.Join(lines[:n-1], nil)))
		}
		lines[n-1][len(lines[n-1])/2] ^= 1
	}
	require.NoError(t, os.WriteFile(file, bytes.Join(lines, nil), 0o600))
	return offset
}

// All readers of a run report the lost parts of its journal, and nothing else is lost. A trial
// in them has not ended, subscribers receive each number once, and an amendment continues the
// numbers.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	whole := runnertest.Follow(t, h, 1)
	var trials []int
	for _, e := range whole {
		if e.Type == record.TrialComplete {
			trials = append(trials, int(e.Seq))
		}
	}
	damage, err := h.Damage()
	require.NoError(t, err)
	require.Nil(t, damage)
	require.NotContains(t, text(t, h), "damage")

	file := journalFile(dir, live.ID())
	offset := breakLines(t, file, trials[1], trials[1]+1, trials[3])
	damage, err = h.Damage()
	require.NoError(t, err)
	want := &record.Damage{Events: 3, Parts: 3, Bytes: damage.Bytes, Line: int64(trials[1]), Offset: offset, Error: "checksum mismatch"}
	require.Equal(t, want, damage)
	require.Contains(t, damage.String(), fmt.Sprintf("line %d (byte %d)", trials[1], offset))
	require.Contains(t, text(t, h), `{"damage":{"events":3,`)
	require.Len(t, runnertest.ResultOf(t, h).Task(t, "a").Trials, 2, "result.json has all")

	require.NoError(t, os.Remove(filepath.Join(dir, "runs", live.ID(), "result.json")))
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCompleted, p.Status)
	require.Equal(t, 4, p.Trials.Total)
	require.Equal(t, 2, p.Trials.Done())
	res := runnertest.ResultOf(t, h)
	require.Len(t, res.Task(t, "a").Trials, 1)
	require.Len(t, res.Task(t, "b").Trials, 1)
	require.Contains(t, text(t, h), `"damage":{"events":3,`)

	for from := range len(whole) {
		got := runnertest.Follow(t, h, int64(from))
		require.Len(t, got, len(whole)-max(0, from-1))
		for i, e := range got {
			was := whole[max(0, from-1)+i]
			require.Equal(t, was.Seq, e.Seq)
			switch int(e.Seq) {
			case trials[1]:
				require.Equal(t, record.Log, e.Type)
				require.Equal(t, fmt.Sprintf("journal: line %d (byte %d) is damaged: checksum mismatch; events %d to %d are lost",
					trials[1], offset, trials[1], trials[1]+1), e.Message)
				require.Equal(t, "warning", e.Level)
			case trials[1] + 1:
				require.Equal(t, fmt.Sprintf("event %d is lost, see event %d", e.Seq, e.Seq-1), e.Message)
			case trials[3]:
				require.Contains(t, e.Message, fmt.Sprintf("event %d is lost", e.Seq))
			default:
				require.Empty(t, cmp.Diff(was, e))
			}
		}
	}
}

// Followers learn of many lost events, including the last ones.
func TestManyLostEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: many
config: {trials_per_task: 1000}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	whole := runnertest.Follow(t, live, 1)
	<-live.Done()
	total := len(whole)
	file := journalFile(dir, live.ID())
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bytes.SplitAfter(b, []byte("\n"))

	// The middle is removed, and the end is damaged.
	kept := slices.Concat(lines[:300], lines[1300:])
	require.NoError(t, os.WriteFile(file, bytes.Join(kept, nil), 0o600))
	breakLines(t, file, total-1002, total-1001, total-1000)
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	damage, err := h.Damage()
	require.NoError(t, err)
	require.EqualValues(t, 1003, damage.Events)
	require.EqualValues(t, 3, damage.Parts)
	for _, from := range []int{1, 300, 301, 302, 900, 1300, 1301, total - 3, total - 2, total} {
		got := runnertest.Follow(t, h, int64(from))
		require.Equal(t, record.End, got[len(got)-1].Type, "from %d, of result.json", from)
		require.Len(t, got, total-from+2, "from %d", from) // and the end, whose position determines its number
		for i, e := range got {
			require.EqualValues(t, from+i, e.Seq)
			lost := e.Seq > 300 && e.Seq <= 1300 || e.Seq > int64(total-3)
			if e.Type != record.End {
				require.Equal(t, lost, e.Type == record.Log && strings.Contains(e.Message, "lost"), "event %d: %v", e.Seq, e)
			}
		}
	}
}

// text returns the result as it is written.
func text(t *testing.T, h record.Handle) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, h.WriteResult(&b))
	return b.String()
}

// Lost contents of trials went unnoticed, because they are beside the journal.
func TestDamagedContents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runnertest.AgentRunner(t, dir, talk)
	live := runnertest.Start(t, r, talkative, record.Request{})
	<-live.Done()
	damage := func() string {
		h, err := replay.Open(journal.NewStore(dir), live.ID())
		require.NoError(t, err)
		d, err := h.Damage()
		require.NoError(t, err)
		if d == nil {
			return ""
		}
		require.True(t, d.Damaged())
		return d.String()
	}
	require.Empty(t, damage())
	file := filepath.Join(dir, "runs", live.ID(), "files.gz")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	bad := bytes.Clone(good)
	for i := range 20 {
		bad[len(bad)/4+i] ^= 0xff
	}
	require.NoError(t, os.WriteFile(file, bad, 0o600))
	require.Regexp(t, `^files.gz is damaged: \d of \d contents are missing or changed; its content is lost$`, damage())
	infos, err := r.Catalog().List(0)
	require.NoError(t, err)
	require.True(t, infos[0].Damage.Damaged())
	require.NoError(t, os.Remove(file))
	require.Regexp(t, `^files.gz is damaged: \d of \d contents are missing or changed; its content is lost$`, damage())
	require.NoError(t, os.WriteFile(file, good, 0o600))
	require.Empty(t, damage())
	infos, err = r.Catalog().List(0)
	require.NoError(t, err)
	require.Nil(t, infos[0].Damage)
}
