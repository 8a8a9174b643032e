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

// htmlScripts lists the parts of the page's program in their order. Together they form one
// function of the data and of the host of the page, see host.js, so that an open page can show
// newer data. The parts share one scope: a part must follow the parts it calls while it is
// loaded. A file starts with file.js.
var htmlScripts = []string{
	"host.js", "dom.js", "format.js", "verdicts.js", "data.js", "marks.js", "charts.js",
	"overview.js", "measures.js", "distributions.js",
	"columns.js", "tasks.js", "trials.js", "texts.js", "transcript.js", "files.js", "viewer.js",
	"keys.js", "main.js",
}

var htmlStyles = []string{"base.css", "overview.css", "tasks.css", "viewer.css", "print.css"}

// htmlParts holds the parts that are the same in all reports. script is only the program; start
// is everything that a file runs.
type htmlParts struct{ style, body, script, start, policy string }

// htmlAssets builds the parts once. The policy contains the hashes of style and program, so that
// the browser applies and runs nothing else in the page.
var htmlAssets = sync.OnceValue(func() htmlParts {
	p := htmlParts{
		style:  joinAssets(htmlStyles),
		body:   readAsset("page.html"),
		script: "function wazaReport(DATA, HOST) {\n'use strict';\n" + joinAssets(htmlScripts) + "return start();\n}\n",
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
