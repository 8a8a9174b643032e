package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/serve.md lists exactly the events that admins receive.
func TestSystemEventsAreDocumented(t *testing.T) {
	t.Parallel()
	sent := map[string]bool{}
	attribute := regexp.MustCompile(`(?:"event"|board\.EventKey), "([a-z_]+)"`)
	for _, dir := range []string{"rpc/gateway", "runner", "cmd/waza/serve"} {
		err := filepath.WalkDir(filepath.Join(repositoryRoot, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, found := range attribute.FindAllStringSubmatch(string(content), -1) {
				sent[found[1]] = true
			}
			return err
		})
		require.NoError(t, err)
	}
	doc, err := os.ReadFile("serve.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(doc), "| event | meaning |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(table, -1) {
		documented[row[1]] = true
	}
	require.Equal(t, documented, sent)
}
