package page

import (
	"bufio"
	"fmt"
	"html"
	"io"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report"
)

// Options control the content of an HTML report. The zero value works.
type Options struct {
	// Against is an earlier run to compare with; nil means none. With it, the report shows which
	// tasks and trials have changed since.
	Against record.Handle
	// Ledger counts the comparisons with each baseline, as in [compare.Options]; nil counts nothing.
	Ledger compare.Ledger
	// TranscriptBytes is the most compressed bytes of transcripts and files; 0 means 50 MB. The
	// report omits what does not fit, passed trials first, and states that it did.
	TranscriptBytes int64
}

// Write is like [WriteWith] without options.
func Write(w io.Writer, h record.Handle) error { return WriteWith(w, h, Options{}) }

// WriteWith writes the present state of a run as one HTML file. The file needs nothing else: it
// works from a disk and without a network, and texts of agents cannot run in it. The same record
// gives the same bytes.
//
// WriteWith decodes the trials two or three times, because it holds only a few numbers of each
// trial and the transcripts of a few chunks in memory. Errors come from w and from reading the
// record.
func WriteWith(w io.Writer, h record.Handle, o Options) error {
	d, err := gatherHTML(h, o)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	assets := htmlAssets()
	fmt.Fprintf(out, htmlHead, assets.policy, html.EscapeString(report.Clean(d.page.Suite.Name)), assets.style)
	out.WriteString(assets.body)
	out.WriteString("<script type=\"application/json\" id=\"run\">")
	if err := d.write(out); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	fmt.Fprintf(out, "</script>\n<script>%s</script>\n", assets.start)
	// The browser can show the page here, before it reads the transcripts.
	if err := out.Flush(); err != nil {
		return err
	}
	if err := writeTranscripts(out, h, d, o.TranscriptBytes); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	out.WriteString("</body>\n</html>\n")
	return out.Flush()
}

// htmlHead is the start of a report: policy, title, style.
const htmlHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>%s · waza</title>
<link rel="icon" href="data:image/svg+xml,%%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%%3E%%3Ccircle cx='8' cy='8' r='6.5' fill='none' stroke='%%2314795e' stroke-width='2'/%%3E%%3Ccircle cx='8' cy='8' r='3' fill='%%2314795e'/%%3E%%3C/svg%%3E">
<style>%s</style>
</head>
`
