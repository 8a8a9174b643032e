//go:build unix

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"waza/cmd/waza/migrating"
	"waza/runner/proc/proctest"
)

// migratingDoc returns docs/migrating.md.
func migratingDoc(t *testing.T) string { return readText(t, "migrating.md") }

// The commands of the afternoon work as described, in a repository of the other tool.
func TestMigratingAfternoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project, err := txtar.ParseFile("testdata/migrating.txtar")
	require.NoError(t, err)
	for _, f := range project.Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	blocks := regexp.MustCompile("(?s) *```sh[^\n]*\n(.*?)```").FindAllStringSubmatch(migratingDoc(t), -1)
	require.Len(t, blocks, 6)
	proctest.DependOnWaza(t)
	env := proctest.Environment(t, "NO_COLOR=1")
	var all strings.Builder
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			cmd := exec.Command("sh", "-e", "-c", line)
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s\n%s", line, out)
			all.WriteString("$ " + line + "\n" + string(out))
		}
	}
	text := all.String()
	for _, want := range []string{
		`1 suite is valid`, `(?m)^greeter: ready$`, `results/2025-10-09\.json: run 20251009-`,
		`B against A: 0 regressed`, `"overall_score": `,
	} {
		require.Regexp(t, want, text)
	}
	require.NotContains(t, text, "unknown")
	require.FileExists(t, filepath.Join(dir, "results.json"))
}

// tableRows returns the cells of the table below a heading.
func tableRows(t *testing.T, doc, heading string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "\n## "+heading+"\n")
	require.True(t, ok, heading)
	rest, _, _ = strings.Cut(rest, "\n## ")
	var rows [][]string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 3)
	return rows[2:]
}

// helpOf returns the help of a command; ok reports whether the command exists.
func helpOf(t *testing.T, command string) (help string, ok bool) {
	t.Helper()
	help, code := waza(t, proctest.Environment(t), append(strings.Fields(command)[1:], "--help")...)
	return help, code == 0 && strings.HasPrefix(help, command+":")
}

// Each command and flag of the page exists, and those of the other tool work or print the
// replacement.
func TestMigratingCommands(t *testing.T) {
	t.Parallel()
	doc := migratingDoc(t)
	for _, row := range tableRows(t, doc, "Commands") {
		theirs, ours := strings.Trim(row[0], "`"), strings.Trim(row[1], "`")
		_, ok := helpOf(t, ours)
		require.True(t, ok, "%s does not exist", ours)
		if theirs == ours {
			continue
		}
		name := strings.Join(strings.Fields(theirs)[:2], " ")
		_, exists := helpOf(t, name)
		_, points := migrating.Command(name)
		require.True(t, exists || points || migrating.Alias(name) != "", "%s neither exists nor has a pointer", name)
	}
	help, ok := helpOf(t, "waza run")
	require.True(t, ok)
	for _, row := range tableRows(t, doc, "Flags of run") {
		theirs, ours := strings.Trim(row[0], "`"), strings.Trim(row[1], "`")
		if strings.HasPrefix(ours, "--") {
			require.Regexp(t, "  "+ours+"[ ,]", help, "waza run has no %s", ours)
		} else {
			_, ok := helpOf(t, ours)
			require.True(t, ok, ours)
		}
		_, points := migrating.Flag("waza run", strings.TrimPrefix(theirs, "--"))
		require.True(t, points || strings.Contains(help, "  "+theirs+" ") || strings.Contains(help, "  "+theirs+","),
			"%s neither exists nor has a pointer", theirs)
	}
}

// Each key of the page is a valid key of suites.
func TestMigratingKeys(t *testing.T) {
	t.Parallel()
	reference := readText(t, "suite.md") + readText(t, "graders.md")
	for _, row := range tableRows(t, migratingDoc(t), "Keys") {
		key := row[0]
		require.True(t, strings.Contains(reference, "\n| "+key+" |") || strings.Contains(reference, "\n- "+key+": "), "no suite has %s", key)
		if strings.HasPrefix(row[1], "no effect") {
			require.Contains(t, reference, "\n- "+key+": No effect", key)
		} else {
			require.Contains(t, reference, "\n| "+key+" |", "%s has an effect", key)
		}
	}
}
