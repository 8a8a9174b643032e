package executor

import (
	"bufio"
	"io"
	"path"
	"path/filepath"
	"strings"

	"waza/eval/files"
	"waza/runner/record"
)

// ProgramNeeds returns what a machine must have to start a program. A file of the suite travels
// with it, and needs only the interpreter in its first line, if any. Other programs are needed
// by their name on PATH or by their absolute path. A path in the workspace and the empty name
// need nothing.
func ProgramNeeds(program string, ofSuite bool) []record.Need {
	switch {
	case program == "":
		return nil
	case ofSuite:
		program = interpreter(program)
	case strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program):
		return nil
	}
	if program == "" {
		return nil
	}
	return []record.Need{{Kind: record.NeedProgram, Name: usual(program)}}
}

// usual returns the bare name of a program in /bin or /usr/bin, which is on PATH wherever a
// machine keeps it. Other programs keep their path.
func usual(program string) string {
	if dir := path.Dir(program); dir == "/bin" || dir == "/usr/bin" {
		return path.Base(program)
	}
	return program
}

// maxFirstLine is the maximum length of the first line of a script, in bytes. Kernels have the
// same limit.
const maxFirstLine = 256

// interpreter returns the program in the first line of a script, or "" for other files.
func interpreter(file string) string {
	f, err := files.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxFirstLine)).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if err != nil && len(line) == maxFirstLine || !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	if path.Base(words[0]) != "env" {
		return words[0]
	}
	for _, word := range words[1:] { // env -S node --flag, env NAME=value node
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return words[0]
}
