package jsonwalk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/jsonwalk"
)

// FuzzMembers checks that Members finds each member of a valid object with its value, and never
// panics.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : 1 , "b":[{"c":"]}"}],"d":"\\\"","e":null}`, `{"a":"\u0000","a":-1.5e3}`, `{"a":{"b":{}}}x`,
		`{"a":1,}`, `[1]`, `"`, `{"\"":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []string
		err := jsonwalk.Members(data, "", func(key, value []byte) bool {
			got = append(got, string(key), string(value))
			return true
		})
		if !json.Valid(data) || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			return
		}
		require.NoError(t, err)
		dec := json.NewDecoder(bytes.NewReader(data))
		_, _ = dec.Token()
		for i := 0; dec.More(); i += 2 {
			key, err := dec.Token()
			require.NoError(t, err)
			var value json.RawMessage
			require.NoError(t, dec.Decode(&value))
			require.Less(t, i+1, len(got))
			var plain string
			if json.Unmarshal([]byte(`"`+got[i]+`"`), &plain) == nil {
				require.Equal(t, key, plain)
			}
			require.Equal(t, string(value), got[i+1])
		}
	})
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "1": 0, "[]": 1, `{"a":[{}],"b":[]}`: 3, `"[[["`: 0, `["\"[["]`: 1, "[][]": 1} {
		require.Equal(t, want, jsonwalk.Depth(text), text)
		require.Equal(t, want, jsonwalk.Depth([]byte(text)), text)
	}
}

func TestObjectsAndArrays(t *testing.T) {
	t.Parallel()
	walk := func(text string) (seen []string, err error) {
		dec := json.NewDecoder(strings.NewReader(text))
		err = jsonwalk.Object(dec, func(name string) error {
			seen = append(seen, name)
			if name == "stop" {
				return errors.New("stopped")
			}
			return jsonwalk.Array(dec, func() error {
				var n int
				seen = append(seen, "item")
				return dec.Decode(&n)
			})
		})
		return seen, err
	}
	seen, err := walk(`{"a": [1, 2], "b": [], "a": [3]}`)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "item", "item", "b", "a", "item"}, seen)
	_, err = walk(`{"a": [], "stop": []}`)
	require.EqualError(t, err, "stopped")
	_, err = walk("")
	require.Equal(t, io.EOF, err)
	_, err = walk(`{"a": [1`)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	var typ *json.UnmarshalTypeError
	_, err = walk(`[1]`)
	require.ErrorAs(t, err, &typ)
	require.Nil(t, typ.Type)
	_, err = walk(`{"a": 3}`)
	require.ErrorAs(t, err, &typ)
	require.Equal(t, "3", typ.Value)
}

// One member is read in parts and the others are decoded, in any order.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"list":[1,2],"name":"n"}`, `{"name":"n","list":[1,2]}`} {
		dec := json.NewDecoder(strings.NewReader(text))
		var rest struct {
			Name string
			List []int
		}
		sum := 0
		err := jsonwalk.Split(dec, "list", func() error {
			return jsonwalk.Array(dec, func() error {
				var n int
				err := dec.Decode(&n)
				sum += n
				return err
			})
		}, &rest)
		require.NoError(t, err)
		require.Equal(t, "n", rest.Name)
		require.Nil(t, rest.List)
		require.Equal(t, 3, sum)
	}
	require.Error(t, jsonwalk.Split(json.NewDecoder(strings.NewReader(`{"name":1`)), "list", nil, &struct{}{}))
}

func TestEncode(t *testing.T) {
	t.Parallel()
	raw, err := jsonwalk.Encode(map[string]string{"a": "<&>\n\u2028"})
	require.NoError(t, err)
	require.Equal(t, `{"a":"<&>\n\u2028"}`, string(raw))
	_, err = jsonwalk.Encode(func() {})
	require.Error(t, err)
}
