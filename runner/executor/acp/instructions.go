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

// giveInstructions puts the suite's instruction files where the agent reads
// instructions in the workspace. What the task's own files put there stays as it
// is, and some agents have no such place: the instructions are returned then, to
// go before the first prompt.
func giveInstructions(workspace, place string, s *eval.Suite) (preface string, err error) {
	text, err := executor.Instructions(s)
	if err != nil || text == "" {
		return "", err
	}
	if place != "" {
		root, err := os.OpenRoot(workspace)
		if err != nil {
			return "", err
		}
		defer root.Close()
		if place = filepath.FromSlash(place); brings(root, place, text) || puts(root, place, text) {
			return "", nil
		}
	}
	return "Instructions for all that follows:\n\n" + text, nil
}

// brings reports whether a file of the task says the same already.
func brings(root *os.Root, place, text string) bool {
	f, err := files.OpenIn(root, place)
	if err != nil {
		return false
	}
	defer f.Close()
	there, err := files.ReadAll(f, maxFile)
	return err == nil && strings.Contains(string(there), strings.TrimSpace(text))
}

// puts writes a file unless something stands in its place.
func puts(root *os.Root, place, text string) bool {
	if _, err := root.Lstat(place); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return root.MkdirAll(filepath.Dir(place), 0o755) == nil && root.WriteFile(place, []byte(text), 0o644) == nil
}
