package rpc_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
)

// A hop is a line of a diagram in docs/architecture.md.
type hop struct {
	name   string // package.Function or package.Type.Method
	depth  int
	caller string // name in the line above it, if any
}

// maxHops limits the functions between the bytes of eval.run and its reply.
const maxHops = 25

// calledAs maps functions that are called by another name to that name. It is the name of a field,
// which is called like a method, or of a parameter.
var calledAs = map[string]string{"dispatch.Define": "dispatch.Method.Serve", "rpc.runSuite": "dispatch.handler"}

// hops parses the diagram of a section.
func hops(t *testing.T, title string) []hop {
	t.Helper()
	text, err := os.ReadFile("../docs/architecture.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "## "+title+"\n")
	require.True(t, ok)
	_, drawing, ok := strings.Cut(section, "```text\n")
	require.True(t, ok)
	drawing, _, _ = strings.Cut(drawing, "```")
	var list []hop
	for _, m := range regexp.MustCompile(`(?m)^( +)([a-z]+\.[\w.]+)`).FindAllStringSubmatch(drawing, -1) {
		h := hop{name: m[2], depth: len(m[1])}
		for _, above := range slices.Backward(list) {
			if above.depth < h.depth {
				h.caller = above.name
				break
			}
		}
		list = append(list, h)
	}
	return list
}

// functions returns the functions of some packages, by package.Function and package.Type.Method.
func functions(t *testing.T, dirs ...string) map[string]*ast.FuncDecl {
	t.Helper()
	found := map[string]*ast.FuncDecl{}
	for _, dir := range dirs {
		packages, err := parser.ParseDir(token.NewFileSet(), dir, //nolint:staticcheck // files of other systems do not matter
			func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
		require.NoError(t, err)
		for name, pkg := range packages {
			for _, file := range pkg.Files {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						found[name+"."+receiver(f)+f.Name.Name] = f
					}
				}
			}
		}
	}
	return found
}

// receiver returns "Type." for a method.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name + "."
		default:
			return ""
		}
	}
}

// calls reports whether a function of a package calls another one, given by its whole name:
// package.Function, or package.Type.Method. A function of another package is called with the name
// of that package. The type of a method's receiver is not known; only a field or a method of any
// value has the name.
func calls(f *ast.FuncDecl, pkg, whole string) bool {
	parts := strings.Split(whole, ".")
	name := parts[len(parts)-1]
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fun := call.Fun.(type) {
		case *ast.Ident:
			found = found || fun.Name == name && len(parts) == 2 && parts[0] == pkg
		case *ast.SelectorExpr:
			of, _ := fun.X.(*ast.Ident)
			found = found || fun.Sel.Name == name && (len(parts) == 3 || of != nil && of.Name == parts[0])
		}
		return true
	})
	return found
}

// The diagrams match the code: every function exists and calls the one below it, and there are
// not too many.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	known := functions(t, ".", "internal/wire", "internal/dispatch", "../runner", "../runner/plan", "../runner/replay", "../runner/journal",
		"gateway/door", "gateway/agents", "gateway/agents/internal/hub", "../runner/trial", "../runner/executor/remote")
	for _, title := range []string{"A request", "An event", "A trial of a remote agent"} {
		list := hops(t, title)
		require.Less(t, len(list), maxHops)
		require.Greater(t, len(list), maxHops/2)
		for _, h := range list {
			require.NotNil(t, known[h.name], "docs/architecture.md: no function is named %s", h.name)
			if h.caller == "" {
				continue
			}
			pkg, _, _ := strings.Cut(h.caller, ".")
			called := h.name
			if as := calledAs[h.name]; as != "" {
				called = as
			}
			require.True(t, calls(known[h.caller], pkg, called), "%s does not call %s", h.caller, h.name)
		}
	}
}

// seen collects the functions of packages wire, dispatch and rpc that are on the stack while
// bytes of eval.run are read, and its reply is made and written.
type seen struct {
	mu    sync.Mutex // guards names
	names map[string]bool
}

var ours = regexp.MustCompile(`^waza/(?:rpc/internal/)?(rpc|wire|dispatch)\.(.*)$`)

func (s *seen) stack() {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		frame, more := frames.Next()
		if m := ours.FindStringSubmatch(frame.Function); m != nil {
			name := strings.NewReplacer("(*", "", ")", "", "[...]", "").Replace(m[2])
			s.names[m[1]+"."+regexp.MustCompile(`(\.func\d+|\.deferwrap\d+|-fm)+(\.\d+)*$`).ReplaceAllString(name, "")] = true
		}
		if !more {
			return
		}
	}
}

func (s *seen) Enabled(context.Context, slog.Level) bool { return true }
func (s *seen) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *seen) WithGroup(string) slog.Handler            { return s }
func (s *seen) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "served" {
		s.stack()
	}
	return nil
}

type watchedReader struct {
	io.Reader
	*seen
}

func (r watchedReader) Read(p []byte) (int, error) {
	r.stack()
	return r.Reader.Read(p)
}

type watchedWriter struct {
	bytes.Buffer
	*seen
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.stack()
	return w.Buffer.Write(p)
}

// The diagram contains every function on the path of a request.
func TestArchitectureIsComplete(t *testing.T) {
	t.Parallel()
	s := &seen{names: map[string]bool{}}
	path := filepath.ToSlash(suite(t, short))
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"` + path + `"}}` + "\n")
	out := &watchedWriter{seen: s}
	server := newServer(t, rpc.Options{Logger: slog.New(s)})
	require.NoError(t, server.ServeStdio(t.Context(), watchedReader{in, s}, out))
	require.Contains(t, out.String(), `"id":1,"result":{"runId":`)
	drawn := map[string]bool{}
	for _, h := range hops(t, "A request") {
		drawn[h.name] = true
	}
	require.True(t, s.names["wire.framer.line"] && s.names["dispatch.answer"] && s.names["wire.writer.run"], "%v", s.names)
	for name := range s.names {
		require.True(t, drawn[name], "a request passes %s, which is missing in docs/architecture.md", name)
	}
}
