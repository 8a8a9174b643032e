package acp

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// maxFile is the maximum size of a file that an agent reads through waza, in bytes.
const maxFile = 4 << 20

// fileRequest holds the parameters of fs/read_text_file or fs/write_text_file.
type fileRequest struct {
	Path    string `json:"path"`
	Line    *int   `json:"line"` // from 1
	Limit   *int   `json:"limit"`
	Content string `json:"content"`
}

func (s *session) readFile(params json.RawMessage) (any, *sdk.RequestError) {
	req, refused := s.fileRequest(params, "read")
	if refused != nil {
		return nil, refused
	}
	f, err := s.rules.openFile(req.Path, os.O_RDONLY)
	if err != nil {
		return nil, sdk.NewInternalError(map[string]any{"error": err.Error()})
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, sdk.NewInternalError(map[string]any{
			"error": fmt.Sprintf("%s must be a regular file of at most %d MiB", req.Path, maxFile>>20),
		})
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, sdk.NewInternalError(map[string]any{"error": err.Error()})
	}
	return sdk.ReadTextFileResponse{Content: window(string(b), req.Line, req.Limit)}, nil
}

// window returns at most limit lines of a text, starting at a line.
func window(text string, line, limit *int) string {
	lines := strings.SplitAfter(text, "\n")
	if line != nil && *line > 1 {
		lines = lines[min(*line-1, len(lines)):]
	}
	if limit != nil && *limit >= 0 {
		lines = lines[:min(*limit, len(lines))]
	}
	return strings.Join(lines, "")
}

func (s *session) writeFile(params json.RawMessage) (any, *sdk.RequestError) {
	req, refused := s.fileRequest(params, "edit")
	if refused != nil {
		return nil, refused
	}
	f, err := s.rules.openFile(req.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err == nil {
		_, err = f.WriteString(req.Content)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return nil, sdk.NewInternalError(map[string]any{"error": err.Error()})
	}
	return sdk.WriteTextFileResponse{}, nil
}

// fileRequest decodes a request and rejects it unless the policy allows it.
func (s *session) fileRequest(params json.RawMessage, kind string) (fileRequest, *sdk.RequestError) {
	var req fileRequest
	if json.Unmarshal(params, &req) != nil || req.Path == "" {
		return req, sdk.NewInvalidParams(nil)
	}
	c := call{locations: []string{req.Path}}
	c.Kind = kind
	allowed, reason := s.rules.judge(&c, "")
	if !allowed {
		title := map[string]string{"read": "Read ", "edit": "Write "}[kind] + req.Path
		s.mu.Lock()
		s.flushLocked()
		s.mu.Unlock()
		s.permission(&part{Kind: kind, Title: &title}, false, reason)
		return req, sdk.NewInvalidParams(map[string]any{"error": "not permitted: " + reason})
	}
	return req, nil
}

// openFile opens a file below the workspace. No symbolic link can lead out of it. Only the
// policy that allows everything opens other files.
func (r *rules) openFile(path string, flag int) (*os.File, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.cwd, path)
	}
	rel, err := filepath.Rel(r.dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		rel, err = filepath.Rel(r.real, path)
	}
	if err != nil || !filepath.IsLocal(rel) {
		if r.policy != Allow {
			return nil, fmt.Errorf("%s is outside the workspace", path)
		}
		return os.OpenFile(path, flag|nonblock, 0o644)
	}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if dir := filepath.Dir(rel); flag&os.O_CREATE != 0 && dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return root.OpenFile(rel, flag|nonblock, 0o644)
}

func isLink(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode()&os.ModeSymlink != 0
}
