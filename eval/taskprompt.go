package eval

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// promptCheck checks what a task sends to its agent: the prompt and its file, and the inputs that
// only some executors send.
type promptCheck struct{ *taskCheck }

// check checks the inputs that an agent gets, and reads the file of the prompt.
func (c promptCheck) check() {
	c.checkPrompt()
	c.checkRemote()
	c.checkVoice()
	c.checkHistory()
}

func (c promptCheck) checkPrompt() {
	in := &c.task.Inputs
	if in.PromptFile != "" {
		if in.Prompt != "" {
			c.reportf(decode.Error, decode.CodeInvalidValue, c.inputPath("prompt_file"), "a task has a prompt or a prompt_file, not both")
			return
		}
		c.loadFile()
		return
	}
	switch {
	case strings.TrimSpace(in.Prompt) != "":
	case c.has(c.inputPath("prompt")):
		// Scaffolds write an empty prompt as an edge case, and agents get it.
		c.reportf(decode.Warning, decode.CodeMissingPrompt, c.inputPath("prompt"),
			"the prompt of task %q is empty and is sent unchanged", text.Clip(c.task.ID, 80))
	default:
		c.reportMissing()
	}
}

// reportMissing reports a task without a prompt, unless remote agents do it. Trying such a task
// with another executor is not an error.
func (c promptCheck) reportMissing() {
	remote, others := c.loader.executors().remote()
	asks := c.task.Inputs.Tool != "" || c.task.Inputs.Input != nil
	switch {
	case asks && remote && !others:
	case asks && (remote || c.loader.options.Executor != ""):
		c.reportf(decode.Warning, decode.CodeMissingPrompt, c.inputPath("prompt"),
			"task %q has no prompt; executors other than remote get an empty one", text.Clip(c.task.ID, 80))
	default:
		c.reportf(decode.Error, decode.CodeMissingPrompt, c.inputPath("prompt"), "task %q has no prompt", text.Clip(c.task.ID, 80))
	}
}

// checkRemote reports inputs that the agents of the suite's executor do not get.
func (c promptCheck) checkRemote() {
	in := &c.task.Inputs
	remote, others := c.loader.executors().remote()
	if !remote && c.loader.options.Executor == "" {
		for _, key := range []string{"tool", "url", "input", "priority"} {
			if c.has(c.inputPath(key)) {
				c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath(key),
					"%s has no effect with executor %s: only executor remote uses it", key,
					text.Clip(c.loader.suite.Config.Executor, 60))
			}
		}
	}
	if others {
		return
	}
	if len(in.FollowUpPrompts) > 0 {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath("follow_up_prompts"),
			"follow_up_prompts has no effect with executor %s: its agents get only one prompt",
			c.loader.suite.Config.Executor)
	}
	if len(in.Files) > 0 {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath("files"),
			"executor %s sends no files to its agents; only graders see these", c.loader.suite.Config.Executor)
	}
}

// checkHistory reports messages before the prompt that no executor takes, and those that are not followed by an
// answer.
func (c promptCheck) checkHistory() {
	history := c.task.Inputs.History
	if len(history) == 0 {
		return
	}
	if last := len(history) - 1; history[last].Role == "user" {
		c.reportf(decode.Warning, decode.CodeInvalidValue, c.inputPath("history", last), "the history ends with a message of the user, before the prompt of the user")
	}
	without, takers := c.loader.executors().withoutKind(func(k Kind) bool { return k.TakesHistory })
	if without != "" && c.task.Blocked == "" {
		c.reportf(decode.Warning, decode.CodeInvalidValue, c.inputPath("history"),
			"trials with executor %s end in an error because of history; executors that take it: %s", without, takers)
	}
}

// checkVoice reports a confidence of speech recognition that has no effect.
func (c promptCheck) checkVoice() {
	if clients, known := c.loader.executors().clientsOf(); known && clients == nil && c.task.Inputs.Voice != nil {
		c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath("voice"),
			"voice has no effect with executor %s: only messages to clients have it",
			text.Clip(c.loader.suite.Config.Executor, 60))
	}
}

func (c promptCheck) loadFile() {
	l, in := c.loader, &c.task.Inputs
	file := c.promptPath()
	if !filepath.IsLocal(filepath.FromSlash(in.PromptFile)) || !files.Within(l.suite.Root(), file) {
		c.reportf(decode.Error, decode.CodeEscapingPath, c.inputPath("prompt_file"),
			"prompt_file must be a relative path in or below the task's directory")
		return
	}
	at := decode.Place(c.node, c.inputPath("prompt_file")...)
	data, err := l.readFile(file, maxPromptBytes)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			l.Reportf(c.src, at, decode.Error, decode.CodeMissingFile, "no such file: %s", l.display(file))
			return
		}
		l.reportUnreadable(file, c.src, at, err)
		return
	}
	text, _, err := decode.PlainText(data, false)
	if err != nil {
		l.reportUnreadable(file, c.src, at, err)
		return
	}
	if strings.TrimSpace(text) == "" {
		l.Reportf(c.src, at, decode.Warning, decode.CodeMissingPrompt, "%s is empty and is sent unchanged", l.display(file))
	}
	in.Prompt = text
}
