package runner

import (
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/provider"
)

// Ledger is what trials cost by who spent it: all attempts, those in error and those
// that were cut short included. A nil usage means that nothing is known of it. Every
// figure of tokens and costs that waza shows is read from a ledger.
type Ledger struct {
	// Agent is what the agents spent. A cost that an agent does not report is the price
	// of its tokens, where config.prices or the built-in table has one for the model.
	Agent *executor.Usage `json:"agent,omitempty"`
	// Judges is what graders spent that ask models, each time that they asked.
	Judges *executor.Usage `json:"judges,omitempty"`
}

// Total is what both spent; nil when nothing is known of either.
func (l *Ledger) Total() *executor.Usage {
	if l == nil {
		return nil
	}
	return addUsage(addUsage(nil, l.Agent), l.Judges)
}

// plus sums two ledgers, each of which may be nil.
func (l *Ledger) plus(o *Ledger) *Ledger {
	if o == nil || o.Agent == nil && o.Judges == nil {
		return l
	}
	var sum Ledger
	if l != nil {
		sum = *l
	}
	sum.Agent, sum.Judges = addUsage(sum.Agent, o.Agent), addUsage(sum.Judges, o.Judges)
	return &sum
}

func addUsage(sum, u *executor.Usage) *executor.Usage {
	if u == nil {
		return sum
	}
	if sum == nil {
		sum = &executor.Usage{}
	}
	total := sum.Add(*u)
	return &total
}

// Ledger is what the trial cost; nil when that is not known. It must not be changed.
func (res *TrialResult) Ledger() *Ledger {
	if res.Spent != nil {
		return res.Spent
	}
	// Older records hold the usage of each attempt and the judges' details alone.
	sum := (*Ledger)(nil).plus(&Ledger{res.Usage, judgesUsage(res.Graders)})
	for _, a := range res.Attempts {
		sum = sum.plus(&Ledger{a.Usage, judgesUsage(a.Graders)})
	}
	return sum
}

// ledger is what the trials of the task cost.
func (res *TaskResult) ledger() *Ledger {
	if res.UsageByRole == nil && res.Usage != nil { // an older record
		return &Ledger{Agent: res.Usage}
	}
	return res.UsageByRole
}

// spentBefore is what of the ledger an earlier run spent, from which the trial was
// taken over; nil when it was not.
func (res *TrialResult) spentBefore() *Ledger {
	switch {
	case res.Cached == nil:
		return nil
	case res.Cached.Spent != nil || res.Spent != nil:
		return res.Cached.Spent
	}
	return res.Ledger()
}

// SpentHere is what the trial cost its own run: of one that was taken over from an
// earlier run, what judges spent since. It is nil when that is nothing.
func (res *TrialResult) SpentHere() *Ledger {
	if res.Cached == nil {
		return res.Ledger()
	}
	all, before := res.Ledger().Total(), res.spentBefore().Total()
	switch {
	case all == nil:
		return nil
	case before == nil:
		return res.Ledger()
	case *all == *before:
		return nil
	}
	judges, earlier := res.Ledger().Judges, res.spentBefore().Judges
	if judges == nil {
		return nil
	}
	since := *judges
	if earlier != nil {
		since.InputTokens = max(0, since.InputTokens-earlier.InputTokens)
		since.OutputTokens = max(0, since.OutputTokens-earlier.OutputTokens)
		since.TotalTokens = max(0, since.TotalTokens-earlier.TotalTokens)
		since.CostUSD = max(0, since.CostUSD-earlier.CostUSD)
	}
	return &Ledger{Judges: &since}
}

// judgesUsage is what recorded details of graders say that asking models cost.
func judgesUsage(graders []grader.Result) *executor.Usage {
	var sum *executor.Usage
	for i := range graders {
		details, _ := graders[i].Details.(map[string]any)
		usage, ok := details["usage"].(map[string]any)
		if !ok {
			continue
		}
		number := func(key string) float64 { n, _ := usage[key].(float64); return max(0, n) }
		sum = addUsage(sum, &executor.Usage{
			InputTokens: int64(number("inputTokens")), OutputTokens: int64(number("outputTokens")),
			TotalTokens: int64(number("totalTokens")), CostUSD: number("costUsd"),
		})
	}
	return sum
}

// providerUsage is a usage as budgets count it.
func providerUsage(u *executor.Usage) provider.Usage {
	if u == nil {
		return provider.Usage{}
	}
	return provider.Usage{InputTokens: u.InputTokens, OutputTokens: max(u.OutputTokens, u.Total()-u.InputTokens), CostUSD: u.CostUSD}
}

// priced is the usage with the price of the model, where it has no cost.
func (p *Plan) priced(model string, u *executor.Usage) *executor.Usage {
	if u == nil || u.CostUSD > 0 {
		return u
	}
	with := *u
	with.CostUSD = p.pool.Price(model, providerUsage(u)).CostUSD
	return &with
}
