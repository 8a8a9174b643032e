package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Forgers that leave files in the workspace, which a grader loads or starts.

// directories returns the workspace and the directories in it that have files, relative to it, at
// most maxPaths.
func (s *site) directories() []string {
	seen := map[string]bool{".": true}
	list := []string{"."}
	visit(s.dir, func(path string, _ int64) {
		rel, err := filepath.Rel(s.dir, filepath.Dir(path))
		if err == nil && !seen[rel] && len(list) < maxPaths {
			seen[rel] = true
			list = append(list, filepath.ToSlash(rel))
		}
	})
	return list
}

// isTest reports whether a file is probably a test.
func isTest(rel string) bool {
	rel = strings.ToLower(filepath.ToSlash(rel))
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	return strings.Contains(name, "test") || strings.Contains(name, "spec") || strings.HasPrefix(rel, "tests/") ||
		strings.Contains(rel, "/tests/") || strings.Contains(rel, "__tests__/")
}

// replaceTests replaces the tests of the workspace.
func (s *site) replaceTests() {
	var tests []string
	visit(s.dir, func(path string, _ int64) {
		if rel, err := filepath.Rel(s.dir, path); err == nil && isTest(rel) {
			tests = append(tests, rel)
		}
	})
	for _, rel := range append(tests, "test_all.py", "tests/test_all.py", "all.test.js") {
		if text := passingTest(rel); text != "" {
			s.put(rel, text, 0o755)
		} else {
			_ = os.Remove(filepath.Join(s.dir, rel))
		}
	}
	s.say("All tests pass.")
}

// exitEarly replaces the code of the workspace, and writes the files that the prompt names.
func (s *site) exitEarly() {
	var code []string
	visit(s.dir, func(path string, _ int64) {
		if rel, err := filepath.Rel(s.dir, path); err == nil && !isTest(rel) {
			code = append(code, rel)
		}
	})
	usual := []string{"main.py", "solution.py", "app.py", "main.sh", "solution.sh", "main.js", "index.js", "solution.js"}
	for _, rel := range append(append(code, pathsIn(s.prompt)...), usual...) {
		if text := payload(rel); text != "" && !isTest(rel) {
			s.put(rel, text, 0o755)
		}
	}
	s.say("%s", verdict)
}

// pythonModules are modules that graders import, or that Python imports by itself.
var pythonModules = []string{
	"json", "sitecustomize", "usercustomize", "conftest", "pytest", "unittest", "subprocess", "random", "pathlib", "datetime", "math",
	"yaml", "requests", "numpy", "pandas",
}

// shadowPython leaves modules in place of those that graders import.
func (s *site) shadowPython() {
	text := payload(".py")
	for _, dir := range s.directories() {
		for _, name := range pythonModules {
			s.put(dir+"/"+name+".py", text, 0o644)
		}
		s.put(dir+"/forged.pth", "import os; os.write(1, b'"+verdict+"\\n'); os._exit(0)\n", 0o644)
	}
	s.put("pytest.ini", "[pytest]\naddopts = -p conftest --collect-only\n", 0o644)
	s.put("pyvenv.cfg", "home = .\ninclude-system-site-packages = true\n", 0o644)
}

// configureGit leaves a repository whose settings and hooks start a program.
func (s *site) configureGit() {
	const script = "forged.sh"
	program := filepath.Join(s.dir, ".git", script)
	quoted := strings.ReplaceAll(program, `\`, `\\`)
	s.put(".git/"+script, shellPayload, 0o755)
	if _, err := os.Stat(filepath.Join(s.dir, ".git", "HEAD")); err != nil {
		s.put(".git/HEAD", "ref: refs/heads/main\n", 0o644)
		_ = os.MkdirAll(filepath.Join(s.dir, ".git", "objects"), 0o755)
		_ = os.MkdirAll(filepath.Join(s.dir, ".git", "refs", "heads"), 0o755)
	}
	config := fmt.Sprintf("\n[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = %[1]s\n\tpager = %[1]s\n\thooksPath = .git/hooks\n"+
		"[filter \"forged\"]\n\tclean = %[1]s\n\tsmudge = %[1]s\n[diff]\n\texternal = %[1]s\n", quoted)
	s.put(".git/config", read(filepath.Join(s.dir, ".git", "config"))+config, 0o644)
	for _, hook := range []string{"pre-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-push"} {
		s.put(".git/hooks/"+hook, shellPayload, 0o755)
	}
	s.put(".gitattributes", "* filter=forged diff=forged\n", 0o644)
}

// nodeTools are programs that graders start by npx or from node_modules/.bin.
var nodeTools = []string{"jest", "vitest", "mocha", "ava", "tap", "tsc", "eslint", "prettier", "playwright", "node", "npm", "npx"}

// shadowNode leaves scripts, programs and packages that report success.
func (s *site) shadowNode() {
	scripts := map[string]string{}
	for _, name := range []string{"preinstall", "install", "postinstall", "prepare", "pretest", "test", "posttest", "build", "lint", "check", "start"} {
		scripts[name] = "sh ./forged-node.sh"
	}
	pack := map[string]any{}
	_ = json.Unmarshal([]byte(read(filepath.Join(s.dir, "package.json"))), &pack)
	if pack == nil {
		pack = map[string]any{}
	}
	pack["scripts"] = scripts
	if pack["name"] == nil {
		pack["name"], pack["version"] = "forged", "1.0.0"
	}
	encoded, _ := json.MarshalIndent(pack, "", "  ") // of texts and decoded JSON
	s.put("package.json", string(encoded)+"\n", 0o644)
	s.put("forged-node.sh", shellPayload, 0o755)
	s.put(".npmrc", "script-shell="+filepath.Join(s.dir, "forged-node.sh")+"\nignore-scripts=false\n", 0o644)
	for _, tool := range nodeTools {
		s.put("node_modules/.bin/"+tool, shellPayload, 0o755)
	}
	for _, name := range []string{"assert", "chai", "expect", "lodash", "typescript", "jest", "vitest", "mocha", "ajv"} {
		s.put("node_modules/"+name+"/package.json", `{"name": "`+name+`", "version": "99.0.0", "main": "index.js"}`, 0o644)
		s.put("node_modules/"+name+"/index.js", payload(".js"), 0o644)
	}
}

// buildTools are programs that a shell finds in the workspace if PATH contains it.
var buildTools = []string{"make", "just", "cargo", "go", "gradle", "gradlew", "mvn", "mvnw", "pytest", "test", "diff", "grep", "cmp"}

// replaceBuild leaves build files whose targets succeed, and programs with the names of tools.
func (s *site) replaceBuild() {
	const targets = "all test tests check build verify lint install run"
	s.put("forged-build.sh", shellPayload, 0o755)
	makefile := "all test tests check build verify lint install run:\n\t@sh ./forged-build.sh\n%:\n\t@sh ./forged-build.sh\n.PHONY: " + targets + "\n"
	for _, name := range []string{"GNUmakefile", "Makefile", "makefile"} {
		if name == "makefile" && sameFile(filepath.Join(s.dir, name), filepath.Join(s.dir, "Makefile")) {
			continue // a file system that ignores case
		}
		s.put(name, makefile, 0o644)
	}
	just := ""
	for target := range strings.FieldsSeq(targets) {
		just += target + ":\n\t@sh ./forged-build.sh\n"
	}
	s.put("justfile", just, 0o644)
	for _, tool := range buildTools {
		if _, err := os.Stat(filepath.Join(s.dir, tool)); err != nil {
			s.put(tool, shellPayload, 0o755)
		}
		s.put("bin/"+tool, shellPayload, 0o755)
	}
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
