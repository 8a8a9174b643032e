package skill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waza/eval/skill"
)

const example = "---\nname: deploy\ndescription: >-\n  Deploys apps. USE FOR: deploy my app, \"publish website\".\n" +
	"  DO NOT USE FOR: billing; refunds. INVOKES: az.\nlicense: MIT\n---\n\n# Deploy\n\n1. Build\n2) " +
	"Push\n\n```sh\n# no heading\n```\n\n## References ##\n"

func TestParse(t *testing.T) {
	t.Parallel()
	s := skill.Parse("/skills/deploy/SKILL.md", []byte("\uFEFF"+strings.ReplaceAll(example, "\n", "\r\n")))
	require.NoError(t, s.Problem)
	require.Equal(t, "deploy", s.Name)
	require.Equal(t, "/skills/deploy", s.Dir)
	require.Equal(t, []string{"name", "description", "license"}, s.Keys())
	require.Equal(t, []int{2, 3, 6, 1}, []int{s.Line("name"), s.Line("description"), s.Line("license"), s.Line("metadata")})
	require.Equal(t, 8, s.BodyLine)
	require.Equal(t, []skill.Section{{Title: "Deploy", Level: 1, Line: 9}, {Title: "References", Level: 2, Line: 18}}, s.Sections())
	o := skill.OutlineOf(s.Body)
	require.Equal(t, []skill.Block{{Language: "sh", Line: 7, Lines: 1}}, o.Blocks)
	require.Equal(t, []int{4, 5}, o.Steps)
	use, avoid := s.Phrases()
	require.Equal(t, []string{"deploy my app", "publish website"}, use)
	require.Equal(t, []string{"billing", "refunds"}, avoid)
	require.Equal(t, "Deploys apps.", s.Summary())
}

func TestPhrases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		description string
		use, avoid  []string
	}{
		{"Edits PDFs.", nil, nil},
		{"x use for: a, b", []string{"a", "b"}, nil},
		{"Do Not Use For: c. Use For: a", []string{"a"}, []string{"c"}},
		{"USE FOR: a, b. It needs Docker, too.", []string{"a", "b"}, nil},
		{"WHEN: a e.g. b; NOT FOR: c", []string{"a e.g. b"}, []string{"c"}},
		{"WHENEVER: a. reuse for: b", nil, nil},
		{"USE FOR:", nil, nil},
	} {
		s := skill.Parse("", []byte("---\nname: x\ndescription: '"+c.description+"'\n---\n"))
		require.NoError(t, s.Problem)
		use, avoid := s.Phrases()
		require.Equal(t, c.use, use, c.description)
		require.Equal(t, c.avoid, avoid, c.description)
	}
}

func TestFaultyFrontmatter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "does not start with frontmatter"},
		{"# Title\n", "does not start with frontmatter"},
		{"---\nname: x\n", "has no end"},
		{"---\n---\n", "is empty"},
		{"---\n- a\n---\n", "must be a mapping of keys"},
		{"---\na: [\n---\n", "is not valid YAML"},
		{"---\n" + strings.Repeat("- ", 200_000) + "\n---\n", "is too large"},
	} {
		s := skill.Parse("", []byte(c.text))
		require.ErrorContains(t, s.Problem, c.want)
		require.Empty(t, s.Name)
		require.Positive(t, s.Line("name"))
	}
	s := skill.Parse("", []byte("---\nname: [a]\ndescription:\n---\nbody"))
	require.NoError(t, s.Problem)
	require.Empty(t, s.Name+s.Description)
	require.Equal(t, "body", s.Body)
}

func TestReadRefusesHugeAndOddFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := skill.Read(dir)
	require.ErrorContains(t, err, "SKILL.md: no such file")
	file := filepath.Join(dir, skill.FileName)
	require.NoError(t, os.WriteFile(file, make([]byte, skill.MaxBytes+1), 0o666))
	_, err = skill.Read(dir)
	require.ErrorContains(t, err, "too large")
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	}
	write(".git/HEAD", "")
	write("skills/deploy/SKILL.md", example)
	write("skills/other/SKILL.md", "---\nname: renamed\n---\n")
	write("special/place/here/SKILL.md", "---\nname: here\n---\n")
	write("node_modules/x/SKILL.md", "---\nname: x\n---\n")
	write(".hidden/y/SKILL.md", "---\nname: y\n---\n")
	write("evals/deploy/eval.yaml", "")
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, c := range []struct{ arg, from, want string }{
		{"deploy", ".", "skills/deploy"},
		{"deploy", "evals/deploy", "skills/deploy"},
		{"renamed", "special", "skills/other"},
		{"here", ".", "special/place/here"},
		{"here", "special/place/here", "special/place/here"},
		{".", "skills/deploy", "skills/deploy"},
		{"skills/deploy/SKILL.md", ".", "skills/deploy"},
		{"./skills/deploy", ".", "skills/deploy"},
		{at("skills/other"), "special", "skills/other"},
	} {
		got, err := skill.Find(c.arg, at(c.from))
		require.NoError(t, err, c.arg)
		require.Equal(t, at(c.want), got, c.arg)
	}
	for _, arg := range []string{"x", "y", "./deploy", "evals/deploy"} {
		_, err := skill.Find(arg, dir)
		var missing *skill.NotFoundError
		require.ErrorAs(t, err, &missing, arg)
	}
	require.Equal(t, []string{at("skills/deploy"), at("skills/other"), at("special/place/here")}, skill.Below(dir))
	found, err := skill.Find("here", at("skills"), at("special"))
	require.NoError(t, err)
	require.Equal(t, at("special/place/here"), found)
}

// FuzzParse asserts that head and body are parts of the text, that lines are those of the file,
// and that phrases are words of the description.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("---\nname: &a x\ndescription: *a\n---"))
	f.Add([]byte("---\na: [\n---\n~~~\n```\n"))
	f.Add([]byte("---\n\r\r0:\n---"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := skill.Parse("", data)
		if !utf8.ValidString(s.Text) || !strings.HasSuffix(s.Text, s.Body) || !strings.Contains(s.Text, s.HeadText) {
			t.Fatalf("%q", s.Text)
		}
		if before := strings.TrimSuffix(s.Text, s.Body); strings.Count(before, "\n") != s.BodyLine-1 && s.Body != "" {
			t.Fatalf("the body starts in line %d: %q", s.BodyLine, s.Text)
		}
		lines := strings.Count(s.Text, "\n") + 1
		for _, key := range append(s.Keys(), "absent") {
			if line := s.Line(key); line < 1 || line > lines {
				t.Fatalf("%q is in line %d of %d", key, line, lines)
			}
		}
		for _, section := range s.Sections() {
			if section.Line < s.BodyLine || section.Line > lines || section.Level < 1 || section.Level > 6 {
				t.Fatalf("%+v of %d lines", section, lines)
			}
		}
		words := strings.Join(strings.Fields(s.Description), " ")
		use, avoid := s.Phrases()
		for _, phrase := range append(use, avoid...) {
			if phrase == "" || !strings.Contains(words, phrase) {
				t.Fatalf("%q is not in %q", phrase, words)
			}
		}
	})
}
