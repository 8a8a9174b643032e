package record_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval/jsonwalk"
	"waza/runner/record"
)

// filler sets the fields of values to random contents, or all of them if whole is set.
type filler struct {
	*rand.Rand
	texts []string
	whole bool
}

func (f filler) fill(v reflect.Value) {
	if !f.whole && f.IntN(3) == 0 {
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(f.Int64N(4e9), f.Int64N(1e9)).UTC()))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":[1,"<x>"]}`))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+f.IntN(2), 2))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		f.fill(value)
		v.SetMapIndex(reflect.ValueOf(f.text()).Convert(v.Type().Key()), value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{f.text(): []any{f.Float64(), f.text()}}))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1 + f.Int64N(1<<f.IntN(31)))
	case reflect.Uint32:
		v.SetUint(1 + f.Uint64N(8))
	case reflect.Float64:
		v.SetFloat(f.Float64())
	default:
		panic("filler: " + v.Type().String())
	}
}

func (f filler) text() string { return f.texts[f.IntN(len(f.texts))] + strconv.Itoa(f.IntN(10)) }

func newFiller(seed uint64, whole bool, text string) filler {
	return filler{rand.New(rand.NewPCG(seed, 0)), []string{"x", "<é>\n\"", text}, whole}
}

// requireEncoded checks the methods that append an event, its trial and its transcript.
func requireEncoded(t *testing.T, e *record.Event) {
	t.Helper()
	head := *e
	head.Trial = nil
	want, err := jsonwalk.Encode(&head)
	require.NoError(t, err)
	got, err := e.AppendHead(nil)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"}")
	if e.Trial == nil {
		return
	}
	want, err = jsonwalk.Encode(e.Trial)
	require.NoError(t, err)
	got, err = e.Trial.AppendJSON([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, "x"+string(want), string(got))
	want, err = jsonwalk.Encode(e.Trial.Transcript)
	require.NoError(t, err)
	got, err = record.AppendTranscript(nil, e.Trial.Transcript)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// FuzzAppend compares the events that are appended member by member with encoding/json.
func FuzzAppend(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed, "")
	}
	f.Add(uint64(1), "\xff\u2028\x00")
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		var e record.Event
		newFiller(seed, false, text).fill(reflect.ValueOf(&e).Elem())
		requireEncoded(t, &e)
	})
}

// An event with all fields is encoded like encoding/json encodes it, so no field is forgotten.
func TestAppendKnowsAllFields(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		var e record.Event
		newFiller(seed, true, "text").fill(reflect.ValueOf(&e).Elem())
		requireEncoded(t, &e)
	}
}

// Values that JSON cannot express are errors, wherever they are.
func TestAppendReportsErrors(t *testing.T) {
	t.Parallel()
	late := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := (&record.Event{Time: late}).AppendHead(nil)
	require.Error(t, err)
	for _, trial := range []record.Trial{
		{StartedAt: late},
		{Graders: []record.Grade{{Details: func() {}}}},
		{Transcript: []record.Entry{{Tool: &record.ToolCall{Result: json.RawMessage("{")}}}},
	} {
		_, err := trial.AppendJSON(nil)
		require.Error(t, err)
	}
}
