package plugineval

import (
	"fmt"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// addMocks adds the MCP servers that mocks/SERVER/TOOL.md simulate: those of the suite, and those of the
// case, which replace them.
func (c *testCase) addMocks(evals string) {
	servers := dialect.NewMap(nil)
	for _, dir := range []string{filepath.Join(evals, mocksDir), filepath.Join(c.dir, mocksDir)} {
		entries, err := c.Files.List(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if tools := c.mockedTools(filepath.Join(dir, e.Name())); e.IsDir() && tools != nil {
				server := dialect.NewMap(nil)
				server.Set("name", dialect.Scalar(nil, e.Name()))
				server.Set("tools", tools)
				servers.Set(e.Name(), server.Node)
			}
		}
	}
	list := dialect.List(nil)
	for _, p := range dialect.Pairs(servers.Node) {
		list.Content = append(list.Content, p.Value)
	}
	if len(list.Content) > 0 {
		c.task.Set("mcp_mocks", list)
	}
}

// mockedTools returns the tools of a mocked server; nil if the folder has none.
func (c *testCase) mockedTools(dir string) *yaml.Node {
	entries, err := c.Files.List(dir)
	if err != nil {
		return nil
	}
	tools := dialect.NewMap(nil)
	for _, e := range entries {
		name, isMarkdown := strings.CutSuffix(e.Name(), ".md")
		if !isMarkdown || e.IsDir() {
			continue
		}
		if m := c.readMarkdown(filepath.Join(dir, e.Name())); m != nil {
			response := dialect.NewMap(nil)
			c.addAnswer(response, m, dir)
			tool := dialect.NewMap(nil)
			tool.Set("responses", dialect.List(nil, response.Node))
			tools.Set(name, tool.Node)
		}
	}
	if tools.Len() == 0 {
		return nil
	}
	return tools.Node
}

// addAnswer sets the answer of a mocked tool.
func (c *testCase) addAnswer(response dialect.Map, m *markdown, dir string) {
	if m.fault != "" {
		c.block(m.src, nil, "%s", m.fault)
	}
	answer, err := c.withFiles(strings.TrimSpace(m.body), dir)
	if err != nil {
		c.block(m.src, nil, "the mock %s: %v", m.src.Name, err)
	}
	for _, p := range dialect.Pairs(m.src.Root) {
		switch key := p.Key.Value; {
		case key == "description":
		case key == "error" && p.Value.ShortTag() == "!!bool":
			if isError, _ := decode.BoolOf(p.Value); isError {
				response.Set("error", dialect.Scalar(nil, answer))
			}
		case key == "error" && dialect.TextOf(p.Value) != "":
			response.Set("error", dialect.Scalar(nil, p.Value.Value))
		default:
			c.block(m.src, p.Key, "the mock %s: %s is not supported", m.src.Name, text.Clip(key, 60))
		}
	}
	switch place := inputPlace().FindString(answer); {
	case place == "":
	case argumentPlace().MatchString(place):
		response.Set("fill_input", dialect.Scalar(nil, true))
	default:
		c.block(m.src, nil, "the mock %s: %s is not supported: it must name an argument, as {{input.NAME}} does", m.src.Name, text.Clip(place, 60))
	}
	if decode.Lookup(response.Node, "error") == nil {
		response.Set("return", dialect.Scalar(nil, answer))
	}
}

const fileOpen, placeholderOpen, placeholderClose = "{{file:", "{{", "}}"

// Places of the arguments of a call in an answer.
var (
	inputPlace    = text.Pattern(`\{\{\s*input\b[^{}]*\}\}`)
	argumentPlace = text.Pattern(`^\{\{\s*input\.[^{}\s]+\s*\}\}$`)
)

// withFiles returns the answer of a mock with the texts of the files that it names. They are relative to
// the folder of mocks, or to the one above.
func (c *testCase) withFiles(answer, dir string) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(answer, placeholderOpen)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		inside, rest, closed := strings.Cut(after, placeholderClose)
		name, isFile := strings.CutPrefix(placeholderOpen+inside, fileOpen)
		switch {
		case closed && isFile:
			content, err := c.mockFile(strings.TrimSpace(name), dir)
			if err != nil {
				return "", err
			}
			b.WriteString(content)
		default:
			b.WriteString(placeholderOpen)
			answer = after
			continue
		}
		answer = rest
	}
}

// maxMockFile limits the files that answers of mocks contain.
const maxMockFile = 1 << 20

func (c *testCase) mockFile(name, dir string) (string, error) {
	if filepath.IsLocal(filepath.FromSlash(name)) {
		for _, from := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
			if data, err := c.Files.Read(filepath.Join(from, filepath.FromSlash(name)), maxMockFile); err == nil {
				return strings.TrimRight(string(data), "\n"), nil
			}
		}
	}
	return "", fmt.Errorf("the file %s does not exist", text.Clip(name, 100))
}
