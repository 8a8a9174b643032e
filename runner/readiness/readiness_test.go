package readiness_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/skill"
	"waza/runner/readiness"
)

const long = "It deploys web applications to a server, checks that they answer afterwards, and rolls a release " +
	"back where they do not answer. It also writes a log of what it did. "

func TestLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		description, body string
		want              readiness.Level
		fix               readiness.Fix
	}{
		{"", "", readiness.Low, readiness.FixLength},
		{"Short. USE FOR: a. DO NOT USE FOR: b. INVOKES: c.", "", readiness.Low, readiness.FixLength},
		{long, "", readiness.Low, readiness.FixTriggers},
		{long + "Use For: a.", "", readiness.Medium, readiness.FixAntiTriggers},
		{long + "DO NOT USE FOR: a.", "", readiness.MediumHigh, readiness.FixRouting},
		{long, "WHEN: a. NOT FOR: b. INVOKES: c.", readiness.High, readiness.FixNothing},
		{long + "USE FOR: a. NOT FOR: b. For single operations: c.", "", readiness.High, readiness.FixNothing},
		{strings.Repeat("x", 1025), "USE FOR: a.", readiness.Invalid, readiness.FixAntiTriggers},
	} {
		s := skill.Parse("", []byte("---\nname: x\ndescription: \""+c.description+"\"\n---\n"+c.body))
		require.NoError(t, s.Problem)
		require.Equal(t, c.want, readiness.LevelOf(s), c.description)
		require.Equal(t, c.fix, readiness.FirstFix(s), c.description)
	}
	for text, want := range map[string]readiness.Level{
		"medium-high": readiness.MediumHigh, "Medium High": readiness.MediumHigh, "HIGH": readiness.High,
		"low": readiness.Low,
	} {
		got, err := readiness.ParseLevel(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := readiness.ParseLevel("hihg")
	require.ErrorContains(t, err, "did you mean high?")
}

// Each check of the specification fails for its fault, with the line.
func TestSpecification(t *testing.T) {
	t.Parallel()
	const well = "name: x\ndescription: It does.\n"
	for _, c := range []struct {
		head, check string
		line        int
	}{
		{"name: x\n", "spec-frontmatter", 1},
		{"a: [\n", "spec-frontmatter", 2},
		{well + "type: utility\n", "spec-allowed-fields", 4},
		{"description: a\nname: X y\n", "spec-name", 3},
		{"description: a\nname: " + strings.Repeat("x", 65) + "\n", "spec-name", 3},
		{"description: a\nname: x--y\n", "spec-name", 3},
		{"name: y\ndescription: a\n", "spec-dir-match", 2},
		{"name: x\ndescription: ' '\n", "spec-description", 3},
		{"name: x\ndescription: " + strings.Repeat("x", 1025) + "\n", "spec-description", 3},
		{well + "metadata: {a: [\"<b>\"]}\n", "spec-security", 4},
		{"description: a\nname: claude-x\n", "spec-security", 3},
		{well + "compatibility: {a: 1}\n", "spec-compatibility", 4},
		{well + "compatibility: " + strings.Repeat("x", 501) + "\n", "spec-compatibility", 4},
	} {
		dir := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.Mkdir(dir, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, skill.FileName), []byte("---\n"+c.head+"---\n"), 0o666))
		r, err := readiness.Check(dir, readiness.Options{})
		require.NoError(t, err)
		found := false
		for _, f := range r.Spec {
			if f.Name == c.check {
				found = true
				require.False(t, f.Passed, "%s: %s", c.head, c.check)
				require.Equal(t, c.line, f.Line, "%s: %s", c.head, c.check)
				require.NotEmpty(t, f.Summary)
			}
		}
		require.True(t, found)
		require.False(t, r.Ready)
		require.NotEmpty(t, r.Next)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.Mkdir(dir, 0o777))
	text := "---\nname: x\ndescription: a\n---\n[a](https://example.com/a#b) [b](https://example.com/a) " +
		"<https://no.link>\n[c](http://example.com/(c))\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, skill.FileName), []byte(text), 0o666))
	var asked []string
	r, err := readiness.Check(dir, readiness.Options{URLs: func(urls []string) map[string]string {
		asked = urls
		return map[string]string{"https://example.com/a": "gone"}
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"https://example.com/a", "http://example.com/(c)"}, asked)
	require.Len(t, r.Links.Dead, 2)
	require.Equal(t, readiness.Link{Source: skill.FileName, Line: 5, Target: "https://example.com/a#b", Reason: "gone"}, r.Links.Dead[0])
	require.Equal(t, []int{1, 3}, []int{r.Links.Valid, r.Links.Total})
	require.False(t, r.Links.Passed)
}

// FuzzCheck asserts that no SKILL.md makes a check panic, and that findings have a place.
func FuzzCheck(f *testing.F) {
	f.Add([]byte("---\nname: x\ndescription: a\n---\n[a](b) [c]( <d e> \"f\")\n[g]: h\n|tool|\n"))
	f.Add([]byte("---\nname: x\n---")) // its missing headings used to have the line after the last
	f.Add([]byte("---\nname: &a\n  x: *a\ncompatibility: {a: *a}\n---\n[](%zz) [a](//x)"))
	dir := filepath.Join(f.TempDir(), "x")
	if err := os.Mkdir(dir, 0o777); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, skill.FileName), data, 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := readiness.Check(dir, readiness.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, list := range [][]readiness.Finding{r.Spec, r.Advisory} {
			for _, f := range list {
				if f.Line > lines || f.Summary == "" || (f.Status == "error") == f.Passed {
					t.Fatalf("%+v of %d lines", f, lines)
				}
			}
		}
		if r.Links.Valid < 0 || r.Links.Passed != (r.Links.Valid == r.Links.Total) {
			t.Fatalf("%+v", r.Links)
		}
	})
}

// The examples in messages are valid YAML: a colon and a space end a text without quotes.
func TestExamplesAreYAML(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, skill.FileName), []byte("---\nname: x\ndescription: y\n---\nz\n"), 0o644))
	r, err := readiness.Check(dir, readiness.Options{})
	require.NoError(t, err)
	examples := 0
	for _, i := range r.Compliance.Issues {
		if _, example, ok := strings.Cut(i.Message, "for example "); ok {
			examples++
			s := skill.Parse("", []byte("---\nname: x\n"+example+"\n---\n"))
			require.NoError(t, s.Problem, i.Message)
			require.Contains(t, s.Description, ": ")
		}
	}
	require.Equal(t, 3, examples)
}

// A description that cannot be read is not said to lack anything.
func TestBrokenFrontmatter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, skill.FileName),
		[]byte("---\nname: x\ndescription: Deploys. USE FOR: apps\n---\nz\n"), 0o644))
	r, err := readiness.Check(dir, readiness.Options{})
	require.NoError(t, err)
	const fault = `the frontmatter is not valid YAML: mapping values are not allowed in this context; quote a text that contains ": "`
	require.Equal(t, []readiness.Issue{{Severity: "error", Message: "The description cannot be read: line 3: " + fault}}, r.Compliance.Issues)
	require.Equal(t, "spec-frontmatter: "+fault, r.Next[0])
	require.Len(t, r.Next, 2)
}
