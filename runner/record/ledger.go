package record

// Ledger splits the cost of trials by spender. It includes all attempts, also those that ended
// in error or were interrupted. A nil usage is unknown. All token counts and costs that waza
// shows come from a ledger.
type Ledger struct {
	// Agent is the usage of agents. If an agent reports no cost, the cost is the price of its
	// tokens, where config.prices or the built-in table has a price for the model.
	Agent *Usage `json:"agent,omitempty"`
	// Judges is the usage of graders that ask models, summed over all calls. In a run's ledger
	// it includes the proposals of system prompts.
	Judges *Usage `json:"judges,omitempty"`
	// Responder is the usage of models that replied to agents in the role of their users.
	Responder *Usage `json:"responder,omitempty"`
}

// Total returns the sum of all parts; nil when all are unknown.
func (l *Ledger) Total() *Usage {
	if l == nil {
		return nil
	}
	return AddUsage(AddUsage(AddUsage(nil, l.Agent), l.Judges), l.Responder)
}

// Plus returns the sum of two ledgers. Either may be nil.
func (l *Ledger) Plus(o *Ledger) *Ledger {
	if o == nil || o.Agent == nil && o.Judges == nil && o.Responder == nil {
		return l
	}
	var sum Ledger
	if l != nil {
		sum = *l
	}
	sum.Agent, sum.Judges, sum.Responder = AddUsage(sum.Agent, o.Agent), AddUsage(sum.Judges, o.Judges), AddUsage(sum.Responder, o.Responder)
	return &sum
}

// AddUsage returns the sum of two usages. Either may be nil.
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

// judgesUsage returns the cost of asking models according to the recorded details of graders.
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
