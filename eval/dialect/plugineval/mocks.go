package plugineval

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// A mock is a mocked tool.
type mock struct {
	server, tool string
	plugin       string // that declares the server; empty for none
}

// name returns Claude Code's name of the tool.
func (m mock) name() string {
	if m.plugin != "" {
		return "mcp__plugin_" + m.plugin + "_" + m.server + "__" + m.tool
	}
	return "mcp__" + m.server + "__" + m.tool
}

// addMocks adds the MCP servers that mocks/SERVER/TOOL.md simulate: those of the suite, of the folders
// around the case, and of the case. The nearest file of a tool counts.
func (c *testCase) addMocks(evals string) {
	servers := dialect.NewMap(nil) // the tools of each, by name
	for _, dir := range between(evals, c.dir) {
		entries, err := c.Files.List(filepath.Join(dir, mocksDir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			server, _ := c.serverOf(e.Name())
			tools := dialect.Map{Node: decode.Lookup(servers.Node, server)}
			if tools.Node == nil {
				tools = dialect.NewMap(nil)
			}
			if c.addTools(tools, filepath.Join(dir, mocksDir, e.Name())); tools.Len() > 0 {
				servers.Set(server, tools.Node)
			}
		}
	}
	list := dialect.List(nil)
	for _, p := range dialect.Pairs(servers.Node) {
		server := dialect.NewMap(nil)
		server.Set("name", dialect.Scalar(nil, p.Key.Value))
		server.Set("tools", p.Value)
		list.Content = append(list.Content, server.Node)
		_, plugin := c.serverOf(p.Key.Value)
		for _, tool := range dialect.Pairs(p.Value) {
			c.mocks = append(c.mocks, mock{p.Key.Value, tool.Key.Value, plugin})
		}
	}
	if len(list.Content) > 0 {
		c.task.Set("mcp_mocks", list)
	}
}

// between returns the folders from one to another inside of it.
func between(outer, inner string) []string {
	dirs := []string{inner}
	for dir := inner; dir != outer && dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// serverOf returns the name of the server that a folder of mocks simulates, and the plugin that declares
// it. The folder can have Claude Code's name of the server.
func (c *testCase) serverOf(folder string) (server, plugin string) {
	for _, p := range c.plugins {
		for _, own := range p.declared {
			if folder == own || folder == p.serverName(own) {
				return own, p.name
			}
		}
	}
	return folder, ""
}

// addTools adds the mocked tools of a folder.
func (c *testCase) addTools(tools dialect.Map, dir string) {
	entries, err := c.Files.List(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name, isMarkdown := strings.CutSuffix(e.Name(), ".md")
		if !isMarkdown || e.IsDir() {
			continue
		}
		m := c.readMarkdown(filepath.Join(dir, e.Name()))
		switch {
		case m == nil:
		case e.Name() == serverFile:
			c.block(m.src, nil, "the mock %s is not supported: a model answers its tools", m.src.Name)
		default:
			tool, response := dialect.NewMap(nil), dialect.NewMap(nil)
			c.addAnswer(tool, response, m, dir)
			tool.Set("responses", dialect.List(nil, response.Node))
			tools.Set(name, tool.Node)
		}
	}
	c.describeTools(tools, filepath.Join(dir, toolsFile))
}

// Files beside those of tools.
const (
	serverFile = "_server.md"
	toolsFile  = "_tools.json"
)

// describeTools adds the descriptions and schemas of an answer of the real server to the mocked tools.
func (c *testCase) describeTools(tools dialect.Map, file string) {
	data, err := c.Files.Read(file, maxMockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	src := decode.NewSource(file, c.Files.Shown(file), "")
	if err != nil {
		c.block(src, nil, "the mock %s cannot be read: %v", src.Name, err)
		return
	}
	var found decode.Findings
	src = decode.ParseFile(file, src.Name, data, &found)
	if faults := found.Diagnostics().Errors(); len(faults) > 0 {
		c.block(src, nil, "the mock %s, line %d: %s", src.Name, faults[0].Line, faults[0].Message)
		return
	}
	list := decode.Follow(src.Root)
	for _, key := range []string{"result", "tools"} { // the answer, or a part of it
		if inner := decode.Follow(decode.Lookup(list, key)); inner != nil {
			list = inner
		}
	}
	for _, described := range dialect.Items(list) {
		tool := dialect.Map{Node: decode.Lookup(tools.Node, dialect.TextOf(decode.Lookup(described, "name")))}
		if tool.Node == nil {
			continue
		}
		if text := dialect.TextOf(decode.Lookup(described, "description")); text != "" {
			tool.Set("description", dialect.Scalar(nil, text))
		}
		if schema := decode.Follow(decode.Lookup(described, "inputSchema")); schema != nil && schema.Kind == yaml.MappingNode {
			tool.Set("input_schema", schema)
		}
	}
}

// addAnswer sets the answer of a mocked tool, and the arguments that it expects.
func (c *testCase) addAnswer(tool, response dialect.Map, m *markdown, dir string) {
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
		case key == "type" && dialect.TextOf(p.Value) == "fixed":
		case key == "type" && dialect.TextOf(p.Value) == "agent":
			c.block(m.src, p.Key, "the mock %s: type: agent is not supported: a model answers the calls", m.src.Name)
		case key == "expect":
			if schema, err := expectSchema(p.Value); err != nil {
				c.block(m.src, p.Value, "the mock %s: %v", m.src.Name, err)
			} else {
				tool.Set("expect_schema", schema)
			}
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
