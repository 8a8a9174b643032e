package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
)

//go:embed web
var htmlWeb embed.FS

// htmlScripts are the parts of the page's program, in the order in which they
// are put together: one function of the data and of what the page stands in, see
// host.js, so that a page that stays can show newer data. They share one scope:
// what a part calls while it is read must stand before it. A file begins with
// file.js.
var htmlScripts = []string{
	"host.js", "dom.js", "format.js", "verdicts.js", "data.js", "marks.js", "charts.js",
	"overview.js", "measures.js", "distributions.js",
	"columns.js", "tasks.js", "trials.js", "texts.js", "transcript.js", "files.js", "viewer.js",
	"keys.js", "main.js",
}

var htmlStyles = []string{"base.css", "overview.css", "tasks.css", "viewer.css", "print.css"}

// htmlParts are those parts of a report that are the same in all. The script is
// the program alone, start the whole of what a file runs.
type htmlParts struct{ style, body, script, start, policy string }

// htmlAssets puts the parts together, once. The policy names style and program by
// their hashes, so that nothing else in the page is ever run or styled.
var htmlAssets = sync.OnceValue(func() htmlParts {
	p := htmlParts{
		style:  joinAssets(htmlStyles),
		body:   readAsset("page.html"),
		script: "function wazaReport(DATA, HOST) {\n'use strict';\n" + joinAssets(htmlScripts) + "return begin();\n}\n",
	}
	p.start = p.script + "(() => {\n" + readAsset("file.js") + "})();\n"
	p.policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		policyHash(p.start), policyHash(p.style))
	return p
})

func joinAssets(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(readAsset(name))
	}
	return b.String()
}

// readAsset returns a file of the page; a test reads them all.
func readAsset(name string) string {
	b, err := htmlWeb.ReadFile("web/" + name)
	if err != nil {
		return ""
	}
	return string(b)
}

func policyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
