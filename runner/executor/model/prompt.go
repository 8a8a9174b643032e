package model

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"waza/eval/files"
	"waza/runner/executor"
)

// Limits of texts that are added to a prompt.
const (
	maxSkillBytes = 512 << 10
	maxFileBytes  = 128 << 10
	maxFilesBytes = 512 << 10
)

// system returns the system prompt: the suite's system prompt, its instruction files and, if
// config.inject_skill_body is set, the skills of the task.
func (m *model) system(t *executor.Trial) (string, error) {
	var parts []string
	if m.options.SystemPrompt != "" {
		parts = append(parts, t.Expand(m.options.SystemPrompt))
	}
	instructions, err := executor.Instructions(m.suite, t.Task)
	if err != nil {
		return "", err
	}
	if instructions != "" {
		parts = append(parts, instructions)
	}
	if m.suite.Config.InjectSkillBody {
		for _, dir := range t.Task.Skills {
			text, err := executor.ReadSkill(m.suite, filepath.Join(dir, "SKILL.md"), maxSkillBytes)
			if err != nil {
				return "", fmt.Errorf("skill %s: %w", filepath.Base(dir), err)
			}
			parts = append(parts, fmt.Sprintf("You have the skill %q. Its instructions:\n\n%s", filepath.Base(dir), skillBody(text)))
		}
	}
	return strings.Join(parts, "\n\n"), nil
}

// skillBody returns a SKILL.md without its metadata. It keeps the description, because that
// states when to use the skill.
func skillBody(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n"))
	head, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return text
	}
	head, body, ok := strings.Cut(head, "\n---")
	if !ok {
		return text
	}
	var kept []string
	for line := range strings.SplitSeq(head, "\n") {
		if strings.HasPrefix(line, "description:") || len(kept) > 0 && strings.HasPrefix(line, " ") {
			kept = append(kept, line)
		} else if len(kept) > 0 {
			break
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n") + "\n\n" + strings.TrimSpace(body))
}

// files returns the text of the task's files, which is appended to the prompt. For binary files
// and those beyond the limits it contains only the name.
func (m *model) files(t *executor.Trial) (string, error) {
	if len(t.Task.Inputs.Files) == 0 {
		return "", nil
	}
	dir, err := t.Dir()
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	var b strings.Builder
	b.WriteString("\n\nThe files of the workspace:\n")
	for _, f := range t.Task.Inputs.Files {
		text, note := fileText(root, filepath.FromSlash(f.Path), maxFilesBytes-b.Len())
		if note != "" {
			fmt.Fprintf(&b, "\n%s (%s)\n", f.Path, note)
			continue
		}
		fence := fence(text)
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n%s\n", f.Path, fence, strings.TrimSuffix(text, "\n"), fence)
	}
	return b.String(), nil
}

func fileText(root *os.Root, path string, room int) (text, note string) {
	info, err := root.Stat(path)
	switch {
	case err != nil:
		return "", "cannot be read"
	case info.IsDir():
		return "", "a directory"
	case !info.Mode().IsRegular() || info.Size() > maxFileBytes || info.Size() > int64(room):
		return "", fmt.Sprintf("%d bytes, not shown", info.Size())
	}
	f, err := files.OpenIn(root, path)
	if err != nil {
		return "", "cannot be read"
	}
	defer f.Close()
	data, err := files.ReadAll(f, maxFileBytes)
	switch {
	case err != nil:
		return "", "cannot be read"
	case !utf8.Valid(data), bytes.IndexByte(data, 0) >= 0:
		return "", fmt.Sprintf("%d bytes, not shown", len(data))
	}
	return string(data), ""
}

// fence returns a Markdown fence that does not occur in the text.
func fence(text string) string {
	f := "```"
	for strings.Contains(text, f) {
		f += "`"
	}
	return f
}
