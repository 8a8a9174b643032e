package sandbox_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	m := &sandbox.Machine{Namespaces: errors.New("no user namespaces"), Seatbelt: errors.New("this system is not macOS")}
	require.Equal(t, "landlock: available\nnamespaces: no user namespaces\nseatbelt: this system is not macOS", m.Describe())
}
