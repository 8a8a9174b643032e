package skillevals

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// A sense is how a key of statements, or the type of a check, reads its value. The same senses apply to the keys of
// cases, to those of maps below them, and to the types and flags of items.
type sense int

const (
	// plain: the result should be so.
	plain sense = iota
	// lacks: the value is a thing that the result must lack.
	lacks
	// forbids is like lacks, but the value can be a sentence that is already negative. Then it is not clear.
	forbids
	// fails: the value is a condition of failure, so a negation in it counts.
	fails
	// together: only the key and the value together say how the result should be, such as must_not_exceed: 200.
	together
	// unclear: a rule below a condition of failure.
	unclear
)

func (s sense) isNegative() bool { return s == lacks || s == forbids || s == fails }

// with returns whether a check looks for the absence of its value if it is below this sense and has a type that may be
// negative itself. Two negations do not ask for the value, except below a condition of failure.
func (s sense) with(negative bool) bool {
	if s == fails {
		return !negative
	}
	return s.isNegative() || negative
}

// Names of keys and types that say how a result should not be.
var (
	prohibition = text.Pattern(`^(?:(?:must|should|may|can|could|do|does|did|will)_(?:not|never|avoid)|dont|doesnt|mustnt|shouldnt|cannot|cant|wont|never|avoid|not)(?:_(.+))?$`)
	adjective   = text.Pattern(`^(?:forbidden|disallowed|prohibited|banned|unexpected|unwanted|undesired|none_of)(?:_|$)|_to_avoid$|^(?:anti_pattern|red_flag)$|` +
		`^(?:negative|anti)_(?:assertions|expectations|checks|criteria|requirements|behaviou?rs?|patterns|statements)$|` +
		`^(?:not_|dis)(?:allowed|permitted|acceptable|wanted|desired|expected)$`)
	// ofContent matches verbs after which the value is a part of the result. After others, such as exceed or skip, the
	// negation of the value means something else.
	ofContent = text.Pattern(`^(?:(?:includes?|contains?|mentions?|says?|outputs?|prints?|writes?|states?|shows?|uses?|have|has|do)(?:_|$))?` +
		`(?:any(?:_of)?|words?|phrases?|terms?|texts?|strings?|topics?|behaviou?rs?|content|commands?|keywords?|items|things|claims?)?$`)
	// negated matches sentences that say what a result does not do.
	negated = text.Pattern(`(?i)^(?:(?:the|an?|its?) )?(?:[\pL'-]+ ){0,2}?(?:(?:do|does|did|is|are|was|must|should|will|can|could|has|have) ?(?:not|n['’]t)\b|(?:ca|wo)n['’]t\b|cannot\b|never\b)|^(?:no|not|avoids?|refuses|without)\b`)
)

// senseOf returns the sense of a name that no definition describes; plain for a name that is no prohibition.
func senseOf(name string) sense {
	name = strings.NewReplacer("'", "", "’", "").Replace(dialect.Snake(name))
	if adjective().MatchString(name) {
		return lacks
	}
	m := prohibition().FindStringSubmatch(name)
	switch {
	case m == nil:
		return plain
	case m[1] == "":
		return forbids
	case ofContent().MatchString(m[1]):
		return lacks
	}
	return together
}

// fits returns the words before a value that the judge reads together with its key.
func fits(key string) string { return fmt.Sprintf("The result fits %q: ", key) }

// below returns the key of statements that a key or a type has below this one. ok is false if it is only a label.
func (k statementKey) below(key string) (of statementKey, ok bool) {
	name := dialect.Snake(key)
	if i := slices.IndexFunc(statementKeys, func(known statementKey) bool { return known.name == name }); i >= 0 {
		of = statementKeys[i]
	} else if of.sense = senseOf(key); of.sense == plain {
		return k, false
	} else if of.sense == together {
		of.prefix = fits(k.path + key)
	}
	if of.name == "" {
		of.name, of.label = key, key
	}
	of.path = k.path
	switch {
	case k.sense == fails && of.sense == together:
		of.sense = unclear
	case k.sense == fails && of.sense.isNegative():
		of.sense = plain
	case k.sense.isNegative() && of.sense == plain:
		of.sense = k.sense
	}
	return of, true
}

// signsOfItems are keys of items whose value, a boolean, says whether the thing should be absent. The value here is the
// one that says so.
var signsOfItems = map[string]bool{
	"absent": true, "negate": true, "negated": true, "negative": true, "invert": true, "inverted": true,
	"expected": false, "expect": false, "present": false, "exists": false, "should_exist": false, "must_exist": false,
	"should_match": false, "must_match": false, "should_contain": false, "must_contain": false, "should_pass": false,
}

// isSign reports whether a key of an item says whether its thing should be absent. Numbers are values of checks.
func isSign(p decode.Pair) bool {
	if _, ok := boolOf(p.Value); !ok || p.Value.Value == "0" || p.Value.Value == "1" {
		return false
	}
	if _, ok := signsOfItems[dialect.Snake(p.Key.Value)]; ok {
		return true
	}
	k, _ := (statementKey{}).below(p.Key.Value)
	return k.sense == lacks || k.sense == forbids
}

// flagOf returns the key with which an item says that its thing should be absent; empty if none does.
func flagOf(item *yaml.Node) string {
	for _, p := range dialect.Pairs(item) {
		if !isSign(p) {
			continue
		}
		is, _ := boolOf(p.Value)
		if of, ok := signsOfItems[dialect.Snake(p.Key.Value)]; ok && is == of || !ok && is {
			return p.Key.Value
		}
	}
	return ""
}

// boolOf returns the value of a boolean. Authors also write them as yes, off, 0 or in quotes.
func boolOf(n *yaml.Node) (is, ok bool) {
	if n = decode.Follow(n); n == nil || n.Kind != yaml.ScalarNode {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on", "y", "1":
		return true, true
	case "false", "no", "off", "n", "0":
		return false, true
	}
	return false, false
}
