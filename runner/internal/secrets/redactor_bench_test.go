package secrets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// benchText returns a typical transcript: prose, code, paths, JSON and some base64.
func benchText() string {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "I look at /srv/projects/shop/src/components/Button%d.tsx first; then\nfunc handleRequest%d(w "+
			"http.ResponseWriter, r *http.Request) error {\n\treturn fmt.Errorf(\"cannot: %%w\", err)\n}\n",
			i, i)
		if i%20 == 0 {
			fmt.Fprintf(&b, "data:image/png;base64,%s\ncommit 4f2c9a1be07d4c11a2b3c4d5e6f708192a3b4c5d\n",
				strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAE", 20))
		}
	}
	return b.String()
}

func benchRedactor() *Redactor {
	var r Redactor
	for i := range 10 {
		r.Add(fmt.Sprintf("sk-%d-Zx81kQpLmN4vT7wR2yB5", i))
	}
	return &r
}

// BenchmarkRedact measures the cost per byte of searching a transcript for ten secrets.
func BenchmarkRedact(b *testing.B) {
	text := benchText()
	line, _ := json.Marshal(map[string]string{"text": text})
	r := benchRedactor()
	b.Run("text", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			r.Text(text)
		}
	})
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			r.JSON(line)
		}
	})
	found := []byte(strings.Replace(string(line), "Button7.", "sk-7-Zx81kQpLmN4vT7wR2yB5", 1))
	b.Run("found", func(b *testing.B) {
		b.SetBytes(int64(len(found)))
		for b.Loop() {
			r.JSON(found)
		}
	})
}
