package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Links between the pages lead to pages and headings that exist.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	pages = append(pages, filepath.Join(repositoryRoot, "README.md"), filepath.Join(repositoryRoot, "CONTRIBUTING.md"))
	anchors := map[string][]string{} // by page
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]+))?\)`).FindAllStringSubmatch(string(text), -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if m[2] == "" || !strings.HasSuffix(target, ".md") {
				continue
			}
			if anchors[target] == nil {
				content, _ := os.ReadFile(target)
				anchors[target] = headings(string(content))
			}
			if !slices.Contains(anchors[target], m[2]) {
				t.Errorf("%s: %s has no heading #%s", page, target, m[2])
			}
		}
	}
}

// headings returns the anchors of a page as GitHub makes them.
func headings(page string) (anchors []string) {
	for _, b := range slices.Backward(codeBlocks(page)) {
		page = page[:b.from] + page[b.to:]
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(anchor, " ", "-"))
	}
	return anchors
}

// Links of the pages about fleets lead to files.
func TestDeployLinks(t *testing.T) {
	t.Parallel()
	links := 0
	for _, page := range []string{"deploy/README.md", "fleet-security.md", "scale.md", "fleet.md"} {
		page = filepath.FromSlash(page)
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(string(text), -1) {
			require.FileExists(t, filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1])), page)
			links++
		}
	}
	require.Greater(t, links, 10)
}
