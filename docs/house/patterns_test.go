package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
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
			expr, ok := joined(call.Args[0])
			require.True(t, ok, "%s: the expression must consist of literals, for this test to see it", f.path)
			_, err := regexp.Compile(expr)
			require.NoError(t, err, f.path)
			found++
			return true
		})
	}
	require.Greater(t, found, 20)
}

// No regular expression of the program is compiled at its start. text.Pattern compiles it at its
// first use.
func TestPatternsAreCompiledAtFirstUse(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || !slices.Contains(f.imports, "regexp") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repositoryRoot, f.path), nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
				ast.Inspect(g, func(n ast.Node) bool {
					of, ok := n.(*ast.SelectorExpr)
					require.False(t, ok && of.Sel.Name == "MustCompile", "%s: use text.Pattern", f.path)
					_, later := n.(*ast.FuncLit)
					return !later
				})
			}
		}
	}
}

// joined returns the text of a literal, or of literals joined with +.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := joined(e.X)
		right, also := joined(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}
