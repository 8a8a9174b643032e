package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"waza/runner/record"
)

// rules decide what an agent may do in a trial.
type rules struct {
	policy  Policy
	dir     string // the workspace
	real    string // the same without symbolic links
	servers map[string]any
}

func newRules(p Policy, dir string, servers map[string]any) (*rules, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	return &rules{policy: p, dir: dir, real: real, servers: servers}, nil
}

// judge says whether a tool call is allowed, and why.
func (r *rules) judge(c *call, skill string) (allowed bool, reason string) {
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
			return false, "it names no file"
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
	return false, "neither files below the workspace nor a command in it"
}

// server reports whether a call goes to one of the suite's MCP servers, whose
// names agents put before those of the tools.
func (r *rules) server(c *call) bool {
	for name := range r.servers {
		for _, said := range []string{c.Name, c.first, c.Title} {
			rest, ok := strings.CutPrefix(strings.TrimPrefix(said, "mcp__"), name)
			if ok && rest != "" && strings.ContainsAny(rest[:1], "_-./:( ") {
				return true
			}
		}
	}
	return false
}

// inside reports whether a path, with its links followed as far as it exists,
// lies below the workspace.
func (r *rules) inside(path string) bool {
	path = strings.TrimPrefix(path, "file://")
	if path == "" || strings.HasPrefix(path, "~") || strings.ContainsRune(path, 0) {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	return below(r.real, follow(filepath.Clean(path)))
}

func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// follow follows the links of as much of a path as exists.
func follow(path string) string {
	rest := ""
	for p := path; ; {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(p)
		if !errors.Is(err, fs.ErrNotExist) || up == p {
			return "" // nobody can tell where it leads
		}
		if _, lerr := filepath.EvalSymlinks(up); lerr == nil && isLink(p) {
			return "" // a link to what does not exist yet
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = up
	}
}

// pathKeys are the arguments in which tools are given files and directories.
var pathKeys = map[string]bool{"path": true, "paths": true, "file": true, "files": true, "filepath": true, "filename": true,
	"abspath": true, "absolutepath": true, "notebookpath": true, "directory": true, "dir": true, "dirpath": true,
	"parentdir": true, "cwd": true, "workdir": true, "workingdirectory": true, "root": true,
	"source": true, "destination": true, "oldpath": true, "newpath": true, "targetfile": true, "uri": true}

// paths are the files and directories that a call names.
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

// maxDepth bounds how deep arguments are looked into.
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

// request is a session/request_permission.
type request struct {
	ToolCall part                   `json:"toolCall"`
	Options  []sdk.PermissionOption `json:"options"`
}

// permit answers a request for permission, and records both.
func (s *session) permit(params json.RawMessage) (any, *sdk.RequestError) {
	var req request
	if err := json.Unmarshal(params, &req); err != nil {
		return nil, sdk.NewInvalidParams(nil)
	}
	allowed, reason := s.judge(&req)
	choice := choose(req.Options, allowed, s.policy)
	if choice == "" && allowed {
		allowed, reason = false, "the agent offers no way to allow it only once"
		choice = choose(req.Options, false, s.policy)
	}
	s.permission(&req.ToolCall, allowed, reason)
	outcome := sdk.NewRequestPermissionOutcomeCancelled()
	if choice != "" {
		outcome = sdk.NewRequestPermissionOutcomeSelected(choice)
	}
	return sdk.RequestPermissionResponse{Outcome: outcome}, nil
}

// judge merges what the request says into what is known of the call.
func (s *session) judge(req *request) (bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
	asked := call{}
	asked.ID = req.ToolCall.ToolCallID
	if known := s.calls[req.ToolCall.ToolCallID]; known != nil {
		asked = *known
	} else if req.ToolCall.ToolCallID != "" && req.ToolCall.Kind != "" {
		s.toolLocked(&req.ToolCall) // some agents tell of a call no sooner
	}
	whole := asked // the request may say more, or less, than the call did
	whole.take(&req.ToolCall, s.preset)
	skill := whole.skillName(s.preset, s.given)
	if asked.Arguments != nil {
		if ok, why := s.rules.judge(&asked, skill); !ok {
			return ok, why
		}
	}
	return s.rules.judge(&whole, skill)
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

// choose picks the answer among those that are offered, "" if there is none.
// Leave for good would hold for other trials too, so only the policy that
// allows everything gives it.
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
