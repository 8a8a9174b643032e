package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// All patterns compile. text.Pattern compiles an expression on its first use, which would reveal
// a mistake late.
func TestPatternsCompile(t *testing.T) {
	t.Parallel()
	found := 0
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repositoryRoot, f.path), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if of, ok := call.Fun.(*ast.SelectorExpr); !ok || of.Sel.Name != "Pattern" || len(call.Args) != 1 {
				return true
			} else if pkg, ok := of.X.(*ast.Ident); !ok || pkg.Name != "text" {
				return true
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			require.True(t, ok, "%s: the expression must be a literal, for this test to see it", f.path)
			expr, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			_, err = regexp.Compile(expr)
			require.NoError(t, err, f.path)
			found++
			return true
		})
	}
	require.Greater(t, found, 20)
}
