package assist

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// caret marks a position in the texts of testdata.
const caret = "‸"

// vocabulary returns some of the kinds in the schema, with their own options.
func vocabulary() *eval.Vocabulary {
	type textOptions struct {
		Contains   []string `yaml:"contains"`
		RegexMatch []string `yaml:"regex_match"`
	}
	type commandOptions struct {
		Command  string `yaml:"command"`
		PromptAs string `yaml:"prompt_as"`
	}
	type mockOptions struct {
		Mock any `yaml:"mock"`
	}
	return &eval.Vocabulary{
		Graders: []eval.Kind{
			{
				Name: "text", Aliases: []string{"regex", "keyword"}, Summary: "Looks for texts in the output.",
				Options: func() any { return &textOptions{} },
			},
			{Name: "code", Summary: "Evaluates assertions."},
			{Name: "prompt", Aliases: []string{"llm"}, Summary: "Asks a judge."},
		},
		Executors: []eval.Kind{
			{Name: "mock", Summary: "Answers from a script.", Options: func() any { return &mockOptions{} }},
			{Name: "command", Summary: "Runs a program.", Options: func() any { return &commandOptions{} }},
		},
	}
}

// cases runs the cases of the archives below testdata/dir. An archive contains files, which are
// written to a directory, and then cases: "case FILE: TITLE" is the text of a file with a caret
// in it, and the following "want" is the expected answer of ask.
func cases(t *testing.T, dir string, ask func(a *Assistant, d Document, offset int) string) {
	archives, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			require.NoError(t, err)
			w := newWorkspace(t)
			for i := range archive.Files {
				f := &archive.Files[i]
				title, isCase := strings.CutPrefix(f.Name, "case ")
				switch {
				case isCase:
					require.Less(t, i+1, len(archive.Files), "%s: no answer", f.Name)
					file, _, _ := strings.Cut(title, ":")
					got := w.ask(t, file, string(f.Data), ask)
					want := &archive.Files[i+1]
					require.Equal(t, "want", want.Name, "after %s", f.Name)
					if *update {
						want.Data = []byte(got)
					} else if d := cmp.Diff(string(want.Data), got); d != "" {
						t.Errorf("%s: (-want +got)\n%s", f.Name, d)
					}
				case f.Name != "want":
					w.write(t, f.Name, f.Data)
				}
			}
			if *update {
				require.NoError(t, os.WriteFile(name, txtar.Format(archive), 0o644))
			}
		})
	}
}

type workspace struct {
	dir       string
	assistant *Assistant
}

func newWorkspace(t *testing.T) *workspace {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &workspace{dir: dir, assistant: New(Options{Vocabulary: vocabulary()})}
}

func (w *workspace) write(t *testing.T, name string, data []byte) {
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, data, 0o644))
}

// ask asks a question about a text with a caret. The suite is loaded from the disk, as if the
// user had saved it some time ago.
func (w *workspace) ask(t *testing.T, file, text string, ask func(a *Assistant, d Document, offset int) string) string {
	before, after, found := strings.Cut(strings.TrimSuffix(text, "\n"), caret)
	if !found {
		before, after = text, ""
	}
	d := Document{Path: filepath.Join(w.dir, filepath.FromSlash(file)), Text: before + after}
	suite, _, err := eval.Load(filepath.Join(w.dir, "eval.yaml"), eval.Options{Vocabulary: w.assistant.vocabulary})
	if err == nil {
		d.Suite = suite
	}
	return strings.ReplaceAll(ask(w.assistant, d, len(before)), w.dir, "$DIR")
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	cases(t, "complete", func(a *Assistant, d Document, offset int) string {
		c := a.Complete(d, offset, true)
		var b strings.Builder
		if old := d.Text[c.Range.Start:c.Range.End]; old != "" {
			fmt.Fprintf(&b, "(replaces %q)\n", old)
		}
		for _, it := range c.Items {
			b.WriteString(it.Label)
			if it.Insert != it.Label {
				fmt.Fprintf(&b, " %q", it.Insert)
			}
			if it.Detail != "" {
				fmt.Fprintf(&b, " (%s)", it.Detail)
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}

func TestHover(t *testing.T) {
	t.Parallel()
	cases(t, "hover", func(a *Assistant, d Document, offset int) string {
		e := a.Hover(d, offset)
		if e == nil {
			return "nothing\n"
		}
		return fmt.Sprintf("(of %q)\n%s\n", d.Text[e.Range.Start:e.Range.End], e.Markdown)
	})
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	cases(t, "definition", func(a *Assistant, d Document, offset int) string {
		def := a.Define(d, offset)
		if def == nil {
			return "nothing\n"
		}
		var b strings.Builder
		fmt.Fprintf(&b, "(of %q)\n", d.Text[def.Range.Start:def.Range.End])
		for _, to := range def.Targets {
			fmt.Fprintf(&b, "%s:%d\n", to.Path, to.Line+1)
		}
		return b.String()
	})
}

func TestLinks(t *testing.T) {
	t.Parallel()
	cases(t, "links", func(a *Assistant, d Document, _ int) string {
		var b strings.Builder
		for _, l := range a.Links(d) {
			fmt.Fprintf(&b, "%s → %s\n", d.Text[l.Range.Start:l.Range.End], l.Path)
		}
		return b.String()
	})
}

func TestSymbols(t *testing.T) {
	t.Parallel()
	cases(t, "symbols", func(a *Assistant, d Document, _ int) string {
		var b strings.Builder
		outlineText(&b, d.Text, a.Symbols(d), "")
		return b.String()
	})
}

func outlineText(b *strings.Builder, text string, list []Symbol, indent string) {
	names := []string{"suite", "task", "files", "grader", "map", "list", "value"}
	for _, s := range list {
		fmt.Fprintf(b, "%s%s %s (%s) %d-%d\n", indent, names[s.Sort], s.Name, s.Detail,
			lineOf(text, s.Range.Start)+1, lineOf(text, s.Range.End)+1)
		outlineText(b, text, s.Children, indent+"  ")
	}
}
