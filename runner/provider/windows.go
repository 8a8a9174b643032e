package provider

import (
	_ "embed" // the table of windows
	"encoding/json"
	"sync"
)

//go:embed windows.json
var windowTable []byte

// builtinWindows is the table of windows.json, by model: how many tokens a model takes,
// read and written together, as the documents that it names say as of its date. A model
// whose window depends on more than a table can say, or cannot be confirmed there, is left
// out. The file is part of the program and a test reads it.
var builtinWindows = sync.OnceValue(func() map[string]int {
	var table struct {
		Models map[string]int `json:"models"`
	}
	if err := json.Unmarshal(windowTable, &table); err != nil {
		return map[string]int{}
	}
	return table.Models
})

// Windows are how many tokens models take: what the suite says and, below it, the table
// that comes with the program. The zero value holds the latter. They must not be changed
// while in use.
type Windows map[string]int

// Find returns the window of a model, whose name is compared as [Prices.Find] does.
func (w Windows) Find(model string) (tokens int, ok bool) {
	return findModel(model, w, builtinWindows())
}
