package assist

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"waza/eval"
	"waza/eval/reach"
)

// largeSuite returns a suite of about 2,000 lines, with inline tasks.
func largeSuite() string {
	var b strings.Builder
	b.WriteString("name: large\nconfig:\n  executor: mock\n  workers: 4\ngraders:\n  - type: text\n    name: " +
		"polite\n    config:\n      contains: [please]\ntasks:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "  - id: task-%d\n    name: \"Task %d\"\n    inputs:\n      prompt: |\n        Say {{word}}, "+
			"please.\n    graders:\n      - type: text\n        config:\n          contains:\n            - \"word %d\"\n",
			i, i, i)
	}
	return b.String()
}

// BenchmarkAssist asks questions about the last line of a suite of 2,000 lines.
func BenchmarkAssist(b *testing.B) {
	text := largeSuite() + "      - type: text\n        con"
	dir := b.TempDir()
	d := Document{
		Path: filepath.Join(dir, "eval.yaml"), Text: text,
		Suite: &eval.Suite{Places: reach.Places{File: filepath.Join(dir, "eval.yaml"), Dir: dir}},
	}
	a := New(Options{Vocabulary: vocabulary()})
	for name, ask := range map[string]func() bool{
		"completion": func() bool { return len(a.Complete(d, len(text), true).Items) > 0 },
		"hover":      func() bool { return a.Hover(d, strings.LastIndex(text, "contains")) != nil },
		"symbols":    func() bool { return len(a.Symbols(d)) > 0 },
		"links":      func() bool { a.Links(d); return true },
		"definition": func() bool { return a.Define(d, strings.LastIndex(text, "type")) == nil },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if !ask() {
					b.Fatal("no answer")
				}
			}
		})
	}
}
