package readiness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/tokens"
)

// Limits for advice.
const (
	mostModules     = 3   // files in references/
	mostTokens      = 500 // of a SKILL.md that is not complex
	mostProhibition = 5
	mostWords       = 60  // of a description
	mostLines       = 500 // of a SKILL.md
)

var (
	prohibition = text.Pattern(`(?i)\b(must not|never|always|forbidden|prohibited)\b`)
	specific    = text.Pattern(`(?:^|[\s"'(=])(/(?:usr|home|etc|var|opt|tmp|Users)/[^\s"'<>)]+|[A-Za-z]:\\[^\s"']+)|\b(?:\d{1,3}\.){3}\d{1,3}\b|\bhttps?://[^\s/"'<>)]+:\d+|\blocalhost:\d+\b`)
	verbs       = text.Pattern(`(?i)\b(analy[sz]e|build|check|configure|convert|create|debug|deploy|design|edit|explain|extract|fill|find|fix|format|generate|help|implement|install|make|manage|merge|migrate|monitor|optimi[sz]e|process|read|refactor|review|run|search|set up|split|summari[sz]e|test|transform|translate|update|validate|write)(s|es|ed|ing)?\b`)
)

// adviceOf returns checks that do not affect whether a skill is ready.
func adviceOf(s *skill.Skill) []Finding {
	list := []Finding{}
	add := func(name, well string, wrong bool, line int, evidence, format string, args ...any) {
		if wrong {
			list = append(list, warned(name, line, evidence, format, args...))
		} else {
			list = append(list, passed(name, well))
		}
	}
	modules := modulesOf(s)
	add("module-count", text.Count(modules, "file", "files")+" in references/", modules > mostModules, 0, "",
		"references/ has %d files; agents use skills with up to %d best", modules, mostModules)
	n, err := tokens.Count(s.Text)
	if err != nil {
		n = tokens.Estimate(s.Text)
	}
	add("complexity", text.Count(n, "token", "tokens"), n > mostTokens, 0, "",
		"SKILL.md has %d tokens; concise skills have up to %d", n, mostTokens)
	found := prohibition().FindAllStringIndex(s.Body, -1)
	line, evidence := 0, ""
	if len(found) > 0 {
		line, evidence = s.BodyLine+strings.Count(s.Body[:found[0][0]], "\n"), s.Body[found[0][0]:found[0][1]]
	}
	add("negative-delta-risk", "few absolute rules", len(found) > mostProhibition, line, evidence,
		"%d absolute rules (must not, never, always …) can make agents worse at other tasks", len(found))
	steps := len(skill.OutlineOf(s.Body).Steps)
	add("procedural-content", "describes steps or actions", steps == 0 && !verbs().MatchString(s.Description),
		s.Line("description"), "", "no numbered steps, and no action in the description")
	line, evidence = specificIn(s)
	add("over-specificity", "no absolute paths, addresses or ports", line > 0, line, evidence,
		"an absolute path, address or port is valid on one machine only")
	words := len(strings.Fields(s.Description))
	add("cross-model-density", fmt.Sprintf("the description has %d words", words), words > mostWords,
		s.Line("description"), "", "the description has %d words; smaller models handle up to %d", words,
		mostWords)
	sections := s.Sections()
	bodyLine := min(s.BodyLine, 1+strings.Count(s.Text, "\n")) // a frontmatter can end the file
	add("body-structure", text.Count(len(sections), "heading", "headings"), len(sections) == 0, bodyLine, "", "the body has no headings")
	lines := strings.Count(s.Text, "\n")
	add("progressive-disclosure", text.Count(lines, "line", "lines"), lines > mostLines, 0, "",
		"SKILL.md has %d lines; above %d, move details to references/", lines, mostLines)
	return list
}

// modulesOf returns the number of files in references/.
func modulesOf(s *skill.Skill) (n int) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "references"))
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			n++
		}
	}
	return n
}

// specificIn returns the first line with a path, address or port of one machine.
func specificIn(s *skill.Skill) (line int, evidence string) {
	skill.Prose(s.Body, func(at int, text string) {
		if found := specific().FindString(text); found != "" && line == 0 {
			line, evidence = s.BodyLine+at-1, strings.TrimLeft(found, " \t\"'(=")
		}
	})
	return line, evidence
}
