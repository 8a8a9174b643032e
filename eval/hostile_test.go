package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
)

// load writes a suite file and loads it, and fails when a hostile file makes that too slow.
func load(t *testing.T, content string) (*eval.Suite, decode.Diagnostics) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	begin := time.Now()
	suite, diags, err := eval.Load(path, eval.Options{Vocabulary: vocabulary()})
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 3*time.Minute)
	return suite, diags
}

func codes(diags decode.Diagnostics) []decode.Code {
	var out []decode.Code
	for _, d := range diags {
		out = append(out, d.Code)
	}
	return out
}

func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, tt := range []struct {
		name, content string
		want          decode.Code
	}{
		{"brackets", strings.Repeat("[", mib), decode.CodeTooLarge},
		{"fewer brackets", strings.Repeat("[", 100_000), decode.CodeSyntax},
		{"closed brackets", strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), decode.CodeTooDeep},
		{"braces", strings.Repeat("{a: ", 9_000) + strings.Repeat("}", 9_000), decode.CodeTooDeep},
		{"dashes", "name: x\ntasks:\n" + strings.Repeat("-\n", mib/2), decode.CodeTooLarge},
		{"nested dashes", strings.Repeat("- ", 400_000), decode.CodeSyntax},
		{"question marks", strings.Repeat("? ", 400_000), decode.CodeSyntax},
		{"comments", strings.Repeat("#\n", 100_000) + "name: x", decode.CodeNoTasks},
		{"long key", strings.Repeat("k", mib) + ": 1", decode.CodeSyntax},
		{"long text", "name: " + strings.Repeat("text ", mib/8), decode.CodeNoTasks},
		{"anchors", "a: &a x\nb: [" + strings.Repeat("*a, ", 50_000) + "]", decode.CodeUnknownKey},
		{"many keys", manyKeys(20_000), decode.CodeUnknownKey},
		{"laughs", laughs(), decode.CodeTooManyAliases},
		{"merges", merges(), decode.CodeTooManyAliases},
		{"NUL", "\x00\x00\x00", decode.CodeNotText},
		{"not UTF-8", "name: \xc3\x28", decode.CodeNotText},
		{"binary", "\x7fELF\x02\x01\x01", decode.CodeNotText},
		{"odd UTF-16", "\xff\xfen", decode.CodeEmpty},
		{"directive", "%YAML 9.9\n---\nname: x", decode.CodeSyntax},
		{"binary tag", "name: !!binary xyz\ntasks: []", decode.CodeNoTasks},
		{"map as key", "? {a: b}\n: c\nname: x", decode.CodeWrongType},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, diags := load(t, tt.content)
			require.Contains(t, codes(diags), tt.want, "%.2000v", diags)
			require.LessOrEqual(t, len(diags), 4000)
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	return b.String()
}

func laughs() string {
	var b strings.Builder
	b.WriteString("name: x\nl0: &l0 lol\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
	}
	b.WriteString("config: {mcp_servers: {x: *l29}}\ntasks: [{prompt: x, context: {y: *l29}}]\ngraders: [{type: file, config: {z: *l29}}]\n")
	return b.String()
}

func merges() string {
	var b strings.Builder
	b.WriteString("name: x\nm0: &m0 {a: 1}\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&b, "m%d: &m%d {<<: [%s]}\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*m%d, ", i-1), 10), ", "))
	}
	b.WriteString("config: {mcp_servers: {x: *m29}}\n")
	return b.String()
}

// Load refuses a sparse file of a gigabyte by its size, wherever the suite names it.
func TestHugeFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	huge := filepath.Join(dir, "eval.yaml")
	f, err := os.Create(huge)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<30))
	require.NoError(t, f.Close())
	suite, diags, err := eval.Load(huge, eval.Options{})
	require.NoError(t, err)
	require.Nil(t, suite)
	require.Equal(t, []decode.Code{decode.CodeTooLarge}, codes(diags))

	other := filepath.Join(dir, "other.eval.yaml")
	require.NoError(t, os.WriteFile(other, []byte("name: x\ntasks: [eval.yaml]\n"), 0o644))
	_, diags, err = eval.Load(other, eval.Options{})
	require.NoError(t, err)
	require.Equal(t, []decode.Code{decode.CodeTooLarge}, codes(diags))

	require.NoError(t, os.Rename(huge, filepath.Join(dir, "rows.csv")))
	require.NoError(t, os.WriteFile(other, []byte("name: x\ntasks_from: rows.csv\n"), 0o644))
	_, diags, err = eval.Load(other, eval.Options{})
	require.NoError(t, err)
	require.Equal(t, []decode.Code{decode.CodeTooLarge}, codes(diags))
}

// Opening a fifo would wait for a writer.
func TestSpecialFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "eval.yaml")
	require.NoError(t, syscall.Mkfifo(fifo, 0o644))
	_, diags, err := eval.Load(fifo, eval.Options{})
	require.NoError(t, err)
	require.Equal(t, []decode.Code{decode.CodeUnreadable}, codes(diags))

	_, diags, err = eval.Load("/dev/zero", eval.Options{})
	require.NoError(t, err)
	require.Equal(t, []decode.Code{decode.CodeUnreadable}, codes(diags))
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	const text = "name: Grüße\r\ntasks:\r\n  - {id: a, prompt: hi, colour: red}\r\n"
	utf16 := []byte("\xff\xfe")
	for _, r := range text {
		utf16 = append(utf16, byte(r), byte(r>>8))
	}
	for name, content := range map[string]string{"plain": text, "byte order mark": "\xef\xbb\xbf" + text, "UTF-16": string(utf16)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite, diags := load(t, content)
			require.Equal(t, "Grüße", suite.Name)
			require.Equal(t, []decode.Code{decode.CodeNothingChecked, decode.CodeUnknownKey}, codes(diags))
			require.Equal(t, [3]int{3, 25, 31}, [3]int{diags[1].Line, diags[1].Column, diags[1].EndColumn})
		})
	}
}
