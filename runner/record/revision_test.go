package record_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// Records of older versions have no name of the baseline's side: the agent had no skills.
func TestArm(t *testing.T) {
	t.Parallel()
	var older record.BaselineResult
	require.NoError(t, json.Unmarshal([]byte(`{"measured":true}`), &older))
	require.Equal(t, "without skills", older.Arm.String())
	require.Equal(t, "without", older.Arm.Short())
	require.False(t, older.Arm.HasSkills())
	require.Equal(t, older.Arm, (*record.BaselineRef)(nil).Arm())
	require.Equal(t, older.Arm, (&record.BaselineRef{}).Arm())

	arm := (&record.BaselineRef{Against: &record.Revision{Name: "v1.2"}}).Arm()
	require.Equal(t, "with skills at v1.2", arm.String())
	require.Equal(t, arm.String(), arm.Short())
	require.True(t, arm.HasSkills())
	require.Equal(t, "with skills at "+strings.Repeat("f", 39)+"…", (&record.Revision{Name: strings.Repeat("f", 64)}).Arm().String())
}
