package scaffold

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// render executes a template of templates/. The delimiters are << and >>, because suites and
// workflows contain braces.
func render(name string, data any) string {
	t := template.New(name).Delims("<<", ">>").Funcs(template.FuncMap{"q": quote, "list": quoteAll, "indent": indent})
	t = template.Must(t.ParseFS(templates, "templates/"+name))
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		panic(fmt.Sprintf("templates/%s: %v", name, err)) // the tests execute all templates
	}
	return b.String()
}

// quote returns a text as a YAML scalar. Every JSON string is one.
func quote(s string) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(strings.ToValidUTF8(s, "\uFFFD"))
	return escapeForYAML(strings.TrimSpace(b.String())), err
}

// escapeForYAML escapes the characters that JSON allows between quotes and YAML does not: DEL, the
// control characters after it, the byte order mark, and two characters that mean nothing.
func escapeForYAML(quoted string) string {
	var b strings.Builder
	for _, r := range quoted {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func quoteAll(list []string) (string, error) {
	quoted := make([]string, len(list))
	for i, s := range list {
		q, err := quote(s)
		if err != nil {
			return "", err
		}
		quoted[i] = q
	}
	return "[" + strings.Join(quoted, ", ") + "]", nil
}

func indent(n int, s string) string {
	return strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", n))
}
