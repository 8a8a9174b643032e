package scaffold

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// FuzzQuote checks that YAML reads every text as it was, and lists of texts, too. Once, an answer
// of a model with an unusual control character made a suite that no parser accepted.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a: b # c", "\"\\\n\t\r", "\x00\x1f\x7f", "\u0080\u0085\u009f\u00a0",
		"\u2028\ufeff\uffff\ufffe", "\xff", "😀", "yes", "- x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.ToValidUTF8(text, "\uFFFD")
		one, err := quote(text)
		require.NoError(t, err)
		list, err := quoteAll([]string{text, "x"})
		require.NoError(t, err)
		var got struct {
			One  string
			List []string
		}
		require.NoError(t, yaml.Unmarshal([]byte("one: "+one+"\nlist: "+list+"\n"), &got), "%q", text)
		require.Equal(t, want, got.One)
		require.Equal(t, []string{want, "x"}, got.List)
	})
}

// Prompts from a skill or a model contain no template variables. Three braces once became two.
func TestPromptsHaveNoVariables(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"use {{x}}", "{{{x}}}", "{{{{ x", "{ {{{"} {
		require.NotContains(t, plain([]string{text})[0], "{{", text)
		answer, err := json.Marshal(map[string]any{"tasks": []any{map[string]any{"prompt": text}}})
		require.NoError(t, err)
		list, err := parseProposals(string(answer))
		require.NoError(t, err)
		require.NotContains(t, list[0].Prompt, "{{", text)
	}
	require.Equal(t, []string{"a b", "c"}, plain([]string{" a\x00\n b ", "a b", "", "c", "\xff"}))
}

// An answer can have text around its JSON. Answers without a usable task are errors.
func TestParseProposals(t *testing.T) {
	t.Parallel()
	list, err := parseProposals("Here:\n```json\n" +
		`{"tasks":[{"prompt":" one ","contains":["A","A",""]},{"prompt":" "},{"prompt":"two"}]}` + "\n```")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "one", list[0].Prompt)
	require.Equal(t, []string{"A"}, list[0].Contains)
	for answer, want := range map[string]string{
		"no idea": "no JSON object", "}{": "no JSON object", `{"tasks":1}`: "not the expected JSON object",
		`{"tasks":[{}]}`: "no task with a prompt",
	} {
		_, err := parseProposals(answer)
		require.ErrorContains(t, err, want, answer)
	}

	taken := map[string]bool{}
	for _, want := range []string{"a-task", "a-task-2", "task"} {
		name := "A  task!"
		if want == "task" {
			name = "Ü"
		}
		require.Equal(t, want, proposal{Name: name, Prompt: "x"}.task(taken).ID)
	}
}

// Files of proposals stay below the fixtures of their task.
func TestAttackProposedFiles(t *testing.T) {
	t.Parallel()
	var p proposal
	require.NoError(t, json.Unmarshal([]byte(`{"files":[{"path":"ok/a.txt"},{"path":"../up"},{"path":"/etc/x"},{"path":"a\\..\\..\\b"},{"path":"."},{"path":""},
		{"path":".git/config"},{"path":"a/.git/hooks"},{"path":"x\u0000y"},{"path":"ok/./a.txt"},{"path":"C:/x"},{"path":"sub\\b.txt"}]}`), &p))
	p.Files = append(p.Files, p.Files[0])
	p.Files[len(p.Files)-1].Path, p.Files[len(p.Files)-1].Content = "large", strings.Repeat("x", maxFile+1)
	var s scaffold
	require.Equal(t, []string{"t/ok/a.txt", "t/sub/b.txt"}, p.fixtures(&s, layout{dir: "evals/x"}, "t"))
	require.Equal(t, "evals/x/fixtures/t/ok/a.txt", s.items[0].path)
}

// A name made from any text is valid, or empty.
func TestNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := toName(rapid.String().Draw(t, "text"))
		if name != "" && checkName(name) != nil {
			t.Fatalf("%q is invalid", name)
		}
	})
	require.Equal(t, "code-explainer-2", toName(" Code_Explainer (2) "))
	require.Equal(t, "Code Explainer", title("code-explainer"))
	for _, name := range []string{"", "-a", "a--b", "A", "a_b", "ä", strings.Repeat("a", mostName+1)} {
		require.Error(t, checkName(name), name)
	}
}

// A scaffold keeps existing files, reports what it added, and writes nothing through links that
// lead out of its directory.
func TestWriteScaffold(t *testing.T) {
	t.Parallel()
	dir, away := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kept.txt"), []byte("mine"), 0o600))
	s := &scaffold{dir: dir}
	s.directory("evals")
	s.file("evals/a/eval.yaml", "name: a\n")
	s.file("kept.txt", "other")
	require.Equal(t, []string{filepath.Join(dir, "kept.txt")}, s.existing())
	done, err := s.write(t.Context())
	require.NoError(t, err)
	require.Equal(t, []written{{"evals/", true}, {"evals/a/eval.yaml", true}, {"kept.txt", false}}, done)
	require.Equal(t, 2, countAdded(done))
	text, err := os.ReadFile(filepath.Join(dir, "kept.txt"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))

	if os.Symlink(away, filepath.Join(dir, "link")) != nil {
		t.Skip("no symbolic links here")
	}
	for _, s := range []*scaffold{
		{dir: dir, items: []item{{path: "link/x.txt"}}},
		{dir: dir, items: []item{{path: "link/sub/", isDir: true}}},
	} {
		_, err := s.write(t.Context())
		require.ErrorContains(t, err, "outside the target directory")
	}
	left, err := os.ReadDir(away)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = (&scaffold{dir: dir, items: []item{{path: "kept.txt/", isDir: true}}}).write(t.Context())
	require.ErrorContains(t, err, "is a file, expected a directory")
	_, err = (&scaffold{dir: dir, items: []item{{path: "evals"}}}).write(t.Context())
	require.ErrorContains(t, err, "is a directory, expected a file")
}
