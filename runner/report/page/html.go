package page

import (
	"bufio"
	"fmt"
	"html"
	"io"

	"waza/runner/record"
	"waza/runner/report"
)

// Options say what an HTML report holds. The zero value works.
type Options struct {
	// Against is an earlier run to compare with; nil means none. The report tells
	// then which tasks and trials have changed since.
	Against record.Handle
	// TranscriptBytes bounds what transcripts and files take, compressed; 0 means
	// 50 MB. What there is no room for is left out, passed trials first, and the
	// report says so.
	TranscriptBytes int64
}

// Write writes a run as one HTML file, as [HTML] does without options.
func Write(w io.Writer, h record.Handle) error { return WriteWith(w, h, Options{}) }

// WriteWith writes a run, as far as it has come, as one HTML file that needs nothing
// else: it works from a disk, without a network, and lets nothing that an agent
// wrote act. The same record gives the same bytes.
//
// The journal is read two or three times, for no more is held in memory than a
// few numbers of each trial and the transcripts of one chunk. Errors are those of
// w and of reading the record.
func WriteWith(w io.Writer, h record.Handle, o Options) error {
	d, err := gatherHTML(h, o.Against)
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
	// The page shows itself here, before the transcripts are read.
	if err := out.Flush(); err != nil {
		return err
	}
	if err := writeTranscripts(out, h, d, o.TranscriptBytes); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	out.WriteString("</body>\n</html>\n")
	return out.Flush()
}

// htmlHead is the beginning of a report: policy, title, style.
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
