package power

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
)

// origins says where the figures come from.
func (p *Plan) origins() []string {
	lines := []string{"Rates: assumed, 67 % on average, because no trial of these tasks is recorded."}
	if p.Records.Trials > 0 {
		mean := 0.0
		for _, t := range p.Tasks {
			mean += t.Rate / float64(len(p.Tasks))
		}
		lines[0] = fmt.Sprintf("Rates: from %s in %s, shrunken to their mean; %s on average.",
			text.Count(p.Records.Trials, "trial", "trials"), text.Count(p.Records.Runs, "run", "runs"), figure.Percent(mean))
	}
	sd := fmt.Sprintf("Effects: their standard deviation between tasks is %s points", strconv.FormatFloat(100*p.Records.EffectSD, 'g', 2, 64))
	if p.Records.EffectTasks > 0 {
		sd += fmt.Sprintf(", from %d tasks of runs %s and an assumption of 8 points.", p.Records.EffectTasks, strings.Join(p.Records.EffectRuns, " and "))
	} else {
		sd += ", an assumption: no two recorded runs have different agents."
	}
	lines = append(lines, sd)
	if p.PerTrial.Seconds == nil {
		lines = append(lines, "Tokens, cost and time: unknown, because no trial is recorded.")
	} else {
		lines = append(lines, "Tokens, cost and time: means of the recorded trials. Time is that of all trials one after the other.")
	}
	return append(lines, "Powers: computed by the normal approximation (these tasks) and the noncentral t distribution (tasks like these).")
}

// advice names the cheapest ways to the power.
func (p *Plan) advice() string {
	var s strings.Builder
	fmt.Fprintf(&s, "Cheapest for %s power: ", figure.Percent(p.Power))
	for i, q := range []struct {
		name string
		of   func(Row) *float64
	}{
		{"these tasks", func(r Row) *float64 { return r.These }},
		{"tasks like these", func(r Row) *float64 { return r.Like }},
	} {
		if i > 0 {
			s.WriteString("; ")
		}
		if r := p.Cheapest(q.of); r != nil {
			fmt.Fprintf(&s, "%s × %s for %s (%s)", text.Count(r.Tasks, "task", "tasks"), text.Count(r.Trials, "trial", "trials"), q.name, spent(r.All, r.CostUSD))
		} else {
			fmt.Fprintf(&s, "no row for %s", q.name)
		}
	}
	s.WriteString(". ")
	fmt.Fprintf(&s, "For these tasks, `waza decide A B --better-by %s` errs in at most 5 %% and needs about ", number(100*p.Detect))
	for i, d := range p.Decide {
		if i > 0 {
			s.WriteString(", ")
		}
		pairs := rounded(d.Pairs)
		fmt.Fprintf(&s, "%d pairs (%s) for a gain of %s", pairs, spent(2*pairs, scaled(p.PerTrial.CostUSD, 2*pairs)), number(100*d.Gain))
	}
	s.WriteString(" points.")
	return s.String()
}

// rounded rounds to two digits.
func rounded(x float64) int {
	if x < 1 {
		return 1
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(x))-1))
	return int(math.Round(x/unit) * unit)
}

func scaled(perTrial *float64, trials int) *float64 {
	if perTrial == nil {
		return nil
	}
	usd := *perTrial * float64(trials)
	return &usd
}

func spent(trials int, usd *float64) string {
	if usd == nil {
		return text.Count(trials, "trial", "trials")
	}
	return text.Count(trials, "trial", "trials") + ", " + Cost(*usd)
}

// Points names a gain: "a gain of 5 points".
func Points(share float64) string {
	if share == 0.01 {
		return "a gain of 1 point"
	}
	return "a gain of " + number(100*share) + " points"
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// Cost formats a cost in US dollars, to the cent from a cent on.
func Cost(usd float64) string {
	if usd >= 0.01 {
		return fmt.Sprintf("$%.2f", usd)
	}
	return figure.Cost(usd)
}
