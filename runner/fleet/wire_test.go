package fleet

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/internal/bundle"
	"waza/runner/trial"
)

// An order has the JSON of encoding/json, whichever way it is encoded or decoded.
func TestOrderEncoding(t *testing.T) {
	t.Parallel()
	terms := Terms{Protocol: 1, Run: "r", Plan: "p", Files: "f", Owner: `k,"id":`, Expires: time.Now().UTC()}
	var d OrderDecoder
	for _, r := range []Request{
		{ID: "1-1-a", Task: 1, Num: 1, Hash: "abc"}, {ID: "1-2-a", Task: 1, Num: 2, Hash: "abc"},
		{ID: "2-1-a", Task: 2, Num: 1, Params: map[string]string{"id": `,"id":`}, Baseline: json.RawMessage(`{"id":1}`), Object: "o"},
	} {
		o := &Order{terms, r}
		shared, err := json.Marshal(&terms)
		require.NoError(t, err)
		got, err := o.Encode(shared)
		require.NoError(t, err)
		want, err := json.Marshal(o)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		for range 2 {
			decoded, err := d.Decode(got)
			require.NoError(t, err)
			require.Equal(t, o, decoded)
		}
		terms.Run += "x"
	}
}

// FuzzDecodeOrder compares the decoder with encoding/json, also after it has seen another order.
func FuzzDecodeOrder(f *testing.F) {
	before := []byte(`{"protocol":1,"run":"r","expires":"2026-01-01T00:00:00Z","id":"1-1-a","task":1}`)
	for _, s := range []string{
		string(before), strings.Replace(string(before), `"task":1`, `"task":2,"run":"s"`, 1), `{"protocol":1,"id":1}`, "null", "{}",
		`{"protocol":1,"x":{"a":1,"id":"b"},"id":"c"}`, `{"protocol":1,"id":"a","x":[1,"id":2]}`, `{"protocol":1 ,"id":"a"} x`,
		`{"run":"a\\\",\"id\":","id":"b","id":"c"}`, `[{"protocol":1,"id":"a"}]`,
	} {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{,"id":"a"}`))
	f.Add([]byte("{\"run\":\"0\",\"id\":\"\x11\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var d OrderDecoder
		_, err := d.Decode(before)
		require.NoError(t, err)
		var want Order
		wantErr := json.Unmarshal(body, &want)
		for range 2 {
			got, err := d.Decode(body)
			require.Equal(t, wantErr == nil, err == nil, "%v, expected %v", err, wantErr)
			if err == nil {
				require.Equal(t, &want, got)
			}
		}
	})
}

// Results have the JSON of encoding/json, except that the trial is the last member.
func TestResultsEncoding(t *testing.T) {
	t.Parallel()
	list := []Result{
		{ID: "1", Trial: json.RawMessage(`{"output":"a \" } ] b","n":[1,{}]}`)}, {ID: "2", Reason: "it's <broken>"},
		{
			ID: "3", Trial: json.RawMessage(`{}`), Lost: 2, Notices: []trial.Notice{{Level: "info", Message: `"trial":{`}},
			Files: &bundle.Parcel{Shared: []string{"a"}}, Halt: &Halt{Message: "m"},
		},
	}
	var encoded [][]byte
	for i := range list {
		b, err := list[i].Encode()
		require.NoError(t, err)
		encoded = append(encoded, b)
	}
	for n := range encoded {
		b, err := EncodeResults("a\\b", encoded[:n+1])
		require.NoError(t, err)
		var plain Results
		require.NoError(t, json.Unmarshal(b, &plain))
		require.Equal(t, Results{Worker: "a\\b", List: list[:n+1]}, plain)
		b, err = EncodeResults("w", encoded[:n+1])
		require.NoError(t, err)
		got, err := DecodeResults(b)
		require.NoError(t, err)
		require.Equal(t, &Results{Worker: "w", List: list[:n+1]}, got)
	}
}

// FuzzDecodeResults checks that results that encoding/json accepts are decoded like it does, in any
// form, and that no others cause a panic.
func FuzzDecodeResults(f *testing.F) {
	for _, s := range []string{
		`{"worker":"w","results":[{"id":"1","trial":{"a":"]}"}},{"id":"2","why":"x"}]}`, `{"results":[{"trial":1,"id":"1","lost":3}],"worker":"w"}`,
		`{"Worker":"w","RESULTS":[{"ID":"1"}]}`, `{"worker":"\u0061","results":[{"id":"\n"}]}`, `{"worker":"w","results":null}`, "null", "[]", "{",
		`{"worker":"w","worker":null,"results":[{"id":"1","id":"2","trial":{},"trial":null}]}`, `{"worker":"w","results":[null,{}]}`,
		`{"worker":"w","results":[{"id":"1","trial":[}]}]}`, `{"worker":"w","results":[{"id":"1"}],"x":1} `, `{"worker":"w","results":[]} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want Results
		err := json.Unmarshal(data, &want)
		got, gotErr := DecodeResults(data)
		if err != nil {
			return // trials are not checked, so it can be accepted
		}
		require.NoError(t, gotErr)
		if len(want.List) == 0 {
			got.List = want.List // nil or empty
		}
		again, err := json.Marshal(got)
		require.NoError(t, err)
		plain, err := json.Marshal(&want)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(again))
	})
}
