package help_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/help"
)

// The help of every flag without a value said "default: off", also of those that are on.
func TestDefaultsOfFlags(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]cli.Flag{
		"off":          &cli.BoolFlag{Name: "a"},
		"on without b": &cli.BoolFlag{Name: "a", Value: true, DefaultText: "on without b"},
		"as in c":      &cli.BoolFlag{Name: "a", DefaultText: "as in c"},
		"3":            &cli.IntFlag{Name: "a", Value: 3},
	} {
		require.Equal(t, want, help.DescribeFlag(f).Default)
	}
}
