package assist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waza/eval"
)

// FuzzAssist asks all questions about any text at any position. Nothing panics, and answers are
// within the text.
func FuzzAssist(f *testing.F) {
	for _, pattern := range []string{"../../testdata/suites/*/eval.yaml", "../../testdata/suites/*/tasks/*.yaml", "../testdata/*/eval.yaml"} {
		files, _ := filepath.Glob(pattern)
		for i, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				f.Add(string(data), i*37%(len(data)+1), i%3)
			}
		}
	}
	for _, text := range []string{
		"a: [{", "- - -\n -", "x: &a\n y: *a\n<<: *a", "graders:\n- type: \xff", "tasks: '", "p: {{",
		"a: |\n\xe2\x80", "\uFEFF---\n...\n",
	} {
		f.Add(text, len(text), 0)
	}
	a := New(Options{Vocabulary: vocabulary()})
	dir := f.TempDir()
	files := []string{"eval.yaml", "tasks/a.yaml", "trigger_tests.yaml"}
	for _, file := range files {
		path := filepath.Join(dir, file)
		if os.MkdirAll(filepath.Dir(path), 0o755) != nil || os.WriteFile(path, []byte("name: x\ntasks: tasks/*.yaml\n"), 0o644) != nil {
			f.Fatal("cannot write files")
		}
	}
	suite, _, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, offset, file int) {
		d := Document{Path: filepath.Join(dir, files[uint(file)%3]), Text: text, Suite: suite}
		in := func(what string, r Range) {
			if r.Start < 0 || r.Start > r.End || r.End > len(text) {
				t.Fatalf("%s: range %v is outside a text of %d bytes", what, r, len(text))
			}
		}
		c := a.Complete(d, offset, true)
		in("completion", c.Range)
		if at := within(text, offset); !c.Range.holds(at) || strings.Contains(text[c.Range.Start:c.Range.End], "\n") {
			t.Fatalf("completion at %d replaces %v", at, c.Range)
		}
		if h := a.Hover(d, offset); h != nil {
			in("hover", h.Range)
		}
		if def := a.Define(d, offset); def != nil {
			in("definition", def.Range)
		}
		for _, l := range a.Links(d) {
			in("link", l.Range)
		}
		inside(in, a.Symbols(d), Range{0, len(text)})
	})
}

func inside(in func(string, Range), list []Symbol, around Range) {
	for _, s := range list {
		in("symbol "+s.Name, s.Range)
		in("its name", s.Selection)
		if s.Selection.Start < s.Range.Start || s.Selection.End > s.Range.End || s.Name == "" {
			in("the name of "+s.Name+" is outside the item", Range{1, 0})
		}
		inside(in, s.Children, around)
	}
}
