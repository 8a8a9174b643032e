package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/config"
	"waza/eval"
	"waza/eval/decode"
	"waza/runner/attack/agent"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/report/formats"
	"waza/runner/report/spreadsheet"
	"waza/runner/suspicion"
)

//go:generate go test -run "^(TestDocuments|TestDocumentExamples|TestMCPDocument)$" . -update

// TestDocuments compares the generated documents and schemas with the code. With -update, which
// make docs uses, it rewrites them.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for path, text := range documents(t) {
		file := filepath.Join(filepath.FromSlash(repositoryRoot), filepath.FromSlash(path))
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			continue
		}
		have, err := os.ReadFile(file)
		require.NoError(t, err, "make docs writes it")
		if string(have) != text {
			t.Errorf("%s lags behind the code: run make docs\n%s", path, firstDifference(string(have), text))
		}
	}
}

// Some tables listed keys without a description, because comments on types with several forms
// did not reach the schema.
func TestDocumentsExplainEveryKey(t *testing.T) {
	t.Parallel()
	all := documents(t)
	for _, path := range []string{"docs/graders.md", "docs/executors.md", "docs/suite.md"} {
		for line := range strings.Lines(all[path]) {
			require.NotRegexp(t, `^\|.*\|\s*\|$`, strings.TrimSpace(line), path)
		}
	}
	require.Contains(t, all["docs/graders.md"], "### ToolSpec")
}

// repositoryRoot is the root of the repository, relative to this package.
const repositoryRoot = ".."

func firstDifference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d\ngot   %s\nwant  %s", i+1, h[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(h), len(w))
}

func vocabulary() *eval.Vocabulary {
	return &eval.Vocabulary{Executors: plan.Executors.Kinds(), Graders: builtin.Graders.Kinds()}
}

// documents returns all generated files by their paths in the repository, except docs/cli.md, which
// cmd/waza writes.
func documents(t *testing.T) map[string]string {
	t.Helper()
	generate.Do(func() { generated = generateDocuments(t) })
	return generated
}

var (
	generate  sync.Once
	generated map[string]string
)

func generateDocuments(t *testing.T) map[string]string {
	t.Helper()
	v := vocabulary()
	schemas := generateSchemas(t, v)
	docs := map[string]string{
		"docs/diagnostics.md": diagnosticsDocument(),
		"docs/reports.md":     reportsDocument(t),
		"docs/suspicious.md":  suspiciousDocument(t),
		"docs/graders.md":     gradersDocument(t, v, schemas[suiteSchema]),
		"docs/executors.md":   executorsDocument(t, v, schemas[suiteSchema]),
		"docs/suite.md":       suiteDocument(t, v, schemas[suiteSchema], schemas[triggerTestsSchema]),
	}
	docs["docs/attack.md"] = attackDocument(t)
	docs["docs/project.md"] = projectDocument(t, schemas[projectSchema])
	configuration := generateSchema(t, "The configuration of waza serve", config.Default())
	docs["cmd/waza/config/serve.schema.json"] = string(configuration)
	docs["docs/configuration.md"] = configurationDocument(t, configuration)
	for name, text := range schemas {
		docs["eval/schemafiles/"+name] = string(text)
	}
	return docs
}

func reportsDocument(t *testing.T) string {
	t.Helper()
	var list, columns strings.Builder
	list.WriteString("| format | file | content |\n|---|---|---|\n")
	for _, f := range formats.Exports(nil) {
		file := f.File
		if f.IsFolder() {
			file += "/"
		}
		fmt.Fprintf(&list, "| `%s` | `%s` | %s |\n", f.Name, file, inCell(f.Doc))
	}
	columns.WriteString("| column | content |\n|---|---|\n")
	for _, c := range spreadsheet.Columns() {
		fmt.Fprintf(&columns, "| `%s` | %s |\n", c.Name, inCell(c.Doc))
	}
	return handwritten(t, "docs/reports.md", list.String(), columns.String())
}

func suspiciousDocument(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| rule | move | looks at | not reported |\n|---|---|---|---|\n")
	for _, r := range suspicion.Rules() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, inCell(r.Doc), inCell(r.Looks), inCell(r.Except))
	}
	return handwritten(t, "docs/suspicious.md", b.String())
}

func attackDocument(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| agent | behavior | remedy |\n|---|---|---|\n")
	for _, a := range agent.All() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", a.Name, inCell(a.Summary), inCell(a.Remedy))
	}
	return handwritten(t, "docs/attack.md", table.String())
}

func diagnosticsDocument() string {
	var b strings.Builder
	b.WriteString(`# Findings about suites

After this page you know the meaning of each finding that ` + "`waza validate`" + ` prints and ` + "`eval.validate`" + ` returns.
The meaning of a code never changes. Errors prevent a run; warnings and remarks do not.

| code | reported when |
|---|---|
`)
	for _, c := range decode.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Code, inCell(c.Doc))
	}
	return b.String()
}

// inCell formats a text for a cell of a table: in one line, and with HTML escaped.
func inCell(s string) string {
	parts := strings.Split(strings.Join(strings.Fields(s), " "), "`")
	for i := 0; i < len(parts); i += 2 { // the other parts are code
		parts[i] = strings.ReplaceAll(parts[i], "<", `\<`)
	}
	return strings.ReplaceAll(strings.Join(parts, "`"), "|", `\|`)
}
