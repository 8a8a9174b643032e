package record_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// requireDecoded checks that a trial is decoded like encoding/json decodes it.
func requireDecoded(t *testing.T, raw []byte) {
	t.Helper()
	var want record.Trial
	wantErr := json.Unmarshal(raw, &want)
	got := record.Trial{Output: "of an earlier trial"}
	err := got.DecodeJSON(raw)
	if wantErr == nil {
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// Each member of a trial is decoded, so no field is forgotten.
func TestDecodeKnowsAllFields(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		for _, whole := range []bool{true, false} {
			var res record.Trial
			newFiller(seed, whole, "text").fill(reflect.ValueOf(&res).Elem())
			raw, err := res.AppendJSON(nil)
			require.NoError(t, err)
			requireDecoded(t, raw)
		}
	}
}

// FuzzDecode compares the decoder with encoding/json, for any JSON that it accepts.
func FuzzDecode(f *testing.F) {
	for seed := range uint64(20) {
		var res record.Trial
		newFiller(seed, false, "\u2028<").fill(reflect.ValueOf(&res).Elem())
		raw, err := res.AppendJSON(nil)
		require.NoError(f, err)
		f.Add(raw)
	}
	for _, s := range []string{
		"null", "[]", "{", `{"taskId":null,"score":1,"score":null}`, `{"TASKID":"a"}`, `{"taskId":"a","unknown":1}`, `{"trialNum":1e2}`,
		`{"graders":[{"name":"a"}],"graders":[{"type":"b"}]}`, `{"graders":[null]}`, `{"transcript":[]} `, `{"output":"\ud800"}`,
		`{"score":NaN}`, `{"score":01}`, `{"score":1e999}`, `{"usage":{"turns":1},"usage":{}}`, `{"startedAt":null}`, "{\"output\":\"\xff\n\"}",
		`{"score":null,"graders":null,"transcript":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(requireDecoded)
}

// A number that no JSON can have is no score, because it would prevent the run from being recorded.
func TestDecodeRefusesNames(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`{"score":NaN}`, `{"score":Infinity}`, `{"graders":[{"score":-inf}]}`, `{"durationMs":x}`} {
		require.Error(t, new(record.Trial).DecodeJSON([]byte(s)), s)
	}
}

// BenchmarkDecode compares the decoder with encoding/json for a trial of the mock executor.
func BenchmarkDecode(b *testing.B) {
	raw := []byte(`{"taskId":"a","trialNum":17,"hash":"0123456789abcdef0123456789abcdef","verdict":"passed","score":1,` +
		`"startedAt":"2026-01-02T03:04:05.123456789Z","durationMs":1,"executorMs":1,"prompt":"hello","output":"mock response: hello",` +
		`"graders":[{"name":"_output_contains","type":"text","score":1,"passed":true,"weight":1,"durationMs":0}],"transcript":[` +
		`{"type":"message","atMs":0,"role":"user","text":"hello"},{"type":"message","atMs":1,"role":"assistant","text":"mock response: hello"}]}`)
	for name, decode := range map[string]func([]byte, *record.Trial) error{
		"encoding/json": func(raw []byte, res *record.Trial) error { return json.Unmarshal(raw, res) },
		"by hand":       func(raw []byte, res *record.Trial) error { return res.DecodeJSON(raw) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, decode(raw, new(record.Trial)))
			}
		})
	}
}
