package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"waza/runner/executor"
	"waza/runner/record"
)

// rules decide what an agent may do in a trial.
type rules struct {
	policy  Policy
	dir     string   // workspace directory
	cwd     string   // directory of the workspace in which the agent started
	real    string   // dir without symbolic links
	servers []string // names of MCP servers
	tools   []string // names of the tools of waza's own servers
	judges  bool     // allow only tools of MCP servers
}

func newRules(p Policy, dir, cwd string, suite map[string]any, own []executor.Server) (*rules, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	r := &rules{policy: p, dir: dir, cwd: cwd, real: real, servers: slices.Collect(maps.Keys(suite))}
	for _, s := range own {
		r.servers = append(r.servers, s.Name)
		r.tools = append(r.tools, s.Tools...)
	}
	return r, nil
}

// judge reports whether a tool call is allowed, and why.
func (r *rules) judge(c *call, skill string) (allowed bool, reason string) {
	if r.judges {
		// The model can choose the title, so the kind must match as well.
		if (c.Kind == "" || c.Kind == "other") && r.server(c) {
			return true, "a tool for judging"
		}
		return false, "a judging agent can call only the tools for judging"
	}
	if r.policy != Workspace {
		return r.policy == Allow, "permissions: " + string(r.policy)
	}
	paths := c.paths()
	for _, p := range paths {
		if !r.inside(p) {
			return false, fmt.Sprintf("%s is outside the workspace", p)
		}
	}
	switch c.Kind {
	case "read", "edit", "delete", "move":
		if len(paths) == 0 {
			return false, "the call names no file"
		}
		return true, "files below the workspace"
	case "search", "execute", "think":
		return true, "in the workspace"
	}
	switch {
	case skill != "":
		return true, "a skill"
	case r.server(c):
		return true, "an MCP server of the suite"
	case len(paths) > 0 && (c.Kind == "" || c.Kind == "other"):
		return true, "files below the workspace"
	}
	return false, "the call concerns neither files below the workspace nor a command in it"
}

// server reports whether a call goes to an MCP server of the suite or of waza. Agents put the
// name of the server before the name of the tool.
func (r *rules) server(c *call) bool {
	for _, name := range r.servers {
		for _, said := range []string{c.Name, c.first, c.Title} {
			rest, ok := strings.CutPrefix(strings.TrimPrefix(said, "mcp__"), name)
			if ok && rest != "" && strings.ContainsAny(rest[:1], "_-./:( ") {
				return true
			}
		}
	}
	return false
}

// inside reports whether a path is below the workspace. It follows the symbolic links of the
// existing part of the path.
func (r *rules) inside(path string) bool {
	path = strings.TrimPrefix(path, "file://")
	if path == "" || strings.HasPrefix(path, "~") || strings.ContainsRune(path, 0) {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.cwd, path)
	}
	return below(r.real, follow(filepath.Clean(path)))
}

func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// follow resolves the symbolic links of the existing part of a path. It returns "" if the
// target is unknown.
func follow(path string) string {
	rest := ""
	for p := path; ; {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(p)
		if !errors.Is(err, fs.ErrNotExist) || up == p {
			return "" // unknown target
		}
		if _, lerr := filepath.EvalSymlinks(up); lerr == nil && isLink(p) {
			return "" // a link to a path that does not exist yet
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = up
	}
}

// pathKeys are the arguments in which tools receive files and directories.
var pathKeys = map[string]bool{"path": true, "paths": true, "file": true, "files": true, "filepath": true, "filename": true,
	"abspath": true, "absolutepath": true, "notebookpath": true, "directory": true, "dir": true, "dirpath": true,
	"parentdir": true, "cwd": true, "workdir": true, "workingdirectory": true, "root": true,
	"source": true, "destination": true, "oldpath": true, "newpath": true, "targetfile": true, "uri": true}

// paths returns the files and directories that a call names.
func (c *call) paths() []string {
	paths := slices.Clone(c.locations)
	for _, b := range c.content {
		if b.Type == "diff" {
			paths = append(paths, b.Path)
		}
	}
	var in any
	if json.Unmarshal(c.Arguments, &in) == nil {
		paths = collectPaths(paths, in, false, 0)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// maxDepth is the maximum depth at which arguments are searched.
const maxDepth = 6

func collectPaths(to []string, v any, isPath bool, depth int) []string {
	if depth > maxDepth {
		return to
	}
	switch v := v.(type) {
	case string:
		if isPath {
			to = append(to, v)
		}
	case []any:
		for _, e := range v {
			to = collectPaths(to, e, isPath, depth+1)
		}
	case map[string]any:
		for k, e := range v {
			name := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(k))
			to = collectPaths(to, e, pathKeys[name], depth+1)
		}
	}
	return to
}

// request holds the parameters of session/request_permission.
type request struct {
	ToolCall part                   `json:"toolCall"`
	Options  []sdk.PermissionOption `json:"options"`
}

// permit answers a request for permission, and records the request and the answer.
func (s *session) permit(params json.RawMessage) (any, *sdk.RequestError) {
	var req request
	if err := json.Unmarshal(params, &req); err != nil {
		return nil, sdk.NewInvalidParams(nil)
	}
	allowed, reason := s.judge(&req)
	choice := choose(req.Options, allowed, s.policy)
	if choice == "" && allowed {
		allowed, reason = false, "the agent offers no option to allow the call only once"
		choice = choose(req.Options, false, s.policy)
	}
	s.permission(&req.ToolCall, allowed, reason)
	outcome := sdk.NewRequestPermissionOutcomeCancelled()
	if choice != "" {
		outcome = sdk.NewRequestPermissionOutcomeSelected(choice)
	}
	return sdk.RequestPermissionResponse{Outcome: outcome}, nil
}

// judge merges the request into the call, and decides on both.
func (s *session) judge(req *request) (bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
	asked := call{}
	asked.ID = req.ToolCall.ToolCallID
	if known := s.calls[req.ToolCall.ToolCallID]; known != nil {
		asked = *known
	} else if req.ToolCall.ToolCallID != "" && req.ToolCall.Kind != "" {
		s.toolLocked(&req.ToolCall) // some agents report the call only here
	}
	whole := asked // the request can contain more or less than the call
	whole.merge(&req.ToolCall, s.preset)
	skill := whole.skillName(s.preset, s.given)
	if s.rules.own(&req.ToolCall, whole.Kind) {
		s.nameLocked(req.ToolCall.ToolCallID, *req.ToolCall.Title)
		return true, "a tool of waza"
	}
	if asked.Arguments != nil {
		if ok, why := s.rules.judge(&asked, skill); !ok {
			return ok, why
		}
	}
	return s.rules.judge(&whole, skill)
}

// own reports whether a request asks for a tool of waza by its name. Some agents set the title
// of the call to an argument that the model chose. The request is reliable, because the agent's
// program writes it. The kind distinguishes it from the agent's own tools.
func (r *rules) own(p *part, kind string) bool {
	return (r.judges || r.policy != Deny) && p.Title != nil && slices.Contains(r.tools, *p.Title) &&
		(p.Kind == "" || p.Kind == "other") && (kind == "" || kind == "other")
}

// nameLocked sets the name of a call from its request for permission.
func (r *recorder) nameLocked(id, name string) {
	if c := r.calls[id]; c != nil && c.update != nil && c.sentName == "" {
		c.sentName, c.Name = name, name
		c.update(c.ToolCall)
	}
}

func (s *session) permission(p *part, allowed bool, reason string) {
	s.mu.Lock()
	s.denied = s.denied || !allowed
	if c := s.calls[p.ToolCallID]; c != nil {
		c.refused = !allowed
	}
	s.mu.Unlock()
	title := ""
	if p.Title != nil {
		title = *p.Title
	}
	s.to.Add(record.Entry{Type: record.EntryPermission, Permission: &record.Permission{
		ToolCallID: p.ToolCallID, Kind: p.Kind, Title: title, Allowed: allowed, Reason: reason,
	}})
}

// choose picks one of the offered answers, or "" if none fits. A permanent permission would also
// apply to other trials, so only the policy that allows everything grants it.
func choose(options []sdk.PermissionOption, allow bool, p Policy) sdk.PermissionOptionId {
	kinds := []sdk.PermissionOptionKind{sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways}
	if allow {
		kinds = []sdk.PermissionOptionKind{sdk.PermissionOptionKindAllowOnce}
		if p == Allow {
			kinds = append(kinds, sdk.PermissionOptionKindAllowAlways)
		}
	}
	for _, k := range kinds {
		for _, o := range options {
			if o.Kind == k {
				return o.OptionId
			}
		}
	}
	return ""
}
