package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"waza/eval"
	"waza/eval/decode"
	"waza/rpc/dispatch"
	"waza/rpc/lsp"
	"waza/rpc/wire"
	"waza/runner/catalog"
	"waza/runner/compare"
	"waza/runner/record"
)

// commandTable lists the commands of workspace/executeCommand. They are methods
// but for how they are called.
func commandTable() []*method {
	return []*method{
		dispatch.Define(lsp.CommandRun, dispatch.Heavy,
			"Start a run, as eval.run does: its notifications follow the reply, and it is the client's. "+
				"How it goes on is shown as a work done progress, which can be cancelled; a client without gets a message when it has ended.", commandRun),
		dispatch.Define(lsp.CommandDebug, dispatch.Heavy, "Start a run of one trial of each task, one after the other, with verbose logs.", commandDebug),
		dispatch.Define(lsp.CommandCancel, dispatch.Long, "Cancel a run or, without runId, all that this client has started.", commandCancel),
		dispatch.Define(lsp.CommandCompare, dispatch.Heavy, "Compare two runs, as run.compare does: those that are named, or the last two of a suite.", commandCompare),
		dispatch.Define(lsp.CommandShowRun, dispatch.Heavy, "Write the HTML report of a run and let the client show it; a client that does not show documents gets a message that names the file.", commandShowRun),
	}
}

// execute carries out a command.
func (c *call) execute(ctx context.Context, command string, argument json.RawMessage) (json.RawMessage, error) {
	for _, m := range commandTable() {
		if m.Name == command {
			result, err := m.Serve(ctx, c, argument)
			if err != nil {
				return nil, err
			}
			return wire.Encode(result)
		}
	}
	known := lsp.Commands()
	return nil, &dispatch.ParamError{Parameter: "command", Message: "no such command: " + dispatch.Clip(command),
		Data: map[string]any{"known": known, "suggestion": decode.Nearest(command, known)}}
}

// commandRunParams are those of waza.run and waza.debug.
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

// runByCommand starts a run, and shows the client how it goes on. A trial other
// than 0 is the only one of each task.
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
	RunID string `json:"runId" doc:"Run to cancel, whoever has started it; all of this client when absent."`
}

type commandCancelled struct {
	RunIDs []string `json:"runIds" doc:"The runs that went on until now."`
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
	Base string `json:"base" doc:"The run to compare with; the one before run, of the same suite, when absent."`
	Run  string `json:"run" doc:"The run to compare: an id, the beginning of one, or latest; the last of the suite when absent."`
	Path string `json:"path" doc:"Suite file whose last two runs are compared where none is named."`
}

func commandCompare(ctx context.Context, c *call, p *commandCompareParams) (*compare.Comparison, error) {
	refs, err := compared(c, p)
	if err != nil {
		return nil, err
	}
	return compareRuns(ctx, c, &compareParams{RunIDs: refs})
}

// compared names the two runs to compare, the reference first.
func compared(c *call, p *commandCompareParams) ([]string, error) {
	if p.Run == "" && p.Path == "" {
		return nil, &dispatch.ParamError{Parameter: "run", Message: `parameter "run" is missing (or give "path")`}
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
			return nil, &dispatch.RunFailedError{Err: errors.New("there are not two runs of this suite to compare yet; run it again")}
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
	dir, err := reportDir(c.conn.runner.Catalog().StateDir())
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

// reportDir is where, below the state directory, reports are written for clients to
// show. Old ones go.
func reportDir(state string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(state, "reports"))
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
