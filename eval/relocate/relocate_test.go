package relocate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval/relocate"
)

type inner struct {
	File string `path:"file"`
	Text string
}

type options struct {
	Command []string `path:"words"`
}

type outer struct {
	*inner
	Others []*inner
	Keys   map[string]string `path:"keys"`
	Tree   map[string]any    `path:"maybe"`
	Left   []inner           `path:"-"`
	Any    any
	Repo   string `path:"repo"`
	Plain  map[string][]int
}

// mapped returns a Copier that adds the type of a text as a prefix.
func mapped() *relocate.Copier {
	as := func(what string) func(string) (string, error) {
		return func(text string) (string, error) {
			if text == "bad" {
				return "", errors.New("a bad path")
			}
			return what + ":" + text, nil
		}
	}
	return &relocate.Copier{File: as("file"), Repo: as("repo"), Maybe: as("maybe"), Words: as("words")}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	shared := &inner{File: "/a", Text: "/a"}
	made := func() outer {
		return outer{
			inner: shared, Others: []*inner{shared, nil, {Text: "/b"}}, Keys: map[string]string{"/k": "/v"},
			Tree: map[string]any{"/x": []any{"/y", 1, map[string]any{"z": "/z"}}}, Left: []inner{{File: "/left"}},
			Any: &options{Command: []string{"sh", "/c"}}, Repo: "/r", Plain: map[string][]int{"/p": {1}},
		}
	}
	from := made()
	c := mapped()
	to, err := relocate.Copy(c, from)
	require.NoError(t, err)
	compare := cmp.AllowUnexported(outer{}, inner{})
	require.Empty(t, cmp.Diff(made(), from, compare), "Copy changed the value itself")
	moved := &inner{File: "file:/a", Text: "/a"}
	require.Empty(t, cmp.Diff(outer{
		inner: shared, Others: []*inner{moved, nil, {Text: "/b"}}, Keys: map[string]string{"file:/k": "/v"},
		Tree: map[string]any{"/x": []any{"maybe:/y", 1, map[string]any{"z": "maybe:/z"}}}, Left: []inner{{File: "/left"}},
		Any: &options{Command: []string{"words:sh", "words:/c"}}, Repo: "repo:/r", Plain: map[string][]int{"/p": {1}},
	}, to, compare), "the unexported pointer is not part of the value")
	require.Same(t, from.Others[2], to.Others[2], "parts without paths are shared")

	again, err := relocate.Copy(c, made())
	require.NoError(t, err)
	require.Same(t, to.Others[0], again.Others[0], "one pointer has one copy")
}

func TestCopyErrors(t *testing.T) {
	t.Parallel()
	_, err := relocate.Copy(mapped(), outer{Others: []*inner{{File: "bad"}}})
	require.EqualError(t, err, "File: a bad path")
	_, err = relocate.Copy(mapped(), struct {
		A string `path:"maybee"`
	}{"x"})
	require.EqualError(t, err, `A: a field has the unknown tag path:"maybee"`)

	type ring struct {
		inner
		Next *ring
		Any  any
	}
	r := &ring{}
	r.Next = r
	_, err = relocate.Copy(mapped(), r)
	require.ErrorContains(t, err, "nested more than")
	deep := any("/x")
	for range 200 {
		deep = []any{deep}
	}
	_, err = relocate.Copy(mapped(), outer{Tree: map[string]any{"x": deep}})
	require.ErrorContains(t, err, "nested more than")
	require.True(t, strings.HasPrefix(err.Error(), "Tree: "), err)
}
