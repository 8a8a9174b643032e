package grader

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"waza/runner/record"
)

// An Asker is a [Grader] that asks models. Its results cost money and can change when it asks
// again. Regrading a recorded trial therefore reuses them as long as the question would be the
// same.
type Asker interface {
	Grader
	// Asks returns everything that the answer depends on besides the recorded trial. It must
	// encode as JSON.
	Asks(s *Subject) any
}

// hash identifies the question that the grader asks about a trial or a turn; it is empty if the grader asks no model.
func (b *Bound) hash(s *Subject) string {
	g, ok := b.grader.(Asker)
	if !ok || s.Destroyed != "" { // no model is asked
		return ""
	}
	question := []any{b.Type, g.Asks(s)}
	if b.negate {
		question = append(question, "negated")
	}
	if b.Turn > 0 {
		question = append(question, b.Turn)
	}
	data, err := json.Marshal(question)
	if err != nil {
		return "" // as if the question were new
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Recall finds a result to reuse among earlier results of the same trial: one without an error
// from a grader that asked the same question. The result gets the current name and weight of the
// grader. index is the position of the result in before, or -1 for none.
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
	r.Optional, r.Group = b.optional, b.group
	return r, index
}
