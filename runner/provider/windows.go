package provider

import (
	_ "embed" // the table of windows
	"encoding/json"
	"sync"
)

//go:embed windows.json
var windowTable []byte

// builtinWindows returns the context windows in windows.json, by model: the maximum number of
// input and output tokens together, from the documents that the file names, as of its date. It
// omits models whose window is unconfirmed or too complex for a table. The file is embedded and
// a test decodes it, so users never see an invalid one.
var builtinWindows = sync.OnceValue(func() map[string]int {
	var table struct {
		Models map[string]int `json:"models"`
	}
	if err := json.Unmarshal(windowTable, &table); err != nil {
		return map[string]int{}
	}
	return table.Models
})

// Windows are the context windows of models in tokens, as set in the suite. They take precedence
// over the built-in ones. The zero value contains only the built-in ones. They must not be
// changed while in use.
type Windows map[string]int

// Find returns the window of a model. It compares names like [Prices.Find].
func (w Windows) Find(model string) (tokens int, ok bool) {
	return findModel(model, w, builtinWindows())
}
