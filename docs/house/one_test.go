package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// onePlace are functions and constants of other packages that only one file of the repository
// uses, and the files that use them for something else, with the reason.
var onePlace = []struct {
	name, instead string
	allowed       map[string]string
}{
	{"os.CreateTemp", "replace a file of waza with files.WriteWhole, and one that a user names with files.Replace", map[string]string{
		"eval/files/whole.go":            "it is the place",
		"runner/journal/key.go":          "a key never replaces that of another process",
		"runner/internal/bundle/kept.go": "the file has no name",
		"runner/internal/bundle/pack.go": "the file is never renamed",
		"rpc/internal/wire/body.go":      "the file is never renamed",
	}},
	{"os.Rename", "replace a file of waza with files.WriteWhole, and one that a user names with files.Replace", map[string]string{
		"eval/files/whole.go":              "it is the place",
		"runner/journal/key.go":            "it is for file systems without links",
		"runner/journal/journal.go":        "it moves a directory",
		"runner/journal/stage.go":          "it moves a directory",
		"runner/journal/remove.go":         "it moves directories",
		"runner/journal/scratch.go":        "it moves a directory",
		"runner/internal/bundle/cache.go":  "it moves a directory",
		"runner/internal/bundle/unpack.go": "it moves a directory",
		"runner/workspace/spares.go":       "it moves a directory",
		"runner/repository/repository.go":  "it moves a directory",
	}},
	{"unix.Flock", "lock a file with files.Lock, and release it with files.Unlock, because closing it alone leaves the lock to " +
		"a child that is just starting", map[string]string{
		"eval/files/lock.go":      "it is the place",
		"rpc/host/listen_unix.go": "it imports nothing of eval",
	}},
	{"syscall.Flock", "lock a file with files.Lock, and release it with files.Unlock", nil},
	{"nuid.Next", "ids come from uuid.NewString", nil},
	{"nuid.New", "ids come from uuid.NewString", nil},
}

// cutTexts are the files that may add an ellipsis to a text. Others shorten texts with eval/text.
var cutTexts = map[string]string{
	"eval/text/text.go":            "it is the place",
	"runner/report/text.go":        "it counts the columns of a terminal",
	"runner/executor/acp/pipes.go": "the text was cut before",
	"cmd/waza/grade/file.go":       "it replaces other arguments",
}

// A helper that exists once is used everywhere.
func TestOneOfEach(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.isTest() || strings.HasSuffix(f.pkg, "test") || strings.Contains(f.path, "test/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repositoryRoot, f.path), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				pkg, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				for _, one := range onePlace {
					if one.name != pkg.Name+"."+n.Sel.Name {
						continue
					}
					used[one.name+f.path] = true
					if one.allowed[f.path] == "" {
						t.Errorf("%s uses %s: %s", f.path, one.name, one.instead)
					}
				}
			case *ast.BinaryExpr:
				if n.Op != token.ADD || !isEllipsis(n.X) && !isEllipsis(n.Y) {
					return true
				}
				used[f.path] = true
				if cutTexts[f.path] == "" {
					t.Errorf("%s adds an ellipsis: shorten texts with eval/text, which cuts between characters", f.path)
				}
			}
			return true
		})
	}
	for _, one := range onePlace {
		for path := range one.allowed {
			require.True(t, used[one.name+path], "%s does not use %s any more", path, one.name)
		}
	}
	for path := range cutTexts {
		require.True(t, used[path], "%s adds no ellipsis any more", path)
	}
}

func isEllipsis(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(literal.Value)
	text = strings.TrimSpace(text)
	return err == nil && (text == "…" || text == "...")
}
