package rpc

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/rpc/dispatch"
	"waza/runner/record"
)

type commandShowParams struct {
	RunID  string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Path   string `json:"path" doc:"Suite file of the run; of use to clients that show runs themselves."`
	TaskID string `json:"taskId" doc:"Task to show of it."`
}

type commandShown struct {
	RunID string `json:"runId"`
	File  string `json:"file" doc:"Absolute path of the HTML report."`
	Shown bool   `json:"shown" doc:"Whether the client shows it."`
}

func commandShowRun(ctx context.Context, c *call, p *commandShowParams) (*commandShown, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	dir, err := c.server.reportDir()
	if err != nil {
		return nil, &dispatch.RunFailedError{Err: err}
	}
	r := &commandShown{RunID: h.ID(), File: filepath.Join(dir, h.ID()+".html")}
	if _, err := exportRun(ctx, c, &exportParams{RunID: h.ID(), Format: "html", Path: r.File}); err != nil {
		return nil, err
	}
	u := string(uri.File(r.File))
	if p.TaskID != "" {
		u += "#task/" + url.PathEscape(p.TaskID) // the report goes there
	}
	if r.Shown = c.conn.editor.ShowDocument(ctx, u); !r.Shown {
		c.conn.editor.ShowMessage(protocol.MessageTypeInfo, fmt.Sprintf("waza: %s: %s. The report: %s", h.Record().Suite.Name, progressText(h), r.File))
	}
	return r, nil
}

// progressText says in a few words what became of a run.
func progressText(h record.Handle) string {
	p, err := h.Progress()
	if err != nil {
		return "its record cannot be read"
	}
	text := fmt.Sprintf("%d/%d tasks passed", p.Tasks.Passed, p.Tasks.Total)
	if p.Status != record.StatusCompleted {
		text = string(p.Status) + ", " + text
	}
	return text
}

// maxReports is how many reports are kept for clients to show: the newest.
const maxReports = 20

// reportDir is where reports are written for clients to show. Old ones go.
func (s *Server) reportDir() (string, error) {
	dir, err := filepath.Abs(filepath.Join(s.runner.Catalog().StateDir(), "reports"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < maxReports {
		return dir, nil //nolint:nilerr // what cannot be listed is not made less, and can be written all the same
	}
	var files []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for _, old := range files[min(len(files), maxReports-1):] {
		_ = os.Remove(filepath.Join(dir, old.Name())) // one that stays is tried again the next time
	}
	return dir, nil
}
