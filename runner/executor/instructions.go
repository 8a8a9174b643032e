package executor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/skill"
)

// maxInstructions is the maximum size of one instruction file, in bytes.
const maxInstructions = 512 << 10

// Instructions returns the text of the instruction files of the suite, followed by those of the
// task and its system prompt. The text of the agent under test is that of its file without frontmatter. Instructions is
// empty if these do not exist. A missing or unreadable file is a [Permanent] error.
func Instructions(s *eval.Suite, t *eval.Task) (string, error) {
	var parts []string
	for i, f := range slices.Concat(s.Instructions, t.Instructions) {
		text, err := "", errors.New("no such file")
		switch {
		case f.UnderTest:
			if text, err = ReadSkill(s, f.Path, maxInstructions); err == nil {
				text = strings.TrimSpace(skill.Parse(f.Path, []byte(text)).Body)
			}
		case f.Path != "":
			text, err = validText(s.ReadFile(f.Path, maxInstructions))
		}
		if err != nil {
			key := "config.instruction_files"
			if i >= len(s.Instructions) {
				key = "instruction_files"
			}
			return "", Permanent(fmt.Errorf("%s: %s: %w", key, f.Name, err))
		}
		parts = append(parts, text)
	}
	if own := t.Inputs.SystemPrompt; own != "" {
		parts = append(parts, own)
	}
	return strings.Join(parts, "\n\n"), nil
}

// ReadSkill returns the text of a file of a skill of the suite, which has at most the given
// number of bytes. It replaces invalid UTF-8.
func ReadSkill(s *eval.Suite, path string, most int64) (string, error) {
	return validText(s.ReadSkill(path, most))
}

// validText converts the content of a file to a valid text.
func validText(data []byte, err error) (string, error) {
	return strings.ToValidUTF8(string(data), "\uFFFD"), err
}

// FirstEvent returns the time within which the agent must show a first sign of life in a task. 0
// means no limit.
func FirstEvent(s *eval.Suite, t *eval.Task) time.Duration {
	limit := s.Config.FirstEventTimeoutSeconds
	if t.FirstEventTimeoutSeconds != nil {
		limit = *t.FirstEventTimeoutSeconds
	}
	return time.Duration(limit * float64(time.Second))
}
