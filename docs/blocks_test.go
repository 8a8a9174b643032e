//go:build unix

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A codeBlock is a fenced block of a Markdown page. Its info string holds the
// language and attributes, such as
//
//	```sh skip="needs a cluster"
type codeBlock struct {
	line       int // of the opening fence, from 1
	indent     string
	language   string
	attributes map[string]string
	text       string // without the indent
	from, to   int    // the bytes of the page between the fences
}

var (
	fence     = regexp.MustCompile("(?m)^( *)```([a-z]*)([^\n`]*)\n")
	attribute = regexp.MustCompile(`(\w+)=(?:"([^"]*)"|(\S+))`)
	nameLine  = regexp.MustCompile(`^(?:#|//) ([A-Za-z0-9_./-]+\.[a-z]+)\n`)
)

// codeBlocks returns the fenced blocks of a page in their order.
func codeBlocks(page string) (blocks []codeBlock) {
	for at := 0; ; {
		m := fence.FindStringSubmatchIndex(page[at:])
		if m == nil {
			return blocks
		}
		b := codeBlock{indent: page[at+m[2] : at+m[3]], language: page[at+m[4] : at+m[5]], attributes: map[string]string{}}
		b.line = 1 + strings.Count(page[:at+m[0]], "\n")
		for _, a := range attribute.FindAllStringSubmatch(page[at+m[6]:at+m[7]], -1) {
			b.attributes[a[1]] = a[2] + a[3]
		}
		b.from = at + m[1]
		end := strings.Index(page[b.from-1:], "\n"+b.indent+"```")
		if end < 0 {
			return blocks
		}
		b.to = b.from + end
		for line := range strings.Lines(page[b.from:b.to]) {
			b.text += strings.TrimPrefix(line, b.indent)
		}
		blocks = append(blocks, b)
		at = b.to + len(b.indent) + 4
	}
}

// file returns the name of the file that a block shows, from its attribute
// "file" or a comment in its first line. It is empty if the block shows none.
func (b codeBlock) file() string {
	if name := b.attributes["file"]; name != "" {
		return name
	}
	if m := nameLine.FindStringSubmatch(b.text); m != nil && b.language != "console" {
		return m[1]
	}
	return ""
}

// content returns what the file of a block holds. Formats that have no comments
// hold the block without the line that names the file.
func (b codeBlock) content() string {
	switch filepath.Ext(b.file()) {
	case ".csv", ".json", ".jsonl", ".md", ".txt":
		if b.attributes["file"] == "" {
			_, rest, _ := strings.Cut(b.text, "\n")
			return rest
		}
	}
	return b.text
}

// A shownCommand is a command of a console block, with its printed output.
type shownCommand struct {
	line   string // the command, which may span lines that end with a backslash
	output []string
}

// shownCommands returns the commands of a console block. Commands follow "$ ".
func shownCommands(text string) (commands []shownCommand) {
	continued := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		last := len(commands) - 1
		switch command, ok := strings.CutPrefix(line, "$ "); {
		case continued:
			commands[last].line += "\n" + line
			continued = strings.HasSuffix(line, `\`)
		case ok:
			commands = append(commands, shownCommand{line: command})
			continued = strings.HasSuffix(line, `\`)
		case last >= 0:
			commands[last].output = append(commands[last].output, line)
		default:
			commands = append(commands, shownCommand{line: "", output: []string{line}})
		}
	}
	return commands
}

// varying matches what differs between two runs of the same command, and what
// replaces it before outputs are compared.
var varying = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\b\d{8}-\d{6}\.\d{3}-[0-9a-z]{10}\b`), "RUN"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?`), "TIME"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost|\[::1\]):\d{5}\b`), "HOST"},
	{regexp.MustCompile(`"(\w*([dD]uration|[eE]lapsed|[tT]ime|_at|At|[mM]s|[sS]econds))":( ?)("[^"]*"|[\d.]+)`), `"$1":${3}0`},
	{regexp.MustCompile(`\b\d+m\d+s\b|\b\d+([.,]\d+)? ?(ms|µs|s|min|m|h)\b`), "DURATION"},
	{regexp.MustCompile(`\b\d+([.,]\d+)? [kM]B\b`), "SIZE"},
	{regexp.MustCompile(`×[\d.]+ \[[^\]]*\]`), "RATIO"},
	{regexp.MustCompile(`\bpid[ =]\d+`), "pid=1"},
	{regexp.MustCompile(`^Sandbox: .*`), "Sandbox: TIER"}, // the machine decides
	{regexp.MustCompile(`  +`), "  "},
}

// normalized returns a line of output without what differs between two runs.
func normalized(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.replacement)
	}
	return strings.TrimRight(line, " ")
}

// namesSandbox reports whether a line is the one with the sandbox of a run.
func namesSandbox(line string) bool { return strings.HasPrefix(line, "Sandbox: ") }

// countsEarlyEnds reports whether a line counts trials that waza ended: a fast program can end by itself before.
func countsEarlyEnds(line string) bool {
	return strings.Contains(line, "ended early, when the answer was decided")
}

// matchesOutput reports whether an output is the one that a page shows. In the
// page, a line with only "…" represents any lines, and "…" in a line any text.
func matchesOutput(shown, got []string) bool {
	var pattern, text strings.Builder
	if !slices.ContainsFunc(shown, namesSandbox) { // most pages leave it out
		got = slices.DeleteFunc(slices.Clone(got), namesSandbox)
	}
	got = slices.DeleteFunc(slices.Clone(got), countsEarlyEnds)
	for _, line := range slices.DeleteFunc(slices.Clone(shown), countsEarlyEnds) {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(normalized(line)), "…", ".*") + `\n`)
	}
	for _, line := range got {
		text.WriteString(normalized(line) + "\n")
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(text.String())
}

// merged returns an output as a page is to show it: it leaves out what the page
// left out so far, and keeps lines that differ in times and the like only.
func merged(shown, got []string) []string {
	if matchesOutput(shown, got) {
		return shown
	}
	if !slices.ContainsFunc(shown, namesSandbox) {
		got = slices.DeleteFunc(slices.Clone(got), namesSandbox)
	}
	var result []string
	rest := got
	for i := 0; i < len(shown); {
		if strings.TrimSpace(shown[i]) == "…" {
			result = append(result, shown[i])
			i++
			continue
		}
		end := i
		for end < len(shown) && strings.TrimSpace(shown[end]) != "…" {
			end++
		}
		segment := shown[i:end]
		switch {
		case i == 0 && end == len(shown):
			segment, rest = rest, nil
		case end == len(shown):
			segment, rest = rest[max(0, len(rest)-len(segment)):], nil
		case i == 0:
			n := min(len(segment), len(rest))
			segment, rest = rest[:n], rest[n:]
		default:
			at := mostSimilar(segment, rest)
			n := min(at+len(segment), len(rest))
			segment, rest = rest[at:n], rest[n:]
		}
		result = append(result, segment...)
		i = end
	}
	if len(shown) == 0 {
		result = got
	}
	known := map[string]string{}
	for _, line := range shown {
		known[normalized(line)] = line
	}
	for i, line := range result {
		if old, ok := known[normalized(line)]; ok {
			result[i] = old
		}
	}
	return result
}

// mostSimilar returns where the lines that resemble a segment most start.
func mostSimilar(segment, lines []string) int {
	best, most := 0, -1
	for at := range lines {
		same := 0
		for i := range min(len(segment), len(lines)-at) {
			words := strings.Fields(normalized(segment[i]))
			for _, word := range words {
				if strings.Contains(lines[at+i], word) {
					same++
				}
			}
		}
		if same > most {
			best, most = at, same
		}
	}
	return best
}

func TestCodeBlocks(t *testing.T) {
	t.Parallel()
	page := "Text\n\n```yaml\n# a/eval.yaml\nname: x\n```\n\n1. Do\n\n   ```console exit=3 skip=\"needs a pen\"\n  " +
		" $ a \\\n     b\n   c\n   $ d\n   ```\n"
	blocks := codeBlocks(page)
	require.Len(t, blocks, 2)
	require.Equal(t, "a/eval.yaml", blocks[0].file())
	require.Equal(t, "# a/eval.yaml\nname: x\n", page[blocks[0].from:blocks[0].to])
	require.Equal(t, map[string]string{"exit": "3", "skip": "needs a pen"}, blocks[1].attributes)
	require.Equal(t, 10, blocks[1].line)
	require.Equal(t, []shownCommand{{"a \\\n  b", []string{"c"}}, {"d", nil}}, shownCommands(blocks[1].text))
}

func TestMatchesOutput(t *testing.T) {
	t.Parallel()
	got := []string{"a took 12 ms", "b", "c 100 %"}
	require.True(t, matchesOutput([]string{"a took 3.5 s", "b", "c 100 %"}, got))
	require.True(t, matchesOutput([]string{"…", "c 100 %"}, got))
	require.True(t, matchesOutput([]string{"a …", "…"}, got))
	require.False(t, matchesOutput([]string{"a took 3.5 s", "b"}, got))
	require.Equal(t, []string{"…", "c 100 %"}, merged([]string{"…", "c 50 %"}, got))
	require.Equal(t, []string{"a took 1 s", "…", "c 100 %"}, merged([]string{"a took 1 s", "…", "d 100 %"}, got))
}

// readPage returns the text of a page by its path in the repository.
func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, filepath.FromSlash(page)))
	require.NoError(t, err)
	return string(text)
}
