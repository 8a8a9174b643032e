package rpc

import (
	"context"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"waza/eval"
	"waza/eval/decode"
)

// suiteParams name a suite.
type suiteParams struct {
	Path string `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
}

// resolve gives the absolute path that a parameter means: from the client's
// workspace folder or, where it has none, from the process's directory.
func (s *session) resolve(parameter, given string) (string, error) {
	s.mu.Lock()
	folder := ""
	if len(s.folders) > 0 {
		folder = s.folders[0]
	}
	s.mu.Unlock()
	return absolute(parameter, given, folder)
}

func absolute(parameter, given, folder string) (string, error) {
	path := given
	if strings.HasPrefix(strings.ToLower(given), "file:") {
		var ok bool
		if path, ok = filePath(given); !ok {
			return "", &paramError{parameter: parameter, message: "parameter \"" + parameter + "\" is not a file URI of this machine", data: map[string]any{"path": clip(given)}}
		}
	}
	if strings.ContainsRune(path, 0) {
		return "", &paramError{parameter: parameter, message: "parameter \"" + parameter + "\" holds a NUL character"}
	}
	if folder != "" && !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &paramError{parameter: parameter, message: "parameter \"" + parameter + "\": " + err.Error()}
	}
	return abs, nil
}

// filePath gives the path of a file URI.
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
type loadOptions struct{ executor, agent, contextDir string }

// load reads a suite. The error says why there is none to read; what is wrong
// with one that is there, the diagnostics say.
func (c *call) load(ctx context.Context, given string, lo loadOptions) (*eval.Suite, decode.Diagnostics, error) {
	path, err := c.resolve("path", given)
	if err != nil {
		return nil, nil, err
	}
	o := eval.Options{Vocabulary: c.server.runner.Planner().Vocabulary(), Executor: lo.executor, Agent: lo.agent}
	if lo.contextDir != "" {
		if o.ContextDir, err = c.resolve("context_dir", lo.contextDir); err != nil {
			return nil, nil, err
		}
	}
	suite, ds, err := eval.Load(path, o)
	if err != nil {
		return nil, nil, &suiteError{given: given, path: path, err: err}
	}
	return suite, ds, ctx.Err()
}

// loadValid reads a suite that has no errors.
func (c *call) loadValid(ctx context.Context, given string, lo loadOptions) (*eval.Suite, error) {
	suite, ds, err := c.load(ctx, given, lo)
	if err != nil {
		return nil, err
	}
	if suite == nil || ds.HasErrors() {
		return nil, &invalidSuiteError{path: given, diagnostics: ds}
	}
	return suite, nil
}
