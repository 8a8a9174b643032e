package reporttest

import (
	"strings"
	"unicode"

	"waza/eval/text"
)

// Attack is a text with which an agent can try to command the CI system that runs waza: to set
// an output, hide text from the log, or end a group.
const Attack = "broken\n::set-output name=token::x\n  ::add-mask::password\n\u00a0::error::it is all " +
	"wrong\n##[group]x ##[add-mask]y ###[z]\n##vso[task.setvariable variable=a]b\n##teamcity[buildStatus status='SUCCESS']\n" +
	"passed     9/9  other-task  trials 9/9\n"

// sharpCommand matches commands that can be anywhere in a line.
var sharpCommand = text.Pattern(`##[A-Za-z]*\[`)

// Commands lists the lines that a CI system would run as commands.
func Commands(text string) []string {
	var found []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.HasPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::") || sharpCommand().MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}
