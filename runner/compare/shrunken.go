package compare

import "waza/runner/stats"

// shrink adds the shrunken differences of pass rates, see [stats.Shrink]. The tasks with the
// largest differences are those whose difference chance exaggerates most. It adds nothing if some
// task could stop early, because such rates do not have the variance of a plain sample.
func (p *pairing) shrink() {
	var list []stats.Noisy
	var at []int
	for i, t := range p.pairs {
		if t.CouldStop() {
			return
		}
		if d, ok := stats.NoisyDifference(t.A.Share, t.B.Share); ok {
			list, at = append(list, d), append(at, i)
		}
	}
	s, ok := stats.Shrink(list)
	if !ok {
		return
	}
	for n, i := range at {
		p.result.Tasks[i].Shrunken = &s.Values[n]
	}
}
