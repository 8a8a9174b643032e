package provider

import (
	_ "embed" // the price table
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"waza/eval"
	"waza/eval/text"
)

//go:embed prices.json
var priceTable []byte

// builtinPrices is the table of prices.json, by model: list prices of the pages
// that it names, as of its date. A model whose price depends on more than a table
// can say, or cannot be confirmed there, is left out rather than guessed. The file
// is part of the program and a test reads it, so a fault in it is none of the user's.
var builtinPrices = sync.OnceValue(func() map[string]eval.Price {
	var table struct {
		Models map[string]eval.Price `json:"models"`
	}
	if err := json.Unmarshal(priceTable, &table); err != nil {
		return map[string]eval.Price{}
	}
	return table.Models
})

// Prices are what models cost: those of the suite, and below them those of the
// table that comes with the program. The zero value holds the latter. They must
// not be changed while in use.
type Prices map[string]eval.Price

// dated matches the end of a model's name that only distinguishes versions, which cost the same.
var dated = text.Pattern(`^([-@.:](\d{4}-?\d{2}-?\d{2}|\d{4}|latest|preview|v\d+(:\d+)?))+$`)

// Find returns the price of a model. Names are compared in any letter case,
// without the maker's name in front ("anthropic/") and the version's date behind;
// config.prices may also name a model with its maker.
func (p Prices) Find(model string) (eval.Price, bool) { return findModel(model, p, builtinPrices()) }

// findModel looks a model up in the first table that has it.
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

// cost is the price of a usage, in US dollars.
func cost(p eval.Price, u Usage) float64 {
	const million = 1e6
	cached, write := p.Input, p.Input
	if p.Cached != nil {
		cached = *p.Cached
	}
	if p.CacheWrite != nil {
		write = *p.CacheWrite
	}
	plain := max(0, u.InputTokens-u.CachedTokens-u.CacheWriteTokens)
	return (float64(plain)*p.Input + float64(u.CachedTokens)*cached + float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*p.Output) / million
}

func unknownPrice(model string) error {
	return &Error{Kind: Invalid, Message: fmt.Sprintf("config.max_cost is set and no price is known for model %q; give one in config.prices", model)}
}
