package house_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// odd are words and turns of phrase that slow readers down, with what to write instead. They
// are looked for in all documents, comments and texts of the program.
var odd = []oddPhrase{
	{words(`tell|tells|told|telling`), "report, print, return, warn, send or list"},
	{regexp.MustCompile(`\b[Ww]hat (?:is|are|was|were)\b[^?]*$`), "a noun"}, // questions stay
	{regexp.MustCompile(`(?:^|[.:;] )(?:What|Who|Whoever|Whatever|Whichever) [^?\n]*$`), "a sentence whose subject is a noun"},
	{regexp.MustCompile(`\b(?i:stand|stands|stood)(?:[^\w-]|$)`), "is, are or means"},
	{words(`begin|begins|began|begun|beginning`), "start or first"},
	{words(`(?:go|goes|going|went|gone) on`), "continue"},
	{words(`anew`), "again"},
	{words(`whoever|whomever|whosoever`), "everyone who, or the actor"},
	{words(`in the midst of`), "while or during"},
	{words(`as far as (?:it|they) (?:came|went|goes|got)`), "until now"},
	{words(`(?:is|was) another|(?:are|were) others`), "differs or changed"},
	{words(`(?:is|are|was|were|be|been) (?:not )?there`), "exists"},
	{
		words(`for (?:it|they|this|that|these|those|there|nobody|nothing|he|she|we) (?:is|are|was|were|has|have|can|would|will|does|do|must)`),
		"because or since",
	},
	{regexp.MustCompile(`; for (?:the|a|an|all|no|each|every|only|otherwise|runs)\b`), "because or since"},
	{words(`(?:is|are|was|were|be|been) said`), "the actor and says, reports or prints"},
	{words(`(?:is|are|be|was|were) none`), "is not, or does not exist"},
	{words(`(?:be|is|was|were|are) had`), "is available"},
	{
		words(`be it|be they|shall|lest|so many more|whence|thence|thereof|wherein|whereof|thereby|upon|hitherto|deaf|all the same`),
		"today's English",
	},
	{words(`all that (?:is|are|was|were|it|they|the|a|has|have)`), "everything that"},
}

// An oddPhrase is a pattern, and what to write instead of its matches.
type oddPhrase struct {
	pattern *regexp.Regexp
	write   string
}

// words matches whole words, with a capital first letter or without.
func words(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i:\b(?:` + alternatives + `))\b`)
}

// oddOnPurpose are the texts that keep an odd word, each with its reason.
var oddOnPurpose = []struct{ file, text, reason string }{
	{"CONTRIBUTING.md", "never *tell*", "lists odd words"},
	{"CONTRIBUTING.md", "not *anew*", "lists odd words"},
	{"CONTRIBUTING.md", "what is decided", "lists odd words"},
	{"rpc/gateway/jobs/dashboard/web/src/pages/fleet.tsx", "begun", "a JSON field of fleet.get"},
	{"rpc/gateway/store/migrations/0002_tokens.sql", "begin", "a released migration never changes"},
	{"rpc/internal/language/progress.go", "begin", "a value of the Language Server Protocol"},
	{"rpc/language_test.go", `"kind":"begin`, "a value of the Language Server Protocol"},
	{"rpc/language_test.go", `kind":"begin`, "a value of the Language Server Protocol"},
	{"runner/executor/browser/browser.go", "begins", "a JSON field of transcripts"},
	{"runner/executor/browser/browser_test.go", "begins", "a JSON field of transcripts"},
	{"runner/grader/judge/brief.go", "The data stands", promptReason},
	{"runner/grader/judge/compare.go", "The verdicts stand", promptReason},
	{"runner/grader/judge/criteria.go", "What ", promptReason},
	{"runner/grader/judge/rubrics/helpfulness.md", "what was asked", promptReason},
	{"runner/grader/judge/rubrics/refusal-correctness.md", "", promptReason},
	{"runner/propose/propose_test.go", "What the agent is asked", promptReason},
}

// promptReason explains why prompts keep their words.
const promptReason = "a prompt to a model: other words change its answers, and no recorded answer could be reused"

// oddNames are parts of names that say neither what a thing is nor what a function does.
var oddNames = regexp.MustCompile(`^(?i:told|deaf|anew|because|whoever|whose)$`)

func TestTextsArePlain(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(repositoryRoot)
	require.NoError(t, err)
	require.Less(t, len(oddOnPurpose), 20)
	used := make([]bool, len(oddOnPurpose))
	needles := make([][]string, len(odd))
	for i, o := range odd {
		needles[i] = needlesOf(t, o.pattern)
	}
	for _, name := range repositoryFiles(t, root) {
		if !isProse(name) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, but not committed yet
		}
		require.NoError(t, err)
		for line, text := range readable(t, name, content) {
			lower := strings.ToLower(text)
			for i, o := range odd {
				if !slices.ContainsFunc(needles[i], func(n string) bool { return strings.Contains(lower, n) }) {
					continue
				}
				found := oddIn(o.pattern, text)
				if found == "" {
					continue
				}
				exception := slices.IndexFunc(oddOnPurpose, func(p struct{ file, text, reason string }) bool {
					return p.file == name && strings.Contains(text, p.text)
				})
				if exception < 0 {
					t.Errorf("%s:%d: %q: write %s\n\t%s", name, line, found, o.write, strings.TrimSpace(text))
				} else {
					used[exception] = true
				}
			}
		}
	}
	for i, e := range oddOnPurpose {
		if !used[i] {
			t.Errorf("%s no longer has %q: remove the exception", e.file, e.text)
		}
	}
}

// oddIn returns the first match of a pattern in a text, or "". Words in capitals are code.
func oddIn(pattern *regexp.Regexp, text string) string {
	for _, found := range pattern.FindAllString(text, -1) {
		if short := found[1:]; len(short) > 20 || short == strings.ToLower(short) {
			return found
		}
	}
	return ""
}

// needlesOf returns texts in lower case, one of which is in every match of a pattern. Looking for
// them first is many times faster than matching all patterns with all lines.
func needlesOf(t *testing.T, pattern *regexp.Regexp) []string {
	t.Helper()
	parsed, err := syntax.Parse(pattern.String(), syntax.Perl)
	require.NoError(t, err)
	needles := literals(parsed.Simplify())
	require.NotEmpty(t, needles, "%s has no text that all its matches contain", pattern)
	return needles
}

// literals returns texts of which each match of an expression contains one, or nil. Of the parts
// of a sequence it chooses the one with the longest texts.
func literals(re *syntax.Regexp) (texts []string) {
	shortest := func(texts []string) int {
		if len(texts) == 0 {
			return 0
		}
		return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
	}
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpConcat:
		for _, part := range re.Sub {
			if more := literals(part); shortest(more) > shortest(texts) {
				texts = more
			}
		}
	case syntax.OpAlternate:
		for _, part := range re.Sub {
			more := literals(part)
			if len(more) == 0 {
				return nil
			}
			texts = append(texts, more...)
		}
	}
	return texts
}

// isProse reports whether people read a file, or texts in it. Generated files are read, too:
// their texts come from the code.
func isProse(name string) bool {
	switch filepath.Base(name) {
	case "LICENSE", "go.mod", "go.sum", "package-lock.json", "prose_test.go":
		return false
	}
	if strings.HasPrefix(name, copiesDir+"/") && filepath.Base(name) != "README.md" {
		return false
	}
	return !strings.Contains(name, "/built/") && !strings.HasSuffix(name, ".svg") && !strings.HasSuffix(name, ".png")
}

// readable returns the texts of a file by line: of Go the comments and strings, else all lines.
// Names in Go with odd parts are returned as the odd part.
func readable(t *testing.T, name string, content []byte) map[int]string {
	t.Helper()
	texts := map[int]string{}
	add := func(line int, text string) {
		for _, l := range strings.Split(text, "\n") {
			texts[line] += l + " "
			line++
		}
	}
	if bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	if filepath.Ext(name) != ".go" {
		add(1, codeSpan.ReplaceAllString(string(content), "CODE"))
		return texts
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, content, parser.ParseComments)
	require.NoError(t, err)
	for _, group := range file.Comments {
		for _, c := range group.List {
			add(set.Position(c.Pos()).Line, codeSpan.ReplaceAllString(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "), "CODE"))
		}
	}
	tags := map[*ast.BasicLit]bool{} // only their documentation is prose
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Field:
			if n.Tag != nil {
				add(set.Position(n.Tag.Pos()).Line, reflect.StructTag(strings.Trim(n.Tag.Value, "`")).Get("doc"))
				tags[n.Tag] = true
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !tags[n] {
				add(set.Position(n.Pos()).Line, strings.Trim(n.Value, "\"`"))
			}
		case *ast.Ident:
			for _, part := range camelWords.FindAllString(n.Name, -1) {
				if oddNames.MatchString(part) {
					t.Errorf("%s: %s is no name of a thing or a deed", set.Position(n.Pos()), n.Name)
				}
			}
		}
		return true
	})
	return texts
}

// codeSpan matches a name of code in a text, such as `begun`, which is no word.
var codeSpan = regexp.MustCompile("`[^`\\s]+`")

var camelWords = regexp.MustCompile(`[A-Z]?[a-z]+`)

func TestOddPatternsBite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"What does nothing is told":                                   true,
		"a task whose prompt is another":                              true,
		"It waits; for runs are the same for every process.":          true,
		"whoever asks shall not wait":                                 true,
		"~ stands for the run before":                                 true,
		"What does it cost?":                                          false,
		"waza warns about parameters that have no effect":             false,
		"a task whose prompt changed":                                 false,
		"waza reports the standard deviation and what to do about it": false,
		"a stand-in for a grader, which the beginner understands":     false,
	} {
		found := false
		for _, o := range odd {
			match := oddIn(o.pattern, text)
			found = found || match != ""
			if match != "" {
				require.True(t, slices.ContainsFunc(needlesOf(t, o.pattern), func(n string) bool {
					return strings.Contains(strings.ToLower(match), n)
				}), "%s matches %q and none of its needles is in it", o.pattern, match)
			}
		}
		require.Equal(t, want, found, "%q", text)
	}
}
