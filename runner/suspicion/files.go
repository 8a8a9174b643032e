package suspicion

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"waza/eval/text"
)

// readFile returns the start of a file of the workspace, or "" if it is no text or cannot be read.
func (s *scan) readFile(name string) string {
	if s.root == nil {
		root, err := s.Open()
		if err != nil {
			return ""
		}
		s.root = root
	}
	// Opening must not block, because the file may be a pipe by now.
	f, err := s.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil || strings.IndexByte(string(data[:min(len(data), 1024)]), 0) >= 0 {
		return ""
	}
	return string(data)
}

func cleanPath(p string) string { return path.Clean(filepath.ToSlash(p)) }

// callPlace names a tool call, counted from 1.
func callPlace(n int, tool string) string {
	return "tool call " + strconv.Itoa(n) + ", " + text.Clip(tool, 80)
}

var testName = text.Pattern(`(?i)^(?:tests?|test_.*|.*_test|.*_spec|.*\.(?:test|spec))\.[a-z]{1,4}$|^conftest\.py$|^(?:.*[a-z0-9])?Tests?\.(?:java|kt|cs)$`)

// isTest reports whether a file is a test, by its name or by the folder that it is in.
func isTest(name string) bool {
	if testName().MatchString(path.Base(name)) {
		return true
	}
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		switch path.Base(dir) {
		case "test", "tests", "__tests__", "spec", "specs":
			return isCode(name)
		}
	}
	return false
}

// codeEndings are the endings of programs.
const codeEndings = " .py .js .mjs .cjs .ts .tsx .jsx .go .rs .rb .java .kt .cs .c .cc .cpp .h .php .pl .sh .bash .lua .swift .r "

func isCode(name string) bool {
	ending := strings.ToLower(path.Ext(name))
	return ending != "" && strings.Contains(codeEndings, " "+ending+" ")
}
