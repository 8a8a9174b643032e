package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
)

// Several goroutines read task files. The tasks, the findings and the reported accesses are those of
// reading one file after the other, in the order of the suite.
func TestTaskFilesAreTakenInOrder(t *testing.T) {
	t.Parallel()
	const n = 100
	dir := t.TempDir()
	at := func(i int) string { return filepath.Join(dir, "tasks", fmt.Sprintf("t%03d.yaml", i)) }
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tasks"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), fmt.Appendf(nil,
		"name: x\ntasks:\n  - %[1]s/t09*.yaml\n  - {id: inline, prompt: hi, expected: {output_contains: [x]}}\n  - %[1]s/*.yaml\n"+
			"  - %[1]s/t003.yaml\n", "tasks"), 0o600))
	for i := range n {
		text := fmt.Sprintf("id: t%d\nprompt: hi\nexpected: {output_contains: [x]}\n", i)
		switch {
		case i == 20:
			require.NoError(t, os.Symlink(at(19), at(i)))
			continue
		case i%10 == 1:
			text = "id: t0\nprompt: hi\nexpected: {output_contains: [x]}\n" // a duplicate
		case i%10 == 2:
			text += "prompts: hi\n" // an unknown key
		case i%10 == 3:
			text = "id: [\n"
		}
		require.NoError(t, os.WriteFile(at(i), []byte(text), 0o600))
	}
	accessed := map[string]bool{}
	suite, ds, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{View: files.View{
		Overlay:  map[string][]byte{at(n - 4): []byte("id: unsaved\nprompt: hi\nexpected: {output_contains: [x]}\n")},
		Accessed: func(path string) { accessed[path] = true },
	}})
	require.NoError(t, err)

	var got, want []string
	for _, task := range suite.Tasks {
		got = append(got, task.ID)
	}
	add := func(from, to int) {
		for i := from; i < to; i++ {
			switch {
			case i == n-4:
				want = append(want, "unsaved")
			case i%10 != 1 && i%10 != 3 && i != 20 || i == 91: // t91 takes the id t0 first
				want = append(want, strings.Replace(fmt.Sprintf("t%d", i), "t91", "t0", 1))
			}
		}
	}
	add(90, 100)
	want = append(want, "inline")
	add(1, 90)
	require.Equal(t, want, got)

	byCode := map[decode.Code]int{}
	for _, d := range ds {
		byCode[d.Code]++
		if d.Code == decode.CodeDuplicateID && !strings.HasSuffix(d.File, "t020.yaml") {
			require.Contains(t, d.Message, `"t0"; it is first used at `+filepath.Join(dir, "tasks", "t091.yaml"))
		}
	}
	require.Equal(t, map[decode.Code]int{decode.CodeDuplicateID: 11, decode.CodeUnknownKey: 10, decode.CodeSyntax: 10}, byCode)
	for i := range n {
		require.True(t, accessed[at(i)], i)
		require.True(t, suite.IsTaskFile(at(i)), i)
	}
}
