package formats_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/compare"
	"waza/runner/history"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/formats"
	"waza/runner/runnertest"
)

// reseal corrects the checksum of each line, as anyone can.
func reseal(b []byte) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(string(b)) {
		body := regexp.MustCompile(`(,"crc":"[0-9a-f]{8}")?}\n?$`).ReplaceAllString(line, "")
		fmt.Fprintf(&out, "%s,\"crc\":\"%08x\"}\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
	}
	return out.Bytes()
}

// requireDamagedRows requires that each row of a CSV file describes damage. The header alone would
// look like a run without trials.
func requireDamagedRows(t *testing.T, text string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	require.Greater(t, len(rows), 1)
	at := slices.Index(rows[0], "record_damage")
	for _, row := range rows[1:] {
		require.NotEmpty(t, row[at])
	}
}

// An agent could change a verdict in the journal and the result, and correct the checksums. Some
// readers then showed the forged verdict, and none said a word.
func TestAttackForgedRecord(t *testing.T) {
	t.Parallel()
	forge := func(t *testing.T, path string, sealed bool, edit func([]byte) []byte) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		forged := edit(b)
		require.NotEqual(t, string(b), string(forged))
		if sealed {
			forged = reseal(forged)
		}
		require.NoError(t, os.WriteFile(path, forged, 0o600))
	}
	passed := func(b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte(`"verdict":"failed"`), []byte(`"verdict":"passed"`))
		return bytes.ReplaceAll(b, []byte(`"failed":1`), []byte(`"failed":0`))
	}
	macs := regexp.MustCompile(`,"mac":"[0-9a-f]+"`)
	both := func(sealed bool, edit func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			forge(t, filepath.Join(dir, "journal.jsonl"), sealed, edit)
			forge(t, filepath.Join(dir, "result.json"), sealed, edit)
		}
	}
	for name, attack := range map[string]func(t *testing.T, dir string){
		"both, wrong checksums": both(false, passed),
		"both":                  both(true, passed),
		"both, no digests":      both(true, func(b []byte) []byte { return macs.ReplaceAll(passed(b), nil) }),
		"journal":               func(t *testing.T, dir string) { forge(t, filepath.Join(dir, "journal.jsonl"), true, passed) },
		"result":                func(t *testing.T, dir string) { forge(t, filepath.Join(dir, "result.json"), true, passed) },
		"request": func(t *testing.T, dir string) {
			forge(t, filepath.Join(dir, "run.json"), false, func(b []byte) []byte {
				b = bytes.Replace(b, []byte(`"name": "s"`), []byte(`"name": "forged"`), 1)
				end := bytes.LastIndex(b, []byte(`,"crc"`))
				return fmt.Appendf(nil, "%s,\"crc\":\"%08x\"}\n", b[:end], crc32.Checksum(b[:end], crc32.MakeTable(crc32.Castagnoli)))
			})
		},
		"cut off": func(t *testing.T, dir string) {
			forge(t, filepath.Join(dir, "journal.jsonl"), false, func(b []byte) []byte {
				before, _, _ := bytes.Cut(b, []byte(`"type":"trial_complete"`))
				return before
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			r, err := runner.New(runner.Options{StateDir: state})
			require.NoError(t, err)
			run := runnertest.Start(t, r,
				"-- eval.yaml --\nname: s\nconfig: {executor: mock}\ntasks: [{id: bad, prompt: no, graders: [{type: text, "+
					"config: {contains: [never]}}]}]\n",
				record.Request{})
			<-run.Done()
			good := runnertest.Start(t, r,
				"-- eval.yaml --\nname: s\nconfig: {executor: mock}\ntasks: [{id: bad, prompt: never, graders: [{type: "+
					"text, config: {contains: [never]}}]}]\n",
				record.Request{})
			<-good.Done()
			attack(t, filepath.Join(state, "runs", run.ID()))
			again, err := runner.New(runner.Options{StateDir: state})
			require.NoError(t, err)
			h, err := again.Catalog().Run(run.ID())
			require.NoError(t, err)
			for _, f := range formats.Formats() {
				text := written(t, f, h)
				require.Regexp(t, `damage|mismatch|missing|did not write`, text, f.Name)
				require.NotContains(t, text, "forged", f.Name)
				if f.Name == "csv" {
					requireDamagedRows(t, text)
				}
			}
			rep, err := report.Of(h)
			require.NoError(t, err)
			require.True(t, rep.Damage.Damaged())
			require.NoError(t, h.Trials(func(_ int, trial *record.Trial) error {
				require.NotEqual(t, record.Passed, trial.Verdict)
				return nil
			}))
			infos, err := again.Catalog().List(0)
			require.NoError(t, err)
			require.Len(t, infos, 2)
			for _, i := range infos {
				require.Equal(t, i.RunID == run.ID(), i.Damage.Damaged(), i.RunID)
				if i.RunID == run.ID() {
					require.Zero(t, i.Tasks.Passed)
				}
			}
			past, err := history.Read(t.Context(), again.Catalog(), history.Options{Suites: []string{run.Record().Suite.Path}})
			require.NoError(t, err)
			require.True(t, past.Runs[0].Damage.Damaged())
			other, err := again.Catalog().Run(good.ID())
			require.NoError(t, err)
			sources := []compare.Source{compare.FromRun(other), compare.FromRun(h)}
			_, err = compare.Compare(t.Context(), sources, compare.Options{})
			var damaged *compare.DamagedError
			require.ErrorAs(t, err, &damaged)
			require.Equal(t, run.ID(), damaged.RunID)
			result, err := compare.Compare(t.Context(), sources, compare.Options{AcceptDamaged: true})
			if err == nil {
				require.True(t, result.Runs[1].Damage.Damaged())
				require.Zero(t, result.Runs[1].Trials.Passed)
			}
		})
	}
}

// Without its key, the state directory got a new one. All runs then counted as older than the key, so
// that a forged verdict without digests passed every gate.
func TestAttackRemovedKey(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"one run": false, "all runs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			r, err := runner.New(runner.Options{StateDir: state})
			require.NoError(t, err)
			suite := "-- eval.yaml --\nname: s\nconfig: {executor: mock}\ntasks: [{id: bad, prompt: no, graders: [{type: " +
				"text, config: {contains: [never]}}]}]\n"
			run := runnertest.Start(t, r, suite, record.Request{})
			<-run.Done()
			other := runnertest.Start(t, r, suite, record.Request{})
			<-other.Done()
			forged := []string{run.ID()}
			if all {
				forged = append(forged, other.ID())
			}
			for _, id := range forged {
				for _, file := range []string{"journal.jsonl", "result.json", "run.json"} {
					path := filepath.Join(state, "runs", id, file)
					b, err := os.ReadFile(path)
					require.NoError(t, err)
					b = bytes.ReplaceAll(b, []byte(`"verdict":"failed"`), []byte(`"verdict":"passed"`))
					b = bytes.ReplaceAll(b, []byte(`"passed":0,"failed":1`), []byte(`"passed":1,"failed":0`))
					b = regexp.MustCompile(`(,"recordKey":"[0-9a-f]+"|,"lines":\d+,"bytes":\d+,"last":"[0-9a-f]+")?,"mac":"[0-9a-f]+"`).ReplaceAll(b, nil)
					if file == "run.json" { // its object has many lines
						b = regexp.MustCompile(`,"crc":"[0-9a-f]{8}"`).ReplaceAll(b, nil)
					} else {
						b = reseal(b)
					}
					require.NoError(t, os.WriteFile(path, b, 0o600))
				}
			}
			require.NoError(t, os.Remove(filepath.Join(state, "record.key")))
			again, err := runner.New(runner.Options{StateDir: state})
			require.NoError(t, err)
			require.Equal(t, all, fileExists(filepath.Join(state, "record.key")), "a key is created only if no run has digests")
			h, err := again.Catalog().Run(run.ID())
			require.NoError(t, err)
			damage, err := h.Damage()
			require.NoError(t, err)
			require.Equal(t, !all, damage.Damaged())
			if all {
				require.Equal(t, "the record cannot be verified: no digests", damage.String())
			} else {
				require.Equal(t, "the record cannot be verified without record.key: missing file", damage.String())
			}
			for _, f := range formats.Formats() {
				text := written(t, f, h)
				require.Regexp(t, `cannot be verified|"damage":{`, text, f.Name)
				switch f.Name {
				case "junit":
					require.Contains(t, text, `errors="1"`)
				case "markdown":
					require.Contains(t, text, "### ⚠️")
				case "csv":
					requireDamagedRows(t, text)
				}
			}
			second, err := again.Catalog().Run(other.ID())
			require.NoError(t, err)
			sources := []compare.Source{compare.FromRun(second), compare.FromRun(h)}
			_, err = compare.Compare(t.Context(), sources, compare.Options{})
			var refused *compare.DamagedError
			require.ErrorAs(t, err, &refused)
			result, err := compare.Compare(t.Context(), sources, compare.Options{AcceptDamaged: true})
			require.NoError(t, err)
			require.NotNil(t, result.Runs[1].Damage)
			infos, err := again.Catalog().List(0)
			require.NoError(t, err)
			for _, i := range infos {
				require.NotNil(t, i.Damage)
			}
		})
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
