package fleetaddr

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/fleet.md lists exactly the parameters of addresses.
func TestParametersAreDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	var listed, known []string
	for line := range strings.Lines(string(document)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[1], "`") {
			for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(cells[1], -1) {
				listed = append(listed, name[1])
			}
		}
	}
	for _, p := range parameters {
		known = append(known, p.name)
		require.True(t, p.servers || p.embedded, p.name)
	}
	require.ElementsMatch(t, known, listed)
}
