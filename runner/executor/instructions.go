package executor

import (
	"errors"
	"fmt"
	"strings"

	"waza/eval"
)

// maxInstructions bounds the bytes of one instruction file.
const maxInstructions = 512 << 10

// Instructions is the text of the suite's instruction files, one after the
// other; empty when it names none. A file that is missing or cannot be read is a
// [Permanent] error.
func Instructions(s *eval.Suite) (string, error) {
	var parts []string
	for _, f := range s.Instructions {
		text, err := "", errors.New("no such file")
		if f.Path != "" {
			text, err = validText(s.ReadFile(f.Path, maxInstructions))
		}
		if err != nil {
			return "", Permanent(fmt.Errorf("config.instruction_files: %s: %w", f.Name, err))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n"), nil
}

// ReadSkill returns the text of a file of a skill of the suite, of no more than that
// many bytes. What is no UTF-8 is replaced.
func ReadSkill(s *eval.Suite, path string, most int64) (string, error) {
	return validText(s.ReadSkill(path, most))
}

// validText makes a text of a file's content.
func validText(data []byte, err error) (string, error) {
	return strings.ToValidUTF8(string(data), "\uFFFD"), err
}
