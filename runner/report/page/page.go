// Package page writes a run as one HTML file for people, and gives programs that show the page themselves its parts and data.
// Call [Write] for a file; [Parts] and [WriteData] for a page that stays open.
package page

import (
	"bufio"
	"fmt"
	"io"

	"waza/runner/record"
)

// Page is what an HTML report consists of, for programs that show it themselves and
// ask for transcripts one at a time: its style, the elements of its body, and its
// script. The script declares one function, wazaReport(DATA, HOST), which shows the
// data of [WritePage] in those elements, and may be called again with newer data;
// web/host.js tells what HOST may have.
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

// WriteData writes what an HTML report shows of a run, as far as it has come, but no
// transcripts, as one JSON value. A run that is not nil is compared with. Some
// numbers of each trial are in memory meanwhile, and one trial at a time.
func WriteData(w io.Writer, h, against record.Handle) error {
	d, err := gatherHTML(h, against)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if err := d.write(out); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return out.Flush()
}
