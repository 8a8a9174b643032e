package rpc

import (
	"context"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/rpc/internal/dispatch"
)

// suiteParams names a suite.
type suiteParams struct {
	Path string `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
}

func absolute(parameter, given, folder string) (string, error) {
	path := given
	if strings.HasPrefix(strings.ToLower(given), "file:") {
		var ok bool
		if path, ok = filePath(given); !ok {
			return "", &dispatch.ParamError{
				Parameter: parameter, Message: "parameter \"" + parameter + "\" is not a file URI of this machine",
				Data: map[string]any{"path": dispatch.Clip(given)},
			}
		}
	}
	if strings.ContainsRune(path, 0) {
		return "", &dispatch.ParamError{Parameter: parameter, Message: "parameter \"" + parameter + "\" contains a NUL character"}
	}
	if folder != "" && !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &dispatch.ParamError{Parameter: parameter, Message: "parameter \"" + parameter + "\": " + err.Error()}
	}
	return abs, nil
}

// filePath returns the path of a file URI.
func filePath(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Opaque != "" || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	path := u.Path
	if runtime.GOOS == "windows" && len(path) > 2 && path[2] == ':' {
		path = path[1:] // "/C:/suites"
	}
	return filepath.FromSlash(path), true
}

// loadOptions are the options of eval.Load that a request can set.
type loadOptions struct {
	executor, agent, contextDir, judgeModel, judgeAgent string
	exactTools                                          bool
}

// load reads a suite. It returns an error if no suite can be read; the diagnostics describe the
// errors in a suite.
func load(ctx context.Context, c *call, given string, lo loadOptions) (*eval.Suite, decode.Diagnostics, error) {
	path, err := c.conn.resolve("path", given)
	if err != nil {
		return nil, nil, err
	}
	o := eval.Options{
		Vocabulary: c.conn.runner.Planner().Vocabulary(), Executor: lo.executor, Agent: lo.agent,
		JudgeModel: lo.judgeModel, JudgeAgent: lo.judgeAgent, ExactTools: lo.exactTools,
	}
	if lo.contextDir != "" {
		if o.ContextDir, err = c.conn.resolve("context_dir", lo.contextDir); err != nil {
			return nil, nil, err
		}
	}
	suite, ds, err := eval.Load(path, o)
	if err != nil {
		return nil, nil, &dispatch.SuiteError{Given: given, Path: path, Err: err}
	}
	return suite, ds, ctx.Err()
}

// loadValid is like load, but fails if the suite has errors.
func loadValid(ctx context.Context, c *call, given string, lo loadOptions) (*eval.Suite, error) {
	suite, ds, err := load(ctx, c, given, lo)
	if err != nil {
		return nil, err
	}
	if suite == nil || ds.HasErrors() {
		return nil, &dispatch.InvalidSuiteError{Path: given, Diagnostics: ds}
	}
	return suite, nil
}
