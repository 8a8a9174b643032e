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

// suiteParams names a suite, with values of its parameters.
type suiteParams struct {
	Path   string      `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Params paramValues `json:"params" doc:"Values of the parameters of the suite, as in eval.run."`
}

func absolute(parameter, given, folder string) (string, error) {
	path := given
	if strings.HasPrefix(strings.ToLower(given), "file:") {
		var ok bool
		if path, ok = filePath(given); !ok {
			return "", dispatch.WrongParam(parameter, map[string]any{"path": dispatch.Clip(given)}, " is not a file URI of this machine")
		}
	}
	if strings.ContainsRune(path, 0) {
		return "", dispatch.WrongParam(parameter, nil, " contains a NUL character")
	}
	if folder != "" && !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", dispatch.WrongParam(parameter, nil, ": %v", err)
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

// load reads a suite with the options that a request sets, and starts none of its programs. It fails if the
// suite has errors.
func load(ctx context.Context, c *call, given string, o eval.Options) (*eval.Suite, error) {
	return loadBy(ctx, c, given, o, func(_ context.Context, path string, o eval.Options) (*eval.Suite, decode.Diagnostics, error) {
		return eval.Load(path, o)
	})
}

// A loader reads the suite at a path.
type loader func(ctx context.Context, path string, o eval.Options) (*eval.Suite, decode.Diagnostics, error)

// loadBy is like load with a loader.
func loadBy(ctx context.Context, c *call, given string, o eval.Options, by loader) (*eval.Suite, error) {
	path, err := c.conn.resolve("path", given)
	if err != nil {
		return nil, err
	}
	if err := checkParams(o.Params); err != nil {
		return nil, err
	}
	if o.ContextDir != "" {
		if o.ContextDir, err = c.conn.resolve("context_dir", o.ContextDir); err != nil {
			return nil, err
		}
	}
	o.Vocabulary = c.conn.runner.Planner().Vocabulary()
	suite, ds, err := by(ctx, path, o)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &dispatch.SuiteError{Given: given, Path: path, Err: err}
	case suite == nil || ds.HasErrors():
		return nil, &dispatch.InvalidSuiteError{Path: given, Diagnostics: ds}
	}
	return suite, nil
}
