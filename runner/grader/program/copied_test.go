package program

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
)

// Arguments and variables name the copies of planned files, and nothing else.
func TestCopiesRename(t *testing.T) {
	t.Parallel()
	directory := grader.PlannedFile{Type: fs.ModeDir}
	c := copies{root: "/suite", dir: "/copy", contents: map[string]grader.PlannedFile{"/suite/check": directory}}
	c.longest = []string{"/suite/check/my file.py", "/suite/check/a.sh", "/suite/check", "/else/b.sh"}
	for text, want := range map[string]string{
		"/suite/check/a.sh":                    "/copy/root/check/a.sh",
		"/suite/check/a.shx":                   "/copy/root/check/a.shx",
		"/suite/checks/a.sh":                   "/suite/checks/a.sh",
		"/suite/check/new":                     "/copy/root/check/new",
		"sh '/suite/check/my file.py' && true": "sh '/copy/root/check/my file.py' && true",
		"-I/suite/check":                       "-I/copy/root/check",
		"PYTHONPATH=/lib:/suite/check":         "PYTHONPATH=/lib:/copy/root/check",
		"/other/suite/check/a.sh":              "/other/suite/check/a.sh",
		"file:///suite/check/a.sh":             "file:///copy/root/check/a.sh",
		"/else/b.sh":                           "/copy/elsewhere/else/b.sh",
		"/suite/check/work/1/out.txt":          "/suite/check/work/1/out.txt",
		"":                                     "",
	} {
		require.Equal(t, want, c.renamed(text, "/suite/check/work/1"), text)
	}
}
