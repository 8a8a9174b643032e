package program

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/text"
	"waza/runner/grader"
)

// Limits of the search for the files that scripts use.
const (
	maxCompanions     = 64
	maxCompanionDepth = 4
	maxCompanionSeen  = 2000
	maxScriptBytes    = 256 << 10
)

// companions returns the files that scripts of a suite use as far as their texts name them:
// modules that they import and files that they read, at or below their directories or anywhere
// in the suite's repository by a path that starts with "..". It returns neither the scripts nor
// the files of the suite itself, which waza reads before the run.
func companions(suite *eval.Suite, scripts []string) []string {
	own := map[string]bool{suite.File: true}
	for _, t := range suite.Tasks {
		own[t.File] = true
	}
	var found []string
	all := map[string]map[string]bool{} // files below each directory with a script
	for queue := slices.Clone(scripts); len(queue) > 0; queue = queue[1:] {
		script := queue[0]
		if !reach.Within(suite.Root(), script) {
			continue
		}
		source, err := suite.ReadFile(script, maxScriptBytes)
		if err != nil || strings.IndexByte(string(source), 0) >= 0 {
			continue
		}
		dir := filepath.Dir(script)
		below, known := all[dir]
		if !known {
			below = filesBelow(dir)
			all[dir] = below
		}
		for _, word := range scriptWord().FindAllString(string(source), -1) {
			for _, name := range moduleFiles(word) {
				path := filepath.Join(dir, filepath.FromSlash(name))
				up := strings.HasPrefix(name, "../") && reach.Within(suite.Root(), path) && files.IsRegular(path)
				if !below[path] && !up || own[path] || slices.Contains(scripts, path) || slices.Contains(found, path) {
					continue
				}
				if len(found) == maxCompanions {
					return found
				}
				found = append(found, path)
				queue = append(queue, path)
			}
		}
	}
	return found
}

// upward matches texts of scripts that can use files outside of their directories, and packageUse
// those that can use packages of node.
var (
	upward     = text.Pattern(`\.\.|\bparents?\b|dirname.*dirname|rev-parse|WAZA_SUITE_DIR`)
	packageUse = text.Pattern(`node_modules|\b(?:node|npx|npm|yarn|pnpm|bun|bunx|deno|tsx)\b`)
	nodeScript = text.Pattern(`\.[cm]?[jt]sx?$`)
)

// Around returns the directories of the files that the options name, because programs find other
// files beside themselves. It includes the suite's directory if a text names it, or a directory
// above a script.
func (o *ProgramOptions) Around(suite *eval.Suite, named []string) []grader.Place {
	if len(named) == 0 && !strings.Contains(strings.Join(o.Args, " "), suite.Dir) {
		return nil
	}
	texts := append([]string{o.Command}, o.Args...)
	packages := false
	for _, path := range named {
		packages = packages || nodeScript().MatchString(path)
		if source, err := suite.ReadFile(path, maxScriptBytes); err == nil {
			texts = append(texts, string(source))
		}
	}
	packages = packages || slices.ContainsFunc(texts, packageUse().MatchString)
	var places []grader.Place
	if slices.ContainsFunc(texts, func(text string) bool { return upward().MatchString(text) || strings.Contains(text, suite.Dir) }) {
		places = append(places, grader.Place{Dir: suite.Dir, Packages: packages})
	}
	for _, path := range named {
		dir := filepath.Dir(path)
		switch {
		case reach.Within(suite.Root(), path):
			places = append(places, grader.Place{Dir: dir, Packages: packages})
		case !slices.Contains(filepath.SplitList(os.Getenv("PATH")), dir):
			places = append(places, grader.Place{Dir: dir, Flat: true})
		}
		for packages && reach.Within(suite.Root(), dir) { // node looks there
			places = append(places, grader.Place{Dir: filepath.Join(dir, "node_modules"), Packages: true})
			if dir == filepath.Dir(dir) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	return places
}

var scriptWord = text.Pattern(`[\w./-]*\w`)

// moduleFiles returns the paths that a word of a script can mean, in Python, JavaScript and
// shell.
func moduleFiles(word string) []string {
	word = strings.TrimLeft(word, "/") // after a variable that holds a directory
	names := []string{word}
	if !strings.Contains(word, "/") {
		dotted := strings.ReplaceAll(strings.TrimLeft(word, "."), ".", "/")
		names = append(names, dotted+".py", dotted+"/__init__.py")
	}
	if filepath.Ext(word) == "" {
		names = append(names, word+".js", word+".mjs", word+".cjs", word+".ts", word+".json", word+".sh", word+"/index.js")
	}
	return names
}

// filesBelow returns the regular files at or below a directory, without those of tools.
func filesBelow(dir string) map[string]bool {
	found := map[string]bool{}
	seen := 0
	_ = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxCompanionSeen {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return nil // it cannot be read
		case d.IsDir() && (slices.Contains([]string{".git", "node_modules", ".venv", "__pycache__"}, d.Name()) ||
			strings.Count(path, "/") >= maxCompanionDepth):
			return fs.SkipDir
		case d.Type().IsRegular():
			found[filepath.Join(dir, filepath.FromSlash(path))] = true
		}
		return nil
	})
	return found
}
