package skill

import "strings"

// An Outline is the structure of a Markdown text. Lines count from 1.
type Outline struct {
	Sections []Section
	Blocks   []Block
	// Steps are the lines with items of numbered lists.
	Steps []int
}

// A Section is a heading.
type Section struct {
	Title string
	Level int // 1 to 6
	Line  int
}

// A Block is a fenced block of code.
type Block struct {
	Language string
	Line     int // of the opening fence
	Lines    int // between the fences
}

// Sections returns the headings of the body, with the lines of the file.
func (s *Skill) Sections() []Section {
	sections := OutlineOf(s.Body).Sections
	for i := range sections {
		sections[i].Line += s.BodyLine - 1
	}
	return sections
}

// OutlineOf finds headings (#), fenced blocks and items of numbered lists. A block without an
// end extends to the end of the text.
func OutlineOf(text string) *Outline {
	o := &Outline{}
	eachLine(text, func(line int, s string, in *Block) {
		switch {
		case in != nil:
		case heading(s) > 0:
			level := heading(s)
			title := strings.TrimSpace(strings.TrimRight(strings.TrimSpace(s)[level:], "# "))
			o.Sections = append(o.Sections, Section{title, level, line})
		case isStep(s):
			o.Steps = append(o.Steps, line)
		}
	}, func(b Block) { o.Blocks = append(o.Blocks, b) })
	return o
}

// Prose calls do with each line of a Markdown text outside fenced blocks; lines count from 1.
func Prose(text string, do func(line int, text string)) {
	eachLine(text, func(line int, s string, in *Block) {
		if in == nil {
			do(line, s)
		}
	}, func(Block) {})
}

// eachLine calls do with each line; in is the block of the line, including fences. It calls
// block at the end of each block.
func eachLine(text string, do func(line int, s string, in *Block), block func(Block)) {
	var in *Block
	fence := ""
	line := 0
	for s := range strings.SplitSeq(text, "\n") {
		line++
		mark := fenceOf(s)
		switch {
		case in == nil && mark != "":
			fence = mark
			in = &Block{Line: line, Language: language(s, mark)}
			do(line, s, in)
		case in != nil && mark != "" && mark[0] == fence[0] && len(mark) >= len(fence) && strings.TrimSpace(s) == mark:
			do(line, s, in)
			block(*in)
			in = nil
		default:
			if in != nil {
				in.Lines++
			}
			do(line, s, in)
		}
	}
	if in != nil {
		block(*in)
	}
}

// fenceOf returns the fence at the start of a line: three or more ` or ~; empty if there is
// none.
func fenceOf(line string) string {
	s := strings.TrimLeft(line, " \t")
	for _, c := range []string{"`", "~"} {
		if rest := strings.TrimLeft(s, c); len(s)-len(rest) >= 3 && !(c == "`" && strings.Contains(rest, "`")) {
			return s[:len(s)-len(rest)]
		}
	}
	return ""
}

func language(line, fence string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(line, " \t")[len(fence):]), " ")
	return word
}

// heading returns the level of a heading, 0 for other lines.
func heading(line string) int {
	s := strings.TrimSpace(line)
	rest := strings.TrimLeft(s, "#")
	level := len(s) - len(rest)
	if level < 1 || level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' || len(line)-len(strings.TrimLeft(line, " ")) > 3 {
		return 0
	}
	return level
}

// isStep reports whether a line starts with a number and a full stop or bracket.
func isStep(line string) bool {
	s := strings.TrimLeft(line, " \t")
	rest := strings.TrimLeft(s, "0123456789")
	digits := len(s) - len(rest)
	return digits > 0 && digits <= 9 && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "))
}
