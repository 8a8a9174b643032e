package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"sync"
	"time"
)

// built holds the build output of web/, see CONTRIBUTING.md.
//
//go:embed built
var built embed.FS

// policy lets the page load only its own files and connect only to its own server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// static is a file of the page.
type static struct {
	content   []byte
	kind, tag string
	cache     string
}

// staticFiles returns the files of the page by path pattern. All names except index.html contain
// a hash of the content, so browsers can cache these files forever.
var staticFiles = sync.OnceValue(func() map[string]*static {
	files := map[string]*static{}
	_ = fs.WalkDir(built, "built", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := built.ReadFile(name)
		if err != nil {
			return err // cannot happen: a test reads all files
		}
		sum := sha256.Sum256(content)
		f := &static{
			content: content, kind: mime.TypeByExtension(path.Ext(name)),
			tag: `"` + hex.EncodeToString(sum[:16]) + `"`, cache: "public, max-age=31536000, immutable",
		}
		pattern := name[len("built"):]
		if pattern == "/index.html" {
			pattern, f.cache, f.kind = "/{$}", "no-cache", "text/html; charset=utf-8"
		}
		files[pattern] = f
		return nil
	})
	return files
})

func (f *static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	protect(h, policy)
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}

// protect sets the headers that restrict what a page can do and which sites can embed it.
func protect(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
