package provider

import (
	_ "embed" // the price table
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/record"
)

//go:embed prices.json
var priceTable []byte

// builtinPrices returns the prices in prices.json, by model. They are list prices from the pages
// that the file names, as of its date. It omits models whose price is unconfirmed or too complex
// for a table. The file is embedded and a test decodes it, so users never see an invalid one.
var builtinPrices = sync.OnceValue(func() map[string]eval.Price {
	var table struct {
		Models map[string]eval.Price `json:"models"`
	}
	if err := json.Unmarshal(priceTable, &table); err != nil {
		return map[string]eval.Price{}
	}
	return table.Models
})

// Prices are the prices of models in the suite. They take precedence over the built-in prices.
// The zero value contains only the built-in ones. They must not be changed while in use.
type Prices map[string]eval.Price

// dated matches the suffix of a model's name that only distinguishes versions with the same
// price.
var dated = text.Pattern(`^([-@.:](\d{4}-?\d{2}-?\d{2}|\d{4}|latest|preview|v\d+(:\d+)?))+$`)

// Find returns the price of a model. It ignores the letter case of names, a maker's name in
// front ("anthropic/") and the version's date at the end. config.prices can also name a model
// with its maker.
func (p Prices) Find(model string) (eval.Price, bool) { return findModel(model, p, builtinPrices()) }

// findModel finds a model in the first table that contains it.
func findModel[T any](model string, tables ...map[string]T) (found T, ok bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	for _, name := range []string{name, name[strings.LastIndexByte(name, '/')+1:]} {
		for _, table := range tables {
			if found, ok = findVersion(table, name); ok {
				return found, true
			}
		}
	}
	return found, false
}

func findVersion[T any](table map[string]T, name string) (found T, ok bool) {
	longest := -1
	for model, value := range table {
		rest, ok := strings.CutPrefix(name, strings.ToLower(model))
		if ok && len(model) > longest && (rest == "" || dated().MatchString(rest)) {
			found, longest = value, len(model)
		}
	}
	return found, longest >= 0
}

// cost returns the price of a usage in US dollars. Tokens that only the total contains cost as
// much as output.
func cost(p eval.Price, u record.Usage, cached Cached) float64 {
	const million = 1e6
	read, write := p.Input, p.Input
	if p.Cached != nil {
		read = *p.Cached
	}
	if p.CacheWrite != nil {
		write = *p.CacheWrite
	}
	plain := max(0, u.InputTokens-cached.Read-cached.Written)
	output := max(u.OutputTokens, u.Total()-u.InputTokens)
	return (float64(plain)*p.Input + float64(cached.Read)*read + float64(cached.Written)*write + float64(output)*p.Output) / million
}

func unknownPrice(model string) error {
	return &Error{Kind: Invalid, Message: fmt.Sprintf("config.max_cost requires a price for model %q; add it to config.prices", model)}
}
