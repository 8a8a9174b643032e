package grader

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"waza/runner/record"
)

// Asker is a [Grader] that asks models, so that its results cost money and may
// be others the next time. Grading a recorded trial anew takes them over as long
// as it would ask the same.
type Asker interface {
	Grader
	// Asks is all that the answer depends on besides what is recorded of the
	// trial. It must encode as JSON.
	Asks(s *Subject) any
}

// hash names what the grader asks; empty when it asks nobody.
func (b *Bound) hash(s *Subject) string {
	g, ok := b.grader.(Asker)
	if !ok || s.Destroyed != "" { // nobody is asked
		return ""
	}
	data, err := json.Marshal([]any{b.Type, g.Asks(s)})
	if err != nil {
		return "" // as if it had never asked the like
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Recall finds among results of the same trial one that need not be asked for
// again: of a grader that asks models, and asked the same. It gets the name and
// the weight that the grader has now. The index is that of the result, -1 for none.
func (b *Bound) Recall(s *Subject, before []record.Grade) (r record.Grade, index int) {
	hash := b.hash(s)
	if hash == "" {
		return r, -1
	}
	index = -1
	for i := range before {
		if before[i].Hash != hash || before[i].Error != "" {
			continue
		}
		if index < 0 || before[i].Name == b.Name && before[index].Name != b.Name {
			index = i
		}
	}
	if index < 0 {
		return r, -1
	}
	r = before[index]
	r.Name, r.Weight, r.SkillsOnly, r.Usage = b.Name, b.Weight, b.SkillsOnly, nil
	return r, index
}
