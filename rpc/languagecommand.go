package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"go.lsp.dev/protocol"

	"waza/eval"
	"waza/eval/decode"
	"waza/rpc/lsp"
	"waza/runner"
)

func commandMethods() []*method {
	return []*method{
		speak("workspace/executeCommand", heavy, "Carry out one of the commands below; its argument is one object, its result another.", (*call).executeCommand),
		speak("window/workDoneProgress/cancel", quick, "Cancel the run that a progress is of.", (*call).cancelProgress),
	}
}

// commandTable lists the commands of workspace/executeCommand. They are methods
// but for how they are called.
func commandTable() []*method {
	return []*method{
		define(lsp.CommandRun, heavy,
			"Start a run, as eval.run does: its notifications follow the reply, and it is the client's. "+
				"How it goes on is shown as a work done progress, which can be cancelled; a client without gets a message when it has ended.", (*call).commandRun),
		define(lsp.CommandDebug, heavy, "Start a run of one trial of each task, one after the other, with verbose logs.", (*call).commandDebug),
		define(lsp.CommandCancel, long, "Cancel a run or, without runId, all that this client has started.", (*call).commandCancel),
		define(lsp.CommandCompare, heavy, "Compare two runs, as run.compare does: those that are named, or the last two of a suite.", (*call).commandCompare),
		define(lsp.CommandShowRun, heavy, "Write the HTML report of a run and let the client show it; a client that does not show documents gets a message that names the file.", (*call).commandShowRun),
	}
}

func (c *call) executeCommand(ctx context.Context, p *protocol.ExecuteCommandParams) (any, error) {
	for _, m := range commandTable() {
		if m.name == p.Command {
			result, err := m.serve(ctx, c, argumentOf(p.Arguments))
			if err != nil {
				return nil, err
			}
			return encode(result)
		}
	}
	known := lsp.Commands()
	return nil, &paramError{parameter: "command", message: "no such command: " + clip(p.Command),
		data: map[string]any{"known": known, "suggestion": decode.Nearest(p.Command, known)}}
}

// argumentOf is the first argument; commands take no other.
func argumentOf(list []protocol.LSPAny) json.RawMessage {
	if len(list) == 0 || string(list[0]) == "null" {
		return nil
	}
	return json.RawMessage(list[0])
}

// commandRunParams are those of waza.run and waza.debug.
type commandRunParams struct {
	Path  string   `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Tasks []string `json:"tasks" doc:"Run only these tasks: ids, or globs that match an id or name."`
	RunOptions
}

func (c *call) commandRun(ctx context.Context, p *commandRunParams) (*runStarted, error) {
	return c.runByCommand(ctx, p, 0)
}

func (c *call) commandDebug(ctx context.Context, p *commandRunParams) (*runStarted, error) {
	p.Workers, p.Verbose, p.Cache = 1, true, false
	return c.runByCommand(ctx, p, 1)
}

// runByCommand starts a run, and shows the client how it goes on. A trial other
// than 0 is the only one of each task.
func (c *call) runByCommand(ctx context.Context, p *commandRunParams, trial int) (*runStarted, error) {
	r, err := c.start(ctx, p.Path, p.RunOptions, func(suite *eval.Suite) (runner.Request, error) {
		return runner.Request{Tasks: lsp.RunArgument{Tasks: p.Tasks}.Patterns(suite), Trial: trial}, nil
	})
	if err != nil {
		return nil, err
	}
	if run := c.server.runner.Live(r.RunID); run != nil {
		c.showProgress(run)
	}
	return r, nil
}

type commandCancelParams struct {
	RunID string `json:"runId" doc:"Run to cancel, whoever has started it; all of this client when absent."`
}

type commandCancelled struct {
	RunIDs []string `json:"runIds" doc:"The runs that went on until now."`
}

func (c *call) commandCancel(ctx context.Context, p *commandCancelParams) (*commandCancelled, error) {
	r := &commandCancelled{RunIDs: []string{}}
	if p.RunID != "" {
		if _, err := c.runCancel(ctx, &runCancelParams{RunID: p.RunID}); err != nil {
			return nil, err
		}
		r.RunIDs = append(r.RunIDs, p.RunID)
		return r, nil
	}
	for _, run := range c.ownRuns() {
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

func (c *call) commandCompare(ctx context.Context, p *commandCompareParams) (*runner.Comparison, error) {
	refs, err := c.compared(p)
	if err != nil {
		return nil, err
	}
	return c.runCompare(ctx, &compareParams{RunIDs: refs})
}

// compared names the two runs to compare, the reference first.
func (c *call) compared(p *commandCompareParams) ([]string, error) {
	if p.Run == "" && p.Path == "" {
		return nil, &paramError{parameter: "run", message: `parameter "run" is missing (or give "path")`}
	}
	run := p.Run
	if run == "" {
		path, err := c.resolve("path", p.Path)
		if err != nil {
			return nil, err
		}
		runs, err := c.server.runner.Catalog().ListBy(runner.Filter{Path: path, Limit: 2})
		if err != nil {
			return nil, err
		}
		if len(runs) < 2 {
			return nil, &runFailedError{errors.New("there are not two runs of this suite to compare yet; run it again")}
		}
		run = runs[0].RunID
	}
	base := p.Base
	if base == "" {
		base = run + "~1"
	}
	return []string{base, run}, nil
}
