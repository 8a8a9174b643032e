package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/question"
	"waza/eval/files"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/record"
)

// mostTools limits the tools and skills that a task requires.
const mostTools = 10

// maxRootFiles limits the number of files of --root that an agent gets, and maxRootBytes their
// total size.
const (
	maxRootFiles = 2000
	maxRootBytes = 64 << 20
)

func (o Options) newTask() *cli.Command {
	return &cli.Command{
		Name: "task", Usage: "create a task",
		Subcommands: []*cli.Command{{
			Name: "from-prompt", Usage: "create a task from a prompt by running it once", ArgsUsage: "PROMPT FILE",
			Description: `Lets an agent or a model answer PROMPT once and writes a task to FILE. The graders of the
task accept this answer: they require words of the answer that are about the prompt, the
tools it called and the skills it used. Read the answer and the graders before you rely
on them: they describe one run.

The agent gets a copy of the files of --root, and the skills there, except files that
version control ignores.

Examples:
  waza new task from-prompt "Explain sample.py" evals/demo/tasks/explain.yaml --agent copilot
  waza new task from-prompt "Explain sample.py" explain.yaml --root fixtures --tags smoke,explain`,
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "root", Usage: "give the agent the files below `DIR`", Value: ".", DefaultText: "this directory"},
				&cli.StringFlag{Name: "testname", Usage: "name the task `NAME`", Value: "auto-generated-test", DefaultText: "auto-generated-test"},
				&cli.StringSliceFlag{Name: "tags", Usage: "give the task `TAGS`, separated by commas; repeatable", DefaultText: "none"},
				&cli.BoolFlag{Name: "overwrite", Usage: "replace FILE if it exists"},
				flags.JSON("print the file and the inferred graders as JSON"),
			}, question.Flags()...),
			Action: o.fromPrompt,
		}},
		Flags: []cli.Flag{flags.JSON("print the file as JSON; give the flag to from-prompt")},
		Description: `Examples:
  waza new task from-prompt "Explain sample.py" evals/demo/tasks/explain.yaml --agent copilot`,
		Action: flags.Required("waza new task from-prompt PROMPT FILE", "waza new task requires from-prompt"),
	}
}

// inferred is the output of waza new task --json.
type inferred struct {
	File  string   `json:"file"`
	ID    string   `json:"id"`
	Run   string   `json:"run"` // the run that answered the prompt
	Words []string `json:"words"`
	Tools []string `json:"tools"`
	// Skills lists the skills that the agent used.
	Skills []string `json:"skills"`
}

func (o Options) fromPrompt(c *cli.Context) error {
	if c.NArg() != 2 {
		return exit.Usagef(`waza new task from-prompt "Explain sample.py" explain.yaml`,
			"waza new task from-prompt takes a prompt and a file, got %d arguments", c.NArg())
	}
	prompt, file := strings.TrimSpace(c.Args().Get(0)), c.Args().Get(1)
	switch {
	case prompt == "" || len(prompt) > maxPropose*4:
		return exit.Usagef("", "the prompt must have 1 to %d bytes, got %d", maxPropose*4, len(prompt))
	case !isYAML(filepath.Base(file)):
		return exit.Usagef("give a name such as tasks/explain.yaml", "FILE must be a YAML file, got %q", file)
	case files.IsDir(file):
		return exit.Usagef("name a file in that directory", "%s is a directory, expected a file", file)
	}
	if _, err := os.Lstat(file); err == nil && !c.Bool("overwrite") {
		return exit.Usagef("--overwrite replaces it", "%s exists", file)
	}
	root := c.String("root")
	given, err := rootFiles(root)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	trial, run, err := o.Ask(ctx, c, question.Question{
		Prompt: prompt, Skills: skillsBelow(root, mostTools), Files: given, Root: absolute(root),
	})
	if err != nil {
		return finish(ctx, err)
	}
	r := inferred{
		File: file, Run: run, Words: output.NonNil(wordsOf(trial.Output, prompt)),
		Tools: output.NonNil(toolsOf(trial)), Skills: output.NonNil(skillsOf(trial)),
	}
	t := taskData{
		Name: text.Clip(c.String("testname"), 80), Prompt: withoutVariables(prompt),
		Description: "Made from run " + run + ". The graders accept the agent's behaviour in that run.",
		Tags:        tagsOf(c.StringSlice("tags")), Graders: r.graders(),
	}
	if t.ID = toName(t.Name); t.ID == "" {
		t.ID = "auto-generated-test"
	}
	r.ID = t.ID
	if err := files.MakeDir(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	if err := create(filepath.Dir(file), file, render("task.yaml", t)); err != nil {
		return err
	}
	if c.Bool("json") {
		return o.Stdout.JSON(r)
	}
	fmt.Fprintf(o.Stdout, "➕ %s\n", output.Clean(file))
	_, err = fmt.Fprintf(o.Stdout, "Made from run %s: %s, %s, %s. waza runs show %s prints the answer.\n", run,
		text.Count(len(r.Words), "word", "words"), text.Count(len(r.Tools), "tool", "tools"), text.Count(len(r.Skills), "skill", "skills"), run)
	return err
}

// rootFiles lists the files below a directory that an agent gets, relative to it. It skips
// hidden directories and installed packages.
func rootFiles(root string) (list []string, err error) {
	if !files.IsDir(root) {
		return nil, exit.Usagef("give a directory", "--root must be a directory, got %s", root)
	}
	var size int64
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		hidden := path != root && strings.HasPrefix(name, ".")
		switch {
		case e.IsDir() && (hidden || name == "node_modules" || name == "vendor"):
			return filepath.SkipDir
		case e.IsDir() || hidden || !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		list = append(list, filepath.ToSlash(rel))
		if size += info.Size(); size > maxRootBytes || len(list) > maxRootFiles {
			return exit.Usagef("name a smaller directory, or an empty one for no files",
				"--root %s must not contain more than %d files or %d MiB", root, maxRootFiles, maxRootBytes>>20)
		}
		return nil
	})
	var problem *exit.Problem
	if err != nil && !errors.As(err, &problem) {
		err = fmt.Errorf("--root: %w", err)
	}
	return list, err
}

// tagsOf splits lists of tags.
func tagsOf(values []string) (tags []string) {
	for _, v := range values {
		for tag := range strings.SplitSeq(v, ",") {
			if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}

// wordsOf returns words of an answer that are also in the prompt, or else its first meaningful
// words.
func wordsOf(answer, prompt string) []string {
	all := keywords(answer, 1000)
	asked := keywords(prompt, 1000)
	words := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return !slices.Contains(asked, w) })
	for _, w := range all {
		if len(words) < mostKeywords && !slices.Contains(words, w) && len(asked) == 0 {
			words = append(words, w)
		}
	}
	return words[:min(len(words), mostKeywords)]
}

func toolsOf(t *record.Trial) (names []string) {
	for _, e := range t.Transcript {
		if e.Tool != nil && e.Tool.Name != "" && !slices.Contains(names, e.Tool.Name) && len(names) < mostTools {
			names = append(names, e.Tool.Name)
		}
	}
	return names
}

func skillsOf(t *record.Trial) (names []string) {
	for _, e := range t.Transcript {
		if e.Type == record.EntrySkill && e.Text != "" && !slices.Contains(names, e.Text) && len(names) < mostTools {
			names = append(names, e.Text)
		}
	}
	return names
}

// graders returns graders that accept the recorded behavior.
func (r inferred) graders() []graderData {
	list := []graderData{{Type: "text", Name: "answers", Config: []configData{{"regex_match", []string{"[[:alnum:]]"}}}}}
	if len(r.Words) > 0 {
		list[0] = graderData{Type: "text", Name: "on-topic", Config: []configData{{"contains", r.Words}}}
	}
	if len(r.Tools) > 0 {
		list = append(list, graderData{Type: "behavior", Name: "uses-tools", Config: []configData{{"required_tools", r.Tools}}})
	}
	if len(r.Skills) > 0 {
		list = append(list, graderData{Type: "skill_invocation", Name: "uses-skills", Config: []configData{{"required_skills", r.Skills}}})
	}
	return list
}

// skillsBelow returns at most n directories of skills at or below a directory.
func skillsBelow(dir string, n int) []string {
	found := skill.Below(dir)
	for i := range found {
		found[i] = absolute(found[i])
	}
	return found[:min(len(found), n)]
}
