package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/jsonwalk"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/lsp"
	"waza/runner/catalog"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report/formats"
)

// commandTable lists the commands of workspace/executeCommand. They are methods, except that
// they are called differently.
func commandTable() []*method {
	return []*method{
		dispatch.Define(lsp.CommandRun, dispatch.Heavy,
			"Start a run like eval.run: the reply comes first, then the notifications of the run. The run belongs to the client. "+
				"A work done progress, which can be cancelled, shows the run. A client without progress support gets a message when the run ends.",
			commandRun),
		dispatch.Define(lsp.CommandDebug, dispatch.Heavy,
			"Start a run of one trial of each task, one at a time, with verbose logs.", commandDebug),
		dispatch.Define(lsp.CommandCancel, dispatch.Long, "Cancel a run or, without runId, all runs that this client started.", commandCancel),
		dispatch.Define(lsp.CommandCompare, dispatch.Heavy,
			"Compare two runs like run.compare: the given runs, or the last two of a suite.", commandCompare),
		dispatch.Define(lsp.CommandShowRun, dispatch.Heavy,
			"Write the HTML report of a run and ask the client to show it; a client that cannot show documents gets a message with the file name.",
			commandShowRun),
	}
}

// execute executes a command.
func (c *call) execute(ctx context.Context, command string, argument json.RawMessage) (json.RawMessage, error) {
	for _, m := range commandTable() {
		if m.Name == command {
			result, err := m.Serve(ctx, c, argument)
			if err != nil {
				return nil, err
			}
			return jsonwalk.Encode(result)
		}
	}
	known := lsp.Commands()
	return nil, &dispatch.ParamError{Parameter: "command", Message: "unknown command: " + dispatch.Clip(command),
		Data: map[string]any{"known": known, "suggestion": decode.Nearest(command, known)}}
}

// commandRunParams are the parameters of waza.run and waza.debug.
type commandRunParams struct {
	Path  string   `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Tasks []string `json:"tasks" doc:"Run only these tasks: ids, or globs that match an id or name."`
	RunOptions
}

func commandRun(ctx context.Context, c *call, p *commandRunParams) (*runStarted, error) {
	return runByCommand(ctx, c, p, 0)
}

func commandDebug(ctx context.Context, c *call, p *commandRunParams) (*runStarted, error) {
	p.Workers, p.Verbose, p.Cache = 1, true, false
	return runByCommand(ctx, c, p, 1)
}

// runByCommand starts a run and shows its progress to the client. If trial is not 0, only that
// trial of each task runs.
func runByCommand(ctx context.Context, c *call, p *commandRunParams, trial int) (*runStarted, error) {
	r, err := start(ctx, c, p.Path, record.Request{Trial: trial}, &p.RunOptions, func(suite *eval.Suite, req *record.Request) error {
		req.Tasks = lsp.RunArgument{Tasks: p.Tasks}.Patterns(suite)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if run := c.conn.runner.Live(r.RunID); run != nil {
		c.conn.editor.ShowProgress(run, c.Replied())
	}
	return r, nil
}

type commandCancelParams struct {
	RunID string `json:"runId" doc:"Run to cancel, no matter which client started it; all runs of this client when absent."`
}

type commandCancelled struct {
	RunIDs []string `json:"runIds" doc:"The runs that were still active."`
}

func commandCancel(ctx context.Context, c *call, p *commandCancelParams) (*commandCancelled, error) {
	r := &commandCancelled{RunIDs: []string{}}
	if p.RunID != "" {
		if _, err := cancelRun(ctx, c, &runCancelParams{RunID: p.RunID}); err != nil {
			return nil, err
		}
		r.RunIDs = append(r.RunIDs, p.RunID)
		return r, nil
	}
	for _, run := range c.conn.runs.list() {
		if !isClosed(run.Done()) {
			run.Cancel()
			r.RunIDs = append(r.RunIDs, run.ID())
		}
	}
	slices.Sort(r.RunIDs)
	return r, nil
}

type commandCompareParams struct {
	Base string `json:"base" doc:"The run to compare with; when absent, the previous run of the same suite."`
	Run  string `json:"run" doc:"The run to compare: an id, the start of an id, or latest; when absent, the last run of the suite."`
	Path string `json:"path" doc:"Suite file whose last two runs are compared when no run is given."`
}

func commandCompare(ctx context.Context, c *call, p *commandCompareParams) (*compare.Comparison, error) {
	refs, err := c.comparedRuns(p)
	if err != nil {
		return nil, err
	}
	return compareRuns(ctx, c, &compareParams{RunIDs: refs})
}

// comparedRuns returns the references of the two runs to compare, the base first.
func (c *call) comparedRuns(p *commandCompareParams) ([]string, error) {
	if p.Run == "" && p.Path == "" {
		return nil, dispatch.WrongParam("run", nil, ` is missing (or give "path")`)
	}
	run := p.Run
	if run == "" {
		path, err := c.conn.resolve("path", p.Path)
		if err != nil {
			return nil, err
		}
		runs, err := c.conn.runner.Catalog().ListBy(catalog.Filter{Path: path, Limit: 2})
		if err != nil {
			return nil, err
		}
		if len(runs) < 2 {
			return nil, &dispatch.RunFailedError{Err: errors.New("this suite has fewer than two runs to compare; run it again")}
		}
		run = runs[0].RunID
	}
	base := p.Base
	if base == "" {
		base = run + "~1"
	}
	return []string{base, run}, nil
}

type commandShowParams struct {
	RunID  string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Path   string `json:"path" doc:"Suite file of the run, for clients that show runs themselves."`
	TaskID string `json:"taskId" doc:"Task to show in the report."`
}

type commandShown struct {
	RunID string `json:"runId"`
	File  string `json:"file" doc:"Absolute path of the HTML report."`
	Shown bool   `json:"shown" doc:"Whether the client shows it."`
}

func commandShowRun(ctx context.Context, c *call, p *commandShowParams) (*commandShown, error) {
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	dir, err := reportDir(c.conn.runner.Catalog().StateDir())
	if err != nil {
		return nil, &dispatch.RunFailedError{Err: err}
	}
	r := &commandShown{RunID: h.ID(), File: filepath.Join(dir, h.ID()+".html")}
	html, err := c.exportFormat("html")
	if err != nil {
		return nil, err
	}
	if _, err := exportFile(ctx, h, html, r.File,
		func(write func(io.Writer) error) error { return formats.WriteFileWithin(dir, r.File, write) }); err != nil {
		return nil, err
	}
	u := string(uri.File(r.File))
	if p.TaskID != "" {
		u += "#task/" + url.PathEscape(p.TaskID) // the report opens this task
	}
	if r.Shown = c.conn.editor.ShowDocument(ctx, u); !r.Shown {
		c.conn.editor.ShowMessage(protocol.MessageTypeInfo,
			fmt.Sprintf("waza: %s: %s. The report: %s", h.Record().Suite.Name, progressText(h), r.File))
	}
	return r, nil
}

// progressText describes the result of a run in a few words.
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

// maxReports limits the reports that are kept for clients to show. The newest are kept.
const maxReports = 20

// reportDir returns the directory, below the folder for exports, for reports that clients show.
// It deletes old reports.
func reportDir(state string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(state, files.ExportsDir, "shown"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < maxReports {
		return dir, nil //nolint:nilerr // without a list nothing is deleted, but reports can still be written
	}
	var old []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			old = append(old, info)
		}
	}
	slices.SortFunc(old, func(a, b os.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for _, info := range old[min(len(old), maxReports-1):] {
		_ = os.Remove(filepath.Join(dir, info.Name())) // a file that cannot be deleted is tried again next time
	}
	return dir, nil
}
