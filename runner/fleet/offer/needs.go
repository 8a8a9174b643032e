package offer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
)

// Limits of data from strangers, in numbers and bytes.
const (
	MaxNeeds    = 256 // of one order
	MaxName     = 512 // bytes of the name of a need
	MaxLabels   = 32  // of one machine
	maxLabel    = 64  // bytes
	maxClass    = 64  // bytes of the name of a class
	hashInClass = 8   // characters
)

// Any is the class of orders that every worker can execute.
const Any = "any"

// Labels returns labels as needs, in the form of [record.JoinNeeds].
func Labels(names []string) []record.Need {
	list := make([]record.Need, len(names))
	for i, name := range names {
		list[i] = record.Need{Kind: record.NeedLabel, Name: name}
	}
	return record.JoinNeeds(list)
}

var label = text.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckLabels returns an error if these cannot be the labels of a machine.
func CheckLabels(names []string) error {
	if n := len(names); n > MaxLabels {
		return fmt.Errorf("a machine can have at most %d labels, got %d", MaxLabels, n)
	}
	for _, name := range names {
		if len(name) > maxLabel || !label().MatchString(name) {
			return fmt.Errorf("invalid label %q; use at most %d letters, digits, dots, hyphens and underscores, starting with a letter or digit",
				text.Clip(name, 80), maxLabel)
		}
	}
	return nil
}

// CheckNeeds returns an error if needs, which a stranger can have sent, are not a possible
// result of [record.JoinNeeds].
func CheckNeeds(needs []record.Need) error {
	if n := len(needs); n > MaxNeeds {
		return fmt.Errorf("an order can have at most %d needs, got %d", MaxNeeds, n)
	}
	kinds := []record.NeedKind{record.NeedExecutor, record.NeedGrader, record.NeedAgent, record.NeedProgram, record.NeedKey, record.NeedLabel,
		record.NeedSandbox}
	for _, n := range needs {
		if !slices.Contains(kinds, n.Kind) {
			return fmt.Errorf("unknown kind of need %q; a newer version of waza might support it", text.Clip(string(n.Kind), 80))
		}
		if n.Name == "" || len(n.Name) > MaxName ||
			strings.ContainsFunc(n.Name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
			return fmt.Errorf("invalid name of a need %q; it must be text of 1 to %d bytes", text.Clip(n.Name, 80), MaxName)
		}
	}
	if !slices.Equal(needs, record.JoinNeeds(needs)) {
		return fmt.Errorf("needs must be sorted and unique")
	}
	return nil
}

// Class returns the name of the class of orders with these needs: [Any] without needs, otherwise
// at most 64 letters, digits, - and _ that people can read. The order of the needs does not
// matter. Different needs have different classes: the name ends with a hash if it would be
// ambiguous otherwise.
func Class(needs []record.Need) string {
	needs = record.JoinNeeds(needs)
	if len(needs) == 0 {
		return Any
	}
	var parts []string
	var whole strings.Builder
	exact := true
	for _, n := range needs {
		fmt.Fprintf(&whole, "%s\x00%s\x00", n.Kind, n.Name)
		name := strings.Map(plain, n.Name)
		exact = exact && name == n.Name && !misleading().MatchString(name)
		parts = append(parts, string(n.Kind)+"-"+name)
	}
	name := strings.Join(parts, "_")
	if exact && len(name) <= maxClass {
		return name
	}
	sum := sha256.Sum256([]byte(whole.String()))
	end := "_" + hex.EncodeToString(sum[:])[:hashInClass]
	return name[:min(len(name), maxClass-len(end))] + end
}

// misleading matches names that look like the boundary of two needs, or like the hash of a
// class.
var misleading = text.Pattern(`_(executor|grader|agent|program|key|label|sandbox)-|_[0-9a-f]{8}$`)

// plain returns the form of a character in classes.
func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
		return r
	}
	return '_'
}
