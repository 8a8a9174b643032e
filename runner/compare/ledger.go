package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"waza/runner/baselines"
	"waza/runner/record"
)

// A Ledger counts how often each baseline was compared.
type Ledger interface {
	// Ask counts a question with a baseline once, and returns its place, from 1 on. The same
	// question keeps its place. other is the run that is compared with the baseline if it is the only
	// one; the question then counts with whichever of both has more. With an error, the place is the
	// best that is known.
	Ask(baseline, other, question string) (place int, err error)
}

// ask counts the comparisons of a suite, which are one question, and returns their place. It is nil
// if nobody counts them, or if there is nothing to test. Runs that are still active are not part of
// the question, because they get no verdict.
func ask(o Options, pairings []*pairing) *Place {
	if o.Ledger == nil {
		return nil
	}
	var own []*pairing
	for _, p := range pairings {
		if len(p.pairs) > 0 && !p.active() {
			own = append(own, p)
		}
	}
	if len(own) == 0 {
		return nil
	}
	other := ""
	if len(own) == 1 {
		other = own[0].run.key()
	}
	place, err := o.Ledger.Ask(own[0].ref.key(), other, question(own, o.About))
	p := &Place{Place: place, Weight: baselines.Weight(place)}
	if err != nil {
		p.Error = err.Error()
	}
	return p
}

// key identifies a run or a cell by its name, also if its result was read from a file, and a result of
// another tool by its content.
func (s *side) key() string {
	if s.head.RunID != "" && s.rec.Imported == nil {
		return s.head.Name
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", s.head.Name, s.head.Suite.Name)
	for _, t := range s.tasks {
		t.digest(h)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// question identifies the counted trials of the compared tasks, and the question that the caller chose:
// choosing the better one of two answers is a second comparison. The order of runs does not matter.
func question(pairings []*pairing, about record.Question) string {
	var runs []string
	for _, p := range pairings {
		ref, run := sha256.New(), sha256.New()
		for _, t := range p.pairs {
			t.ref.digest(ref)
			t.run.digest(run)
		}
		runs = append(runs, p.ref.key()+" "+hex.EncodeToString(ref.Sum(nil)), p.run.key()+" "+hex.EncodeToString(run.Sum(nil)))
	}
	slices.Sort(runs)
	h := sha256.New()
	fmt.Fprintln(h, about)
	for _, r := range runs {
		fmt.Fprintln(h, r)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digest adds the task and its counted trials to a hash.
func (t *sideTask) digest(h hash.Hash) {
	fmt.Fprintf(h, "%q %d", t.id, len(t.trials))
	for _, x := range t.trials {
		fmt.Fprintf(h, " %d %t", x.num, x.passed)
	}
	for _, scores := range [][]float64{t.passed, t.other} {
		sorted := slices.Clone(scores)
		slices.Sort(sorted)
		fmt.Fprintf(h, " %v", sorted)
	}
	fmt.Fprintln(h)
}
