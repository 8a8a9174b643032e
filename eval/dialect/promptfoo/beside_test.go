package promptfoo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/files"
)

// waza looked for each word of the program of a provider on the disk, so that a bundle of 2 MB took seconds.
func TestWordsOfPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var program strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&program, "a%d.b(./c%d, './lib/part.js', 'data.json');\n", i, i)
	}
	for name, content := range map[string]string{
		"promptfooconfig.yaml": "providers: [file://provider.js]\nprompts: [x]\ntests: [{assert: [{type: equals, value: x}]}]\n",
		"provider.js":          program.String(), "lib/part.js": "require('../data.json'); require('./other');\n", "lib/other.js": "", "data.json": "{}",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	looked := map[string]int{}
	_, found, err := eval.Load(filepath.Join(dir, "promptfooconfig.yaml"), eval.Options{View: files.View{Accessed: func(path string) { looked[path]++ }}})
	require.NoError(t, err)
	require.Empty(t, found.Errors())
	for _, name := range []string{"lib/part.js", "lib/other.js", "data.json"} {
		require.Positive(t, looked[filepath.Join(dir, filepath.FromSlash(name))], name)
	}
	require.Less(t, len(looked), 50)
	require.Less(t, looked[filepath.Join(dir, "data.json")], 10)
}
