package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMentioned(t *testing.T) {
	t.Parallel()
	s := Places{Dir: t.TempDir()}
	for _, name := range []string{"a.sh", "lib/b.py", "c d.sh"} {
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	outside := filepath.Join(t.TempDir(), "a.sh")
	require.NoError(t, os.WriteFile(outside, nil, 0o644))
	for _, c := range []struct{ dir, command, want string }{
		{"", "sh a.sh", "a.sh"},
		{"", "cd x && ./a.sh; python3 'lib/b.py' <a.sh", "a.sh lib/b.py"},
		{"", `"$WAZA_SUITE_DIR/a.sh" ${WAZA_SUITE_DIR}/lib/b.py`, "a.sh lib/b.py"},
		{"lib", "python3 b.py ../a.sh", "lib/b.py a.sh"},
		{"", "cat " + outside + " ../a.sh lib nothing", ""},
		{"", "--script=a.sh", "a.sh"},
		{s.Dir, "a.sh", "a.sh"},
		{"", "", ""},
		{"", `lib/b.py >a.sh 2>&1; lib/b.py >> "$WAZA_SUITE_DIR/a.sh"`, "lib/b.py"},
		{"", "x > a.sh a.sh", "a.sh"},
	} {
		var got []string
		for _, file := range s.Mentioned(c.dir, c.command) {
			rel, err := filepath.Rel(s.Dir, file)
			require.NoError(t, err)
			got = append(got, rel)
		}
		require.Equal(t, c.want, strings.Join(got, " "), c.command)
	}
}

// For any command, only files of the suite are found, each once.
func FuzzMentioned(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.sh"), nil, 0o644); err != nil {
		f.Fatal(err)
	}
	f.Add("", "sh a.sh a.sh")
	f.Add("..", "$WAZA_SUITE_DIR/../a.sh")
	f.Add("", "$WAZA_SUITE_DIR//a.sh") // named the file twice, in two ways
	f.Add("\x00", "a\x00.sh")
	f.Fuzz(func(t *testing.T, at, command string) {
		s := Places{Dir: dir}
		found := s.Mentioned(at, command)
		if len(found) > 1 || len(found) == 1 && found[0] != filepath.Join(dir, "a.sh") {
			t.Errorf("%q in %q mentions %q", command, at, found)
		}
	})
}
