package tally

import (
	"cmp"
	"maps"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// positions counts, by judge, the comparisons of two outputs in both orders.
type positions map[string]*record.JudgePosition

func (p positions) of(judge string) *record.JudgePosition {
	if p[judge] == nil {
		p[judge] = &record.JudgePosition{Judge: judge}
	}
	return p[judge]
}

// add adds the opinions of judges about a trial.
func (p positions) add(res *record.Trial) {
	for i := range res.Graders {
		for _, o := range res.Graders[i].Opinions() {
			if len(o.Orders) != 2 {
				continue
			}
			n := p.of(o.Judge)
			n.Compared++
			switch o.Place() {
			case "first":
				n.First++
			case "second":
				n.Second++
			}
		}
	}
}

// result adds the comparisons of models, and returns the judges who evidently prefer a place: a
// sign test of First against Second is significant at 5 %, divided by the number of judges.
//
// For example, a judge who always prefers the first output does so in 6 comparisons of 6: p is
// 2 × (1/2)^6 = 0.031. With 5 it is 0.063, which is no evidence.
func (p positions) result(made []*record.CaseComparison) []record.JudgePosition {
	all := positions{}
	for judge, n := range p {
		sum := *n
		all[judge] = &sum
	}
	for _, c := range made {
		for _, judge := range c.Judges {
			all.of(judge).Compared++
		}
		for _, judge := range c.PreferredFirst {
			all.of(judge).First++
		}
		for _, judge := range c.PreferredSecond {
			all.of(judge).Second++
		}
	}
	var list []record.JudgePosition
	for n := range maps.Values(all) {
		n.P = stats.McNemar(n.Second, n.First).P
		if n.P <= (1-stats.DefaultConfidence)/float64(len(all)) {
			list = append(list, *n)
		}
	}
	slices.SortFunc(list, func(a, b record.JudgePosition) int { return cmp.Compare(a.Judge, b.Judge) })
	return list
}
