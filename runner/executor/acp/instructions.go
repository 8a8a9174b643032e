package acp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/eval/files"
	"waza/runner/executor"
)

// giveInstructions writes the instruction files of the suite and the task to the place in the
// workspace where the agent reads instructions. It does not change a file that the task put
// there, and some agents have no such place. In these cases it returns the instructions as a
// preface of the first prompt.
func giveInstructions(workspace, place string, s *eval.Suite, t *eval.Task) (preface string, err error) {
	text, err := executor.Instructions(s, t)
	if err != nil || text == "" {
		return "", err
	}
	if place != "" {
		root, err := os.OpenRoot(workspace)
		if err != nil {
			return "", err
		}
		defer root.Close()
		if place = filepath.FromSlash(place); hasInstructions(root, place, text) || writeNew(root, place, text) {
			return "", nil
		}
	}
	return "Instructions for all that follows:\n\n" + text, nil
}

// hasInstructions reports whether a file of the task already contains the text.
func hasInstructions(root *os.Root, place, text string) bool {
	f, err := files.OpenIn(root, place)
	if err != nil {
		return false
	}
	defer f.Close()
	there, err := files.ReadAll(f, maxFile)
	return err == nil && strings.Contains(string(there), strings.TrimSpace(text))
}

// writeNew writes a file and reports whether it did. It does not replace an existing one.
func writeNew(root *os.Root, place, text string) bool {
	if _, err := root.Lstat(place); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return root.MkdirAll(filepath.Dir(place), 0o755) == nil && root.WriteFile(place, []byte(text), 0o644) == nil
}
