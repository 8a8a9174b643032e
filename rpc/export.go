package rpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"waza/eval/decode"
	"waza/rpc/internal/dispatch"
	"waza/runner/baselines"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/formats"
	"waza/runner/report/page"
)

func exportMethods() []*method {
	return []*method{
		dispatch.Define("run.export", dispatch.Heavy,
			"Export a run in another format: to a file, or in the reply if no path is given. The export of an active or "+
				"interrupted run contains its results so far. "+
				"docs/reports.md describes the formats; `archive` is the whole record as a compressed tar file.", exportRun),
	}
}

type exportParams struct {
	RunID   string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Format  string `json:"format" doc:"junit, markdown, csv, … or archive; json when absent."`
	Against string `json:"against" doc:"Earlier run to compare with, for html: the report shows the changes since then."`
	Path    string `json:"path" doc:"File to write or replace; its directory must exist. For a format of several files, the directory to write them to. waza never replaces its own files. Over a socket it must be below a workspace folder of initialize, or below exports/RUNID in the state directory. Other people's tokens can write only there, and relative paths of theirs start there. When absent, the reply contains the content."`
}

type runExported struct {
	RunID    string         `json:"runId"`
	Format   string         `json:"format"`
	Path     string         `json:"path,omitempty" doc:"Absolute path of the file or directory that was written."`
	Bytes    int64          `json:"bytes" doc:"Size of the content in bytes."`
	Content  string         `json:"content,omitempty" doc:"Content of the export; absent with path."`
	Damage   *record.Damage `json:"damage,omitempty" doc:"Damage of the run's record, whose lost parts the export lacks; absent when the record is complete."`
	Encoding string         `json:"encoding,omitempty" doc:"utf-8, or base64 if the content is not text; absent with path."`
}

// maxExport limits the content of a reply in bytes. Files can have any size.
const maxExport = 16 << 20

func exportRun(ctx context.Context, c *call, p *exportParams) (*runExported, error) {
	format, err := c.exportFormat(p.Format)
	if err != nil {
		return nil, err
	}
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	if format, err = c.exportAgainst(format, p.Against); err != nil {
		return nil, err
	}
	damage, err := h.Damage()
	if err != nil {
		return nil, err
	}
	r, err := exportTo(ctx, c, h, format, p.Path)
	if err != nil {
		return nil, err
	}
	r.Damage = damage
	return r, nil
}

// exportTo exports to a file, or into the reply without a path.
func exportTo(ctx context.Context, c *call, h record.Handle, format formats.Format, given string) (*runExported, error) {
	if given == "" {
		if format.IsFolder() {
			return nil, dispatch.WrongParam("path", nil, " is missing: %s writes several files into a directory", format.Name)
		}
		return exportContent(ctx, c, h, format)
	}
	path, err := c.exportPath(h.ID(), given)
	if err != nil {
		return nil, err
	}
	if format.IsFolder() {
		return exportFolder(ctx, c, h, format, path)
	}
	return exportFile(ctx, h, format, path, func(write func(io.Writer) error) error {
		return c.writeExport(h.ID(), path, write)
	})
}

// exportPath returns the absolute path of an export. Relative paths of other people start in the
// folder for exports of the run, because the folders of initialize are no places of theirs.
func (c *call) exportPath(runID, given string) (string, error) {
	if c.conn.other {
		return absolute("path", given, c.conn.runner.Catalog().Store.ExportsDir(runID))
	}
	return c.conn.resolve("path", given)
}

// exportFile writes an export with a function that calls its argument with the open file.
func exportFile(
	ctx context.Context, h record.Handle, format formats.Format, path string,
	create func(write func(io.Writer) error) error,
) (*runExported, error) {
	r := &runExported{RunID: h.ID(), Format: format.Name, Path: path}
	err := create(func(w io.Writer) error {
		out := &exportWriter{ctx: ctx, w: w}
		err := format.Write(out, h)
		r.Bytes = out.written
		return err
	})
	if err != nil {
		return nil, exportError(ctx, path, err)
	}
	return r, nil
}

// exportError returns the error of a call that cannot write an export.
func exportError(ctx context.Context, path string, err error) error {
	switch place := (*fs.PathError)(nil); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &place) && place.Path == path:
		return dispatch.WrongParam("path", map[string]any{"path": dispatch.Clip(path)}, ": %s: %v", path, place.Err)
	}
	return &dispatch.RunFailedError{Err: fmt.Errorf("%s: %w", path, err)}
}

// exportFolder writes an export of several files.
func exportFolder(ctx context.Context, c *call, h record.Handle, format formats.Format, dir string) (*runExported, error) {
	r := &runExported{RunID: h.ID(), Format: format.Name}
	counted := format
	counted.WriteFiles = func(create report.Create, h record.Handle) error {
		return format.WriteFiles(func(name string, write func(io.Writer) error) error {
			return create(name, func(w io.Writer) error {
				out := &exportWriter{ctx: ctx, w: w}
				err := write(out)
				r.Bytes += out.written
				return err
			})
		}, h)
	}
	base, err := c.exportBase(h.ID(), dir)
	switch {
	case err != nil:
	case base == "":
		r.Path, err = formats.WriteFolder(dir, counted, h)
	default:
		r.Path, err = formats.WriteFolderWithin(base, dir, counted, h)
	}
	if err != nil {
		return nil, exportError(ctx, dir, err)
	}
	return r, nil
}

// writeExport writes a file where the client may write.
func (c *call) writeExport(runID, path string, write func(io.Writer) error) error {
	switch base, err := c.exportBase(runID, path); {
	case err != nil:
		return err
	case base == "":
		return formats.WriteFile(path, write)
	default:
		return formats.WriteFileWithin(base, path, write)
	}
}

// exportBase returns the directory that an export must not leave. It is empty for the owner of this
// process, who can write anywhere except over files of waza. Other clients of a socket can write below
// their workspace folders. All clients can write below the folder for exports of the run, which is
// created then, and other people only there.
func (c *call) exportBase(runID, path string) (string, error) {
	exports, err := filepath.Abs(c.conn.runner.Catalog().Store.ExportsDir(runID))
	if err != nil {
		return "", err
	}
	if isBelow(exports, path) {
		return exports, os.MkdirAll(exports, 0o700)
	}
	if c.conn.owner {
		return "", nil
	}
	if c.conn.other {
		return "", &fs.PathError{
			Op: "write", Path: path,
			Err: errors.New("not below " + exports + ", the only place that this token can write to; give a relative path"),
		}
	}
	c.conn.mu.Lock()
	dirs := slices.Clone(c.conn.folders)
	c.conn.mu.Unlock()
	for _, dir := range dirs {
		if isBelow(dir, path) {
			return dir, nil
		}
	}
	return "", &fs.PathError{
		Op: "write", Path: path,
		Err: errors.New("not below a workspace folder of initialize or " + exports + "; over a socket, files can be written only there"),
	}
}

func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel) && rel != "."
}

func (c *call) exportFormat(name string) (formats.Format, error) {
	all := formats.Exports(c.conn.runner)
	if name == "" {
		name = "json"
	}
	f, ok := formats.Find(all, name)
	if !ok {
		known := formats.Names(all)
		return f, dispatch.WrongParam("format", map[string]any{"known": known, "suggestion": decode.Nearest(name, known)},
			": unknown format %q", dispatch.Clip(name))
	}
	return f, nil
}

// exportAgainst makes the format compare with an earlier run, if it supports that.
func (c *call) exportAgainst(format formats.Format, id string) (formats.Format, error) {
	against, err := c.findAgainst(id)
	if against == nil || err != nil {
		return format, err
	}
	if format.Name != "html" {
		return format, dispatch.WrongParam("against", nil,
			" requires format html, got %s; run.compare compares runs without a report", format.Name)
	}
	format.Write = func(w io.Writer, h record.Handle) error {
		return page.WriteWith(w, h, page.Options{Against: against, Ledger: baselines.In(c.conn.runner.Catalog().StateDir())})
	}
	return format, nil
}

// exportContent makes one reply at a time, like run.result, and none while the client has much
// unread output.
func exportContent(ctx context.Context, c *call, h record.Handle, format formats.Format) (*runExported, error) {
	if err := c.Alone(ctx); err != nil {
		return nil, err
	}
	content, err := buffered(ctx, h.ID(), maxExport, "an export", "too large for one message; give a path",
		func(w io.Writer) error { return format.Write(w, h) })
	if err != nil {
		return nil, err
	}
	r := &runExported{RunID: h.ID(), Format: format.Name, Bytes: int64(len(content)), Encoding: "utf-8", Content: string(content)}
	if !utf8.Valid(content) {
		r.Content, r.Encoding = base64.StdEncoding.EncodeToString(content), "base64"
	}
	return r, nil
}

// exportWriter counts bytes and fails when ctx ends.
type exportWriter struct {
	ctx     context.Context
	w       io.Writer
	written int64
}

func (e *exportWriter) Write(b []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := e.w.Write(b)
	e.written += int64(n)
	return n, err
}
