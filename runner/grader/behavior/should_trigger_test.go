package behavior

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader/internal/gradertest"
)

// Trigger tests grade their own skill, even if the suite is about another one.
func TestForTrigger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		skill  string
		should bool
		used   []string
		passed bool
	}{
		{"mine", true, []string{"other", "mine"}, true},
		{"mine", true, []string{"other"}, false},
		{"mine", false, []string{"other"}, true},
		{"mine", false, []string{"mine"}, false},
		{"", true, []string{"any"}, true},
		{"", false, nil, true},
	} {
		r, err := ForTrigger(c.skill, c.should).Grade(t.Context(), gradertest.Subject("", gradertest.Using(c.used...)))
		require.NoError(t, err)
		require.Equal(t, c.passed, r.Passed, "%+v", c)
	}
}
