package plan

import (
	"waza/runner/provider"
	"waza/runner/record"
)

// ProviderUsage is a usage as budgets count it.
func ProviderUsage(u *record.Usage) provider.Usage {
	if u == nil {
		return provider.Usage{}
	}
	return provider.Usage{InputTokens: u.InputTokens, OutputTokens: max(u.OutputTokens, u.Total()-u.InputTokens), CostUSD: u.CostUSD}
}

// Priced is the usage with the price of the model, where it has no cost.
func (p *Plan) Priced(model string, u *record.Usage) *record.Usage {
	if u == nil || u.CostUSD > 0 {
		return u
	}
	with := *u
	with.CostUSD = p.Pool.Price(model, ProviderUsage(u)).CostUSD
	return &with
}
