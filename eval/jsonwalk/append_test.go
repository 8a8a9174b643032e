package jsonwalk_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval/jsonwalk"
)

// FuzzAppend compares the functions that append with encoding/json, byte for byte.
func FuzzAppend(f *testing.F) {
	f.Add("plain", 1.0, int64(0), int64(0))
	f.Add("\x00\b\f\n\r\t\x1f \"\\/<>&\x7f é 日本 \u2028\u2029 \xff\xe2\x80 \U0010ffff \xf4\x90\x80\x80", 1e-7, int64(1), int64(1))
	f.Add("\xe2\x80\xa8", 1e21, int64(-1), int64(999_999_999))
	f.Add("", math.MaxFloat64, int64(math.MaxInt64), int64(7))
	f.Add("\xc3", -0.1, int64(-62135596800), int64(100))
	f.Add("a", 123456789e-15, int64(253402300800), int64(0))
	f.Add("b", math.Inf(1), int64(1_700_000_000), int64(120_000_000))
	f.Add("c", math.Copysign(0, -1), int64(1_700_000_000), int64(1))
	f.Fuzz(func(t *testing.T, s string, x float64, sec, nsec int64) {
		same := func(v any, got []byte, err error) {
			t.Helper()
			want, wantErr := jsonwalk.Encode(v)
			if wantErr != nil {
				require.Error(t, err)
				require.Equal(t, "[", string(got), "nothing is appended")
				return
			}
			require.NoError(t, err)
			require.Equal(t, "["+string(want), string(got))
		}
		same(s, jsonwalk.AppendString([]byte("["), s), nil)
		got, err := jsonwalk.AppendFloat([]byte("["), x)
		same(x, got, err)
		for _, at := range []time.Time{
			time.Unix(sec, nsec).UTC(), time.Unix(sec, nsec).In(time.FixedZone("", int(sec%90_000))),
		} {
			got, err = jsonwalk.AppendTime([]byte("["), at)
			same(at, got, err)
		}
		for _, v := range []any{s, []any{s, "<&>"}, map[string]any{s: nil}} {
			got, err = jsonwalk.Append([]byte("["), v)
			same(v, got, err)
		}
		members := struct {
			A string `json:"a,omitempty"`
			B int64  `json:"b,omitempty"`
			C bool   `json:"c,omitempty"`
		}{s, sec, nsec == 0}
		want, err := json.Marshal(members)
		require.NoError(t, err)
		b := jsonwalk.AppendText(nil, `,"a":`, s)
		b = jsonwalk.AppendTrue(jsonwalk.AppendInt(b, `,"b":`, sec), `,"c":`, nsec == 0)
		if len(b) > 0 {
			b = b[1:]
		}
		require.JSONEq(t, string(want), "{"+string(b)+"}")
	})
}
