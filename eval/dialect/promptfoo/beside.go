package promptfoo

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/text"
)

// maxBeside limits the files that a provider in a file uses as far as their texts name them.
const maxBeside = 100

// namedWord matches the words of a program that can be names of files or modules.
var namedWord = text.Pattern(`[\w@./-]*\w`)

// besides returns what a provider in a file uses besides that file, as far as the texts of the programs name it: files at or below the
// suite's directory, and other paths of the repository, such as folders. The provider sees nothing else of the suite, whose tests
// contain the expected answers.
func (tr *translator) besides(file string) (below, others []string) {
	config := tr.Source.Path
	holdsConfig := func(name string) bool {
		return name == config || strings.HasPrefix(config, name+string(filepath.Separator))
	}
	seen, tried := []string{file}, map[string]bool{}
	entries := map[string]map[string]bool{} // of the folders of programs
	usesNode := slices.Contains(nodeExtensions, filepath.Ext(file))
	for queue := []string{file}; len(queue) > 0 && len(seen) < maxBeside; queue = queue[1:] {
		source, err := tr.read(queue[0])
		if err != nil {
			continue
		}
		dir := filepath.Dir(queue[0])
		if entries[dir] == nil {
			entries[dir] = tr.namesIn(dir)
		}
		for _, word := range namedWord().FindAllString(source, -1) {
			for _, name := range namesOfModule(word, usesNode) {
				full := filepath.Join(dir, filepath.FromSlash(name))
				first, _, _ := strings.Cut(path.Clean(name), "/")
				if tried[full] || first != ".." && !entries[dir][first] {
					continue
				}
				tried[full] = true
				info, err := tr.Files.Stat(full)
				isFolder := err == nil && info.IsDir()
				if err != nil || isFolder && !strings.Contains(name, "/") || holdsConfig(full) || slices.Contains(seen, full) {
					continue
				}
				if seen = append(seen, full); len(seen) >= maxBeside {
					return below, others
				}
				rel := tr.Files.Relative(full)
				if isFolder || strings.HasPrefix(rel, "../") {
					others = append(others, rel)
				} else {
					below = append(below, rel)
				}
				if isCode(full) && !isFolder {
					queue = append(queue, full)
				}
			}
		}
	}
	for dir := filepath.Dir(file); usesNode; dir = filepath.Dir(dir) { // node looks there
		for _, name := range []string{"node_modules", "package.json"} {
			if tr.Files.Exists(filepath.Join(dir, name)) {
				others = append(others, tr.Files.Relative(filepath.Join(dir, name)))
			}
		}
		if dir == tr.Files.Root() || dir == filepath.Dir(dir) {
			break
		}
	}
	return below, others
}

// namesIn returns the names of the files and folders in a folder. Most words of a program name none of them, so that waza does not look
// for each on the disk.
func (tr *translator) namesIn(dir string) map[string]bool {
	names := map[string]bool{}
	list, _ := tr.Files.List(dir)
	for _, entry := range list {
		names[entry.Name()] = true
	}
	return names
}

// namesOfModule returns the paths that a word of a program can mean.
func namesOfModule(word string, node bool) []string {
	word = strings.TrimLeft(word, "/") // after a variable with a folder
	if word == "" || strings.Trim(word, "./") == "" {
		return nil
	}
	names := []string{word}
	switch {
	case node && path.Ext(word) == ".js":
		names = append(names, strings.TrimSuffix(word, ".js")+".ts")
	case node && strings.HasPrefix(word, "."):
		for _, end := range []string{".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/index.ts"} {
			names = append(names, word+end)
		}
	case !node && !strings.Contains(word, "/"):
		dotted := strings.ReplaceAll(strings.TrimLeft(word, "."), ".", "/")
		names = append(names, dotted+".py", dotted+"/__init__.py")
	}
	return names
}
