package executor

import (
	"errors"
	"fmt"
	"io"
	"os"
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
			text, err = ReadText(f.Path, maxInstructions)
		}
		if err != nil {
			return "", Permanent(fmt.Errorf("config.instruction_files: %s: %w", f.Name, err))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n"), nil
}

// ReadText reads a regular file of no more than that many bytes. What is no
// UTF-8 is replaced.
func ReadText(path string, most int) (string, error) {
	if st, err := os.Stat(path); err != nil { // before it is opened: a pipe would wait for its other end
		return "", err
	} else if !st.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > most:
		return "", fmt.Errorf("it has more than %d KiB", most>>10)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}
