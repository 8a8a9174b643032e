// Package page writes a run as one HTML file for people. It also provides the parts and data of
// the page for programs that show it themselves. Call [Write] for a file; call [Parts] and
// [WriteData] for a page that stays open.
package page

import (
	"bufio"
	"fmt"
	"io"

	"waza/runner/record"
)

// A Page contains the parts of an HTML report, for programs that show it themselves and request
// transcripts one at a time: its style, the elements of its body, and its script. The script
// declares one function, wazaReport(DATA, HOST), which shows the data of [WriteData] in those
// elements. It can be called again with newer data. web/host.js describes HOST.
type Page struct {
	Style  string `json:"style"`
	Body   string `json:"body"`
	Script string `json:"script"`
}

// Parts returns the parts of a page.
func Parts() Page {
	p := htmlAssets()
	return Page{Style: p.style, Body: p.body, Script: p.script}
}

// WriteData writes the present state of a run as shown in an HTML report, without transcripts,
// as one JSON value. It holds some numbers of each trial and one whole trial at a time in memory.
func WriteData(w io.Writer, h record.Handle, o Options) error {
	d, err := gatherHTML(h, o)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if err := d.write(out); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return out.Flush()
}
