package record

// Ledger is what trials cost by who spent it: all attempts, those in error and those
// that were cut short included. A nil usage means that nothing is known of it. Every
// figure of tokens and costs that waza shows is read from a ledger.
type Ledger struct {
	// Agent is what the agents spent. A cost that an agent does not report is the price
	// of its tokens, where config.prices or the built-in table has one for the model.
	Agent *Usage `json:"agent,omitempty"`
	// Judges is what graders spent that ask models, each time that they asked, and in that
	// of a run what it spent on proposals for system prompts.
	Judges *Usage `json:"judges,omitempty"`
}

// Total is what both spent; nil when nothing is known of either.
func (l *Ledger) Total() *Usage {
	if l == nil {
		return nil
	}
	return AddUsage(AddUsage(nil, l.Agent), l.Judges)
}

// Plus sums two ledgers, each of which may be nil.
func (l *Ledger) Plus(o *Ledger) *Ledger {
	if o == nil || o.Agent == nil && o.Judges == nil {
		return l
	}
	var sum Ledger
	if l != nil {
		sum = *l
	}
	sum.Agent, sum.Judges = AddUsage(sum.Agent, o.Agent), AddUsage(sum.Judges, o.Judges)
	return &sum
}

// AddUsage returns the sum of two usages, each of which may be nil.
func AddUsage(sum, u *Usage) *Usage {
	if u == nil {
		return sum
	}
	if sum == nil {
		sum = &Usage{}
	}
	total := sum.Add(*u)
	return &total
}

// judgesUsage is what recorded details of graders say that asking models cost.
func judgesUsage(graders []Grade) *Usage {
	var sum *Usage
	for i := range graders {
		details, _ := graders[i].Details.(map[string]any)
		usage, ok := details["usage"].(map[string]any)
		if !ok {
			continue
		}
		number := func(key string) float64 { n, _ := usage[key].(float64); return max(0, n) }
		sum = AddUsage(sum, &Usage{
			InputTokens: int64(number("inputTokens")), OutputTokens: int64(number("outputTokens")),
			TotalTokens: int64(number("totalTokens")), CostUSD: number("costUsd"),
		})
	}
	return sum
}
