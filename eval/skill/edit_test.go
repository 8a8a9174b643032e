package skill_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/skill"
)

func TestWithDescription(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"---\nname: x\ndescription: old\n---\nbody\n", "---\nname: x\ndescription: >-\n  new: one, \"two\" # three\n---\nbody\n"},
		{
			"---\ndescription: |\n  old\n\n  older\n\n# about the name\nname: x\n---\nbody",
			"---\ndescription: >-\n  new: one, \"two\" # three\n\n# about the name\nname: x\n---\nbody",
		},
		{"---\nname: x\n---\n", "---\nname: x\ndescription: >-\n  new: one, \"two\" # three\n---\n"},
		{
			"\uFEFF---\r\nname: x\r\ndescription: old\r\n---\r\nb",
			"\uFEFF---\r\nname: x\r\ndescription: >-\r\n  new: one, \"two\" # three\r\n---\r\nb",
		},
	} {
		got, err := skill.WithDescription([]byte(c.text), " new: one,\n\"two\" # three ")
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, string(got))
	}
	for text, want := range map[string]string{
		"body":                                  "does not start with frontmatter",
		"---\n{name: x, description: y}\n---\n": "one key per line",
	} {
		_, err := skill.WithDescription([]byte(text), "new")
		require.ErrorContains(t, err, want)
	}
	_, err := skill.WithDescription([]byte("---\nname: x\n---\n"), " ")
	require.ErrorContains(t, err, "empty")
}

// FuzzWithDescription asserts that replacing the description of a skill changes nothing else.
func FuzzWithDescription(f *testing.F) {
	f.Add([]byte(example), "- new: #x")
	f.Add([]byte("---\nname: x\n? description\n: old\n---\n"), "new")
	f.Fuzz(func(t *testing.T, data []byte, description string) {
		out, err := skill.WithDescription(data, description)
		if err != nil {
			return
		}
		before, after := skill.Parse("", data), skill.Parse("", out)
		if after.Problem != nil || after.Description != strings.Join(strings.Fields(description), " ") ||
			after.Body != before.Body || after.Name != before.Name {
			t.Fatalf("%q with %q: %q", data, description, out)
		}
	})
}
