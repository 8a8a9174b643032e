package skillevals

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// findPlaces returns the directories where a case's files are looked for, in order: the root of the skill,
// the directory of the file, and the repository. The definitions name only the first; 19 and 46 of 357
// observed paths lead from the others.
func (tr *translator) findPlaces() []string {
	dir := filepath.Dir(tr.Source.Path)
	root, ok := tr.SkillDir(tr.skill)
	if !ok {
		root = filepath.Dir(dir)
	}
	var places []string
	for _, place := range []string{root, dir, tr.Files.Root()} {
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}

// find returns the path of a file or directory that a case names.
func (c *caseTranslator) find(name string) (found string, tried []string) {
	name = filepath.FromSlash(name)
	for _, dir := range c.places {
		at := filepath.Join(dir, name)
		if filepath.IsAbs(name) {
			at = filepath.Clean(name)
		}
		if slices.Contains(tried, c.Files.Shown(at)) {
			continue
		}
		tried = append(tried, c.Files.Shown(at))
		if c.Files.Exists(at) {
			return at, nil
		}
	}
	return "", tried
}

// maxPromptBytes limits a prompt_file.
const maxPromptBytes = decode.MaxTextBytes

// promptFile returns the text of a prompt_file.
func (c *caseTranslator) promptFile(n *yaml.Node) string {
	name := dialect.TextOf(n)
	file, tried := c.find(name)
	if file == "" {
		c.lacks(n, name, tried)
		return ""
	}
	data, err := c.Files.Read(file, maxPromptBytes)
	if err == nil {
		var prompt string
		if prompt, _, err = decode.PlainText(data, false); err == nil {
			return prompt
		}
	}
	c.Unreadable(c.Files.Shown(file), c.Source, n, err)
	return ""
}

// lacks reports a file that does not exist. It is a fault of this case only.
func (c *caseTranslator) lacks(at *yaml.Node, name string, tried []string) {
	reason := fmt.Sprintf("file %q does not exist; tried %s", text.Clip(name, 100), strings.Join(tried, ", "))
	c.blocked = append(c.blocked, reason)
	c.Reportf(c.Source, at, decode.Warning, decode.CodeMissingFixture, "%s; trials of this case end in an error", reason)
}

// filesKeys are the keys of the files of a case.
var filesKeys = []string{"files", "input_files", "input_file"}

// pathLike matches texts that can only be paths of files.
var pathLike = text.Pattern(`^[^\s<>|*?"]*[^\s<>|*?"/.]\.[A-Za-z][A-Za-z0-9]{0,7}$`)

// addInput reads the key input of a case with a prompt: files that its agent gets. Another value blocks the
// case, because no definition says how an agent would get it.
func (c *caseTranslator) addInput() *yaml.Node {
	n := c.get("input")
	if n == nil || n.Kind == yaml.ScalarNode && (n.Value == "" || n.Value == textIn(c.node, c.promptKey)) {
		return nil
	}
	items := dialect.Items(n)
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	}
	isFile := func(item *yaml.Node) bool {
		name := dialect.TextOf(item)
		if pathLike().MatchString(name) {
			return true
		}
		found, _ := c.find(name)
		return name != "" && found != ""
	}
	if decode.IsText(n) && strings.ContainsAny(strings.TrimSpace(n.Value), " \n") && !isFile(n) {
		c.material = n.Value
		if !c.unknown["input"] {
			c.unknown["input"] = true
			c.Reportf(c.Source, n, decode.Warning, decode.CodeOtherMeaning, "the agent gets the text of input after the prompt")
		}
		return nil
	}
	if len(items) == 0 || slices.ContainsFunc(items, func(item *yaml.Node) bool { return !isFile(item) }) {
		c.block(n, "the case has a prompt and an input that names no file, and waza does not know how the agent gets both", "")
		return nil
	}
	return n
}

// fixtureKeys are keys of files of a case that can also have another meaning, such as the name of a setup.
var fixtureKeys = []string{"fixture", "fixtures", "fixture_file", "attachments", "context_files"}

// fixtures returns the values of fixtureKeys that only name files that exist.
func (c *caseTranslator) fixtures() (values []*yaml.Node) {
	for _, key := range fixtureKeys {
		list := textsOf(cmp.Or(decode.Follow(decode.Lookup(c.node, key)), dialect.List(nil)))
		if len(list.Content) == 0 || slices.ContainsFunc(dialect.Items(list), func(n *yaml.Node) bool { found, _ := c.find(n.Value); return found == "" }) {
			continue
		}
		c.read[key] = true
		if slices.ContainsFunc(dialect.Items(list), c.hasAnswers) {
			c.Reportf(c.Source, list, decode.Warning, decode.CodeNoEffect, "%s has no effect, because the folder contains this file with the expected answers", key)
			continue
		}
		values = append(values, list)
	}
	return values
}

// hasAnswers reports whether a name is that of a folder that contains the file of the suite.
func (c *caseTranslator) hasAnswers(n *yaml.Node) bool {
	found, _ := c.find(n.Value)
	rel, err := filepath.Rel(found, c.Source.Path)
	return found != "" && err == nil && filepath.IsLocal(rel)
}

// addFiles sets the files of the workspace. It returns their names for the prompt.
func (c *caseTranslator) addFiles() (names []string) {
	list := dialect.List(c.node)
	for _, key := range filesKeys {
		names = append(names, c.filesOf(c.get(key), list)...)
	}
	for _, n := range c.fixtures() {
		names = append(names, c.filesOf(n, list)...)
	}
	if c.get("prompt") != nil || c.promptKey != "" && c.promptKey != "input" {
		names = append(names, c.filesOf(c.addInput(), list)...)
	}
	if len(list.Content) > 0 {
		c.inputs.Set("files", list)
	}
	return names
}

// filesOf adds the files that a value lists to a list, and returns their names.
func (c *caseTranslator) filesOf(n, list *yaml.Node) (names []string) {
	if n == nil {
		return nil
	}
	add := func(at *yaml.Node, name string, content *yaml.Node) {
		f := dialect.NewMap(at)
		inside := workspaceName(name)
		if inside == "" {
			c.Reportf(c.Source, at, decode.Error, decode.CodeEscapingPath, "%q cannot be the name of a file in the workspace", text.Clip(name, 100))
			return
		}
		f.Set("path", dialect.Scalar(at, inside))
		switch {
		case content != nil:
			f.Set("content", dialect.Scalar(content, dialect.TextOf(content)))
		default:
			source, tried := c.find(name)
			if source == "" {
				c.lacks(at, name, tried)
				return
			}
			f.Set("source", dialect.Scalar(at, c.Files.Relative(source)))
		}
		names = append(names, inside)
		list.Content = append(list.Content, f.Node)
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range dialect.Items(n) {
			name := firstOf(dialect.TextOf(item), dialect.TextOf(decode.Lookup(item, "path")), dialect.TextOf(decode.Lookup(item, "name")))
			if name == "" {
				c.Reportf(c.Source, item, decode.Error, decode.CodeWrongType, "a file must be a path or a map with path and content, got %s", decode.Describe(item))
				continue
			}
			add(item, name, decode.Follow(decode.Lookup(item, "content")))
		}
	case yaml.MappingNode:
		for _, p := range dialect.Pairs(n) {
			add(p.Value, p.Key.Value, p.Value)
		}
	default:
		if name := dialect.TextOf(n); name != "" {
			add(n, name, nil)
		}
	}
	return names
}

// workspaceName returns the path that a file has in the workspace: the listed one, without a way up.
// It is empty if no name remains.
func workspaceName(name string) string {
	name = path.Clean(filepath.ToSlash(name))
	if filepath.IsAbs(filepath.FromSlash(name)) {
		name = path.Base(name)
	}
	for strings.HasPrefix(name, "../") {
		name = name[len("../"):]
	}
	if name == "." || name == ".." || !fs.ValidPath(name) {
		return ""
	}
	return name
}
