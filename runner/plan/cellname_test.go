package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// The name of a cell names the model that it runs with.
func TestNameWithModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, own, model, want string
		replaced               bool
	}{
		{"base, m1", "m1", "m2", "base, m2", true},
		{"m1", "m1", "m2", "m2", true},
		{"base, m1", "m1", "m1", "base, m1", false},
		{"m10", "m1", "m2", "m10", false},
		{"base", "", "m2", "base", false},
	} {
		got, replaced := nameWith(eval.Variant{Name: c.name, Model: c.own}, c.model)
		require.Equal(t, c.want, got)
		require.Equal(t, c.replaced, replaced, c.name)
	}
}
