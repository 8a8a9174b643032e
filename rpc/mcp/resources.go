package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/rpc/internal/wire"
)

// The addresses of resources. A word in braces is one segment of the path, escaped as in URLs.
const (
	suitesURI     = "waza://suites"
	runsURI       = "waza://runs"
	suiteURI      = "waza://suites/{path}"
	runURI        = "waza://runs/{run_id}"
	transcriptURI = "waza://runs/{run_id}/tasks/{task_id}/trials/{trial}"
)

func (s *server) addResources() {
	const asJSON = "application/json"
	list := &sdk.Resource{
		URI: suitesURI, Name: "suites", Title: "Suites", MIMEType: asJSON,
		Description: "The suites below the server's directory.",
	}
	s.mcp.AddResource(list, s.read(asJSON, func(ctx context.Context, _ []string) (any, error) {
		return suiteTools{s}.listSuites(ctx, nil, dirInput{})
	}))
	list = &sdk.Resource{URI: runsURI, Name: "runs", Title: "Runs", MIMEType: asJSON, Description: "The newest runs of these suites."}
	s.mcp.AddResource(list, s.read(asJSON, func(ctx context.Context, _ []string) (any, error) {
		return recordTools{s}.listRuns(ctx, nil, runsInput{})
	}))

	template := &sdk.ResourceTemplate{
		URITemplate: suiteURI, Name: "suite", Title: "A suite", MIMEType: "application/yaml",
		Description: "The file of a suite; slashes in its path are written %2F.",
	}
	s.mcp.AddResourceTemplate(template,
		s.read(template.MIMEType, func(_ context.Context, at []string) (any, error) { return s.readSuite(at[0]) }))
	template = &sdk.ResourceTemplate{
		URITemplate: runURI, Name: "run", Title: "A run", MIMEType: asJSON,
		Description: "The result of a run, as waza_run_result returns it.",
	}
	s.mcp.AddResourceTemplate(template, s.read(asJSON, func(_ context.Context, at []string) (any, error) {
		h, err := s.find(at[0])
		if err != nil {
			return nil, err
		}
		return runTools{s}.digest(h, digestOptions{})
	}))
	template = &sdk.ResourceTemplate{
		URITemplate: transcriptURI, Name: "transcript", Title: "A transcript", MIMEType: asJSON,
		Description: "The first page of what the agent did in a trial, as waza_run_transcript returns it.",
	}
	s.mcp.AddResourceTemplate(template, s.read(asJSON, func(ctx context.Context, at []string) (any, error) {
		if len(at) < 5 {
			return nil, errNoResource
		}
		trial, err := strconv.Atoi(at[4])
		if err != nil || trial < 1 {
			return nil, fmt.Errorf("trial must be a number from 1, got %q", shorten(at[4], 100))
		}
		return runTools{s}.transcript(ctx, nil, transcriptInput{RunID: at[0], TaskID: at[2], Trial: trial})
	}))
}

var errNoResource = errors.New("unknown resource")

// read returns the handler of a resource. of gets the segments of the path after the first.
func (s *server) read(mime string, of func(ctx context.Context, at []string) (any, error)) sdk.ResourceHandler {
	return func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		uri := req.Params.URI
		at, err := segments(uri)
		var content any
		if err == nil {
			content, err = of(ctx, at)
		}
		if err != nil {
			return nil, wrongParams("%s: %s", shorten(uri, 200), text.Clip(s.brief(err.Error()), maxFault))
		}
		body, ok := content.(string)
		if !ok {
			encoded, err := jsonwalk.Encode(content)
			if err != nil {
				return nil, err
			}
			body = string(encoded)
		}
		if len(body) > maxAnswer {
			return nil, wrongParams("%s is larger than %d bytes; the tools return less", shorten(uri, 200), maxAnswer)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: body}}}, nil
	}
}

// wrongParams returns the error of a request that is not a call of a tool.
func wrongParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// segments returns the unescaped segments of the path of an address, without the first.
func segments(uri string) ([]string, error) {
	rest, ok := strings.CutPrefix(uri, "waza://")
	if !ok {
		return nil, errNoResource
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return nil, err
		}
		parts[i] = plain
	}
	return parts[1:], nil
}

// readSuite returns the file of a suite.
func (s *server) readSuite(path string) (string, error) {
	rel, err := s.within("path", path)
	if err != nil {
		return "", err
	}
	if ext := filepath.Ext(rel); ext != ".yaml" && ext != ".yml" {
		return "", fmt.Errorf("%q is not a suite: its name must end in .yaml or .yml", shorten(path, 200))
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(rel)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxAnswer+1))
	return string(content), err
}
