package eval_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
)

// FuzzLoad asserts that no suite file makes Load panic, that every finding has a documented code
// and an existing place, and that a suite without errors has tasks to run.
func FuzzLoad(f *testing.F) {
	found, _ := filepath.Glob(filepath.Join("testdata", "diagnostics", "*.txtar"))
	for _, file := range found {
		if archive, err := txtar.ParseFile(file); err == nil {
			for _, a := range archive.Files {
				if strings.HasSuffix(a.Name, ".yaml") && len(a.Data) < 4000 {
					f.Add(a.Data)
				}
			}
		}
	}
	known := map[decode.Code]bool{}
	for _, c := range decode.Codes() {
		known[c.Code] = true
	}
	path := filepath.Join(f.TempDir(), "eval.yaml")
	breaks := regexp.MustCompile("[\n\r\u0085\u2028\u2029]") // of lines, in YAML
	f.Add([]byte("\r\r00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := eval.Options{Vocabulary: vocabulary(), View: files.View{Overlay: map[string][]byte{path: data}}}
		suite, diags, err := eval.Load(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if suite == nil && !diags.HasErrors() {
			t.Fatal("neither a suite nor an error")
		}
		if suite != nil && !diags.HasErrors() && (suite.Name == "" || len(suite.Tasks) == 0) {
			t.Fatalf("no errors, but the suite cannot run: %+v", suite)
		}
		lines := 1 + len(breaks.FindAll(data, -1))
		for _, d := range diags {
			if !known[d.Code] || d.Message == "" || d.File == "" {
				t.Fatalf("%#v", d)
			}
			if !utf8.ValidString(d.Message) || d.EndColumn != 0 && d.EndColumn <= d.Column || d.Line > 0 && d.Column < 1 {
				t.Fatalf("%#v", d)
			}
			if filepath.Base(d.File) == "eval.yaml" && utf8.Valid(data) && d.Line > lines+1 {
				t.Fatalf("line %d of %d: %#v", d.Line, lines, d)
			}
		}
	})
}

// FuzzCSV asserts that a dataset gives either an error, or tasks with prompts and unique ids.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{
		"id,prompt\na,b\n", "id,prompt\n\"a\",\"b\"\"c\"\n", "prompt\r\nx\r\n", "\xef\xbb\xbfid,prompt\na,{{id}}",
		"id;prompt", "id,prompt\n\"", ",,\n,,", "prompt\n\n\n",
	} {
		f.Add(s, false)
	}
	f.Add(`{"prompt": "x", "id": 3}`+"\n\n[1]\n{", true)
	dir := f.TempDir()
	suite := filepath.Join(dir, "eval.yaml")
	f.Fuzz(func(t *testing.T, data string, lines bool) {
		name := "rows.csv"
		if lines {
			name = "rows.jsonl"
		}
		o := eval.Options{View: files.View{Overlay: map[string][]byte{
			suite: []byte("name: x\ntasks_from: " + name + "\n"), filepath.Join(dir, name): []byte(data),
		}}}
		s, diags, err := eval.Load(suite, o)
		if err != nil {
			t.Fatal(err)
		}
		if !diags.HasErrors() && len(s.Tasks) == 0 {
			t.Fatal("neither tasks nor an error")
		}
		ids := map[string]bool{}
		for _, task := range s.Tasks {
			if ids[task.ID] || task.ID == "" || task.Line < 1 {
				t.Fatalf("%+v", task)
			}
			if strings.TrimSpace(task.Inputs.Prompt) == "" && len(diags) == 0 {
				t.Fatalf("no finding about the empty prompt of %+v", task)
			}
			ids[task.ID] = true
		}
	})
}
