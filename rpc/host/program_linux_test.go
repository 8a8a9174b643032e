package host

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReleaseProgram(t *testing.T) {
	mapped := func() int {
		text, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(text)
		require.NotNil(t, m)
		kib, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		return kib
	}
	before := mapped()
	ReleaseProgram()
	require.Less(t, mapped(), before)
}
