package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/registry"
)

// With does not change the registry that it extends, even if several registries extend the same
// one.
func TestRegistryWith(t *testing.T) {
	t.Parallel()
	one := eval.Kind{Name: "one", Aliases: []string{"uno"}}
	base := registry.New(one)
	two := base.With(eval.Kind{Name: "two"}, eval.Kind{Name: "three"})
	other := two.With(eval.Kind{Name: "four"})
	another := two.With(eval.Kind{Name: "one", Summary: "another"}, eval.Kind{Name: "five"})
	require.Equal(t, []string{"one"}, base.Names())
	require.Equal(t, []string{"one", "two", "three"}, two.Names())
	require.Equal(t, []string{"one", "two", "three", "four"}, other.Names())
	require.Equal(t, []string{"one", "two", "three", "five"}, another.Names())

	k, ok := other.Lookup("UNO")
	require.True(t, ok)
	require.Empty(t, k.Summary)
	_, ok = base.Lookup("two")
	require.False(t, ok)
	k, ok = another.Lookup("One")
	require.True(t, ok)
	require.Equal(t, "another", k.Summary)

	another.All()[0].Name = "changed"
	require.Equal(t, "one", another.Kinds()[0].Name)
	require.Empty(t, new(registry.Registry[eval.Kind]).Names())
}
