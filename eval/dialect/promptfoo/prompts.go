package promptfoo

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// A part is a node with the file that contains it.
type part struct {
	*yaml.Node
	src *decode.Source
}

func (p part) get(key string) part { return part{decode.Follow(decode.Lookup(p.Node, key)), p.src} }

func (p part) text() string { return dialect.TextOf(p.Node) }

func (p part) items() (items []part) {
	for _, n := range dialect.Items(p.Node) {
		items = append(items, part{n, p.src})
	}
	return items
}

// A prompt is a template of prompts.
type prompt struct {
	at     *yaml.Node // in the configuration
	names  []string   // id and label, which tests and providers can choose
	label  string     // for the ids of tasks; the number when empty
	text   string
	reason string // why no task can use it
	// program returns the text; nil if the text is that of the configuration. config is that of the prompt.
	program *program
	config  any
}

// prompts returns the prompts of the configuration.
func (tr *translator) prompts() (prompts []prompt) {
	n := decode.Follow(decode.Lookup(tr.root, "prompts"))
	items := dialect.Items(n)
	switch {
	case decode.IsText(n):
		items = []*yaml.Node{n}
	case n != nil && n.Kind == yaml.MappingNode: // an older form: file to label
		for _, p := range dialect.Pairs(n) {
			prompts = append(prompts, tr.prompt(p.Key, p.Key.Value, prompt{label: dialect.TextOf(p.Value)})...)
		}
	}
	for i, item := range items {
		p, raw := prompt{}, item
		if item != nil && item.Kind == yaml.MappingNode {
			id, label := dialect.TextOf(decode.Lookup(item, "id")), dialect.TextOf(decode.Lookup(item, "label"))
			p.label = firstOf(label, id)
			p.names = []string{id, label}
			if raw = decode.Follow(decode.Lookup(item, "raw")); raw == nil {
				raw = decode.Follow(decode.Lookup(item, "id"))
			}
			tr.ignore(part{item, tr.Source}, fmt.Sprintf("prompts[%d].", i), []string{"id", "label", "raw", "display", "config", "function"})
			if f, _ := decode.LookupPair(item, "function"); f != nil {
				tr.cannot(f, "the key prompts[%d].function", i)
			}
			if decode.Lookup(item, "raw") == nil && decode.Lookup(item, "file") != nil {
				tr.warn(part{raw, tr.Source}, "prompts[%d] has no raw, so its id is its text, as in promptfoo; write the name of the file into raw or id", i)
			}
			p.reason = p.readConfig(decode.Lookup(item, "config"))
		}
		if !decode.IsText(raw) {
			tr.cannot(item, "prompts[%d]: a prompt must be a text, or a map with raw", i)
			continue
		}
		prompts = append(prompts, tr.prompt(raw, raw.Value, p)...)
	}
	for _, p := range prompts {
		if p.reason != "" {
			tr.warn(part{p.at, tr.Source}, "%s", inError(p.reason))
		}
	}
	return prompts
}

// readConfig reads the config of a prompt. promptfoo passes it to programs, and merges it into the config of the
// provider, which waza does not: it returns the reason if that matters.
func (p *prompt) readConfig(n *yaml.Node) (reason string) {
	config, err := valueOf(n)
	if err != nil {
		return fmt.Sprintf("config of the prompt: %v", err)
	}
	p.config = config
	keys, _ := config.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if parameters[key] != "" {
			return fmt.Sprintf("the key config.%s of the prompt: waza has no settings of providers for single prompts", key)
		}
	}
	return ""
}

// promptExtensions are those of files that promptfoo recognizes without file://.
var promptExtensions = slices.Concat(codeExtensions, scriptExtensions, []string{".txt", ".md", ".json", ".jsonl", ".yaml", ".yml", ".csv", ".j2"})

// isFile reports whether the text of a prompt names files.
func isFile(s string) bool {
	if strings.Contains(s, "\n") {
		return false
	}
	file, _ := splitFunction(s)
	return strings.HasPrefix(s, filePrefix) ||
		!strings.ContainsAny(s, " {") && slices.Contains(promptExtensions, filepath.Ext(file))
}

// prompt returns the prompts that a text is or names. The given prompt has its names, and perhaps the reason
// why no task can use it.
func (tr *translator) prompt(at *yaml.Node, s string, p prompt) []prompt {
	p.at, p.text = at, s
	command, isCommand := strings.CutPrefix(s, "exec:")
	service, _, isAddress := strings.Cut(s, "://")
	var err error
	switch {
	case isCommand:
		if p.program, err = tr.scriptOf(command); err != nil {
			p.reason = err.Error()
			return []prompt{p}
		}
		p.setTimeout()
		return []prompt{p}
	case isAddress && slices.Contains([]string{"langfuse", "portkey", "helicone"}, service):
		p.reason = fmt.Sprintf("the prompt %s is at a service, which waza does not ask", text.Clip(s, 80))
		return []prompt{p}
	case !isFile(s):
		return []prompt{p}
	}
	pattern, function := s, ""
	if isCode(s) {
		pattern, function = splitFunction(s)
	}
	files, err := tr.glob(pattern)
	if err != nil {
		p.reason = err.Error()
		return []prompt{p}
	}
	var prompts []prompt
	for _, file := range files {
		if isCode(file) || slices.Contains(scriptExtensions, filepath.Ext(file)) {
			prompts = append(prompts, tr.programPrompt(file, function, p))
			continue
		}
		texts, err := tr.promptsIn(file)
		one := p
		if err != nil {
			one.reason, texts = err.Error(), []string{s}
		}
		for _, s := range texts {
			one.text = s
			prompts = append(prompts, one)
		}
	}
	return prompts
}

// programPrompt returns the prompt that a program in a file returns.
func (tr *translator) programPrompt(file, function string, p prompt) prompt {
	var err error
	ref := tr.Files.Relative(file)
	if slices.Contains(scriptExtensions, filepath.Ext(file)) {
		p.program, err = tr.scriptOf("'./" + ref + "'")
	} else {
		if function != "" {
			ref += ":" + function
		}
		p.program, err = tr.functionOf(ref, usePrompt)
	}
	if err != nil {
		p.reason = err.Error()
		return p
	}
	p.program.name = ref
	p.setTimeout()
	return p
}

// setTimeout sets the limit of a script to that of its config, in milliseconds.
func (p *prompt) setTimeout() {
	keys, _ := p.config.(map[string]any)
	switch ms := keys["timeout"].(type) {
	case int:
		p.limit(float64(ms))
	case float64:
		p.limit(ms)
	}
}

func (p *prompt) limit(ms float64) {
	if p.program.isScript && ms > 0 {
		p.program.timeout = time.Duration(min(ms, float64(time.Hour/time.Millisecond)) * float64(time.Millisecond))
	}
}

// promptsIn returns the prompts of a file, at least one.
func (tr *translator) promptsIn(file string) (texts []string, err error) {
	content, err := tr.read(file)
	if err != nil {
		return nil, err
	}
	switch ext := strings.ToLower(filepath.Ext(file)); ext {
	case ".txt":
		texts = splitPrompts(content)
	case ".jsonl":
		texts = nonEmptyLines(content)
	case ".yaml", ".yml":
		src, err := tr.parse(file)
		if err != nil || src.Root == nil {
			return nil, fmt.Errorf("the file %s has faults", tr.Files.Shown(file))
		}
		v, err := valueOf(src.Root)
		if err != nil {
			return nil, fmt.Errorf("the file %s: %w", tr.Files.Shown(file), err)
		}
		texts = []string{textOf(v)}
	case ".csv":
		texts = csvPrompts(content)
	default:
		texts = []string{content}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("the file %s contains no prompt", tr.Files.Shown(file))
	}
	return texts, nil
}

// splitPrompts splits a text at lines of three hyphens.
func splitPrompts(content string) (prompts []string) {
	var lines []string
	flush := func() {
		if p := strings.TrimSpace(strings.Join(lines, "\n")); p != "" {
			prompts = append(prompts, p)
		}
		lines = nil
	}
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "---" {
			flush()
		} else {
			lines = append(lines, line)
		}
	}
	flush()
	return prompts
}

func nonEmptyLines(content string) (lines []string) {
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// csvPrompts returns the column prompt of a table, or its first column.
func csvPrompts(content string) (prompts []string) {
	r := csv.NewReader(strings.NewReader(content))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	rows, err := r.ReadAll()
	if err != nil || len(rows) == 0 {
		return nil
	}
	column := max(0, slices.Index(rows[0], "prompt"))
	if slices.Contains(rows[0], "prompt") {
		rows = rows[1:]
	}
	for _, row := range rows {
		if column < len(row) && row[column] != "" {
			prompts = append(prompts, row[column])
		}
	}
	return prompts
}

// A message is one of a prompt that is a chat.
type message struct {
	Role    string `json:"role" yaml:"role"`
	Content any    `json:"content" yaml:"content"`
	// Name is that of the author. No model gets it.
	Name any `json:"name,omitempty" yaml:"name,omitempty"`
}

// A request is what a provider gets for a case.
type request struct {
	system  string
	history []message // with texts only
	user    string
}

// renderPrompt returns the request that a template means.
func (c *caseTranslator) renderPrompt(p prompt) (r request, err error) {
	rendered, isJSON := "", json.Valid([]byte(p.text)) && jsonwalk.Depth(p.text) <= decode.MaxDepth
	if isJSON {
		rendered, err = renderJSON(p.text, c.render.render)
	} else {
		rendered, err = c.render.render(p.text)
	}
	r.user = rendered
	if err != nil || c.chats == chatsAsText {
		return r, err
	}
	var chat []message
	switch trimmed := strings.TrimSpace(rendered); {
	case strings.HasPrefix(trimmed, "["):
		if jsonwalk.Depth(trimmed) > decode.MaxDepth || json.Unmarshal([]byte(trimmed), &chat) != nil {
			return r, nil
		}
	case strings.HasPrefix(trimmed, "- role:"):
		if err := yaml.Unmarshal([]byte(trimmed), &chat); err != nil {
			return r, fmt.Errorf("the prompt is a chat in YAML that cannot be parsed: %s", text.Clip(err.Error(), 200))
		}
	}
	if len(chat) == 0 || chat[0].Role == "" {
		return r, nil
	}
	asMessages, err := requestOf(chat)
	if c.chats == chatsInPart && (err != nil || len(asMessages.history) > 0) {
		return r, nil
	}
	for _, m := range chat {
		if m.Name != nil {
			c.warn(c.test, "the prompt is a chat with the name of an author: waza sends messages without names")
		}
		if m.Role == "developer" {
			c.warn(c.test, "the prompt is a chat with a message of developer: waza sends it as one of system")
		}
	}
	return asMessages, err
}

// requestOf returns the request that a chat means: system messages, earlier messages of a user and a model, and a
// message of the user.
func requestOf(chat []message) (r request, err error) {
	var systems []string
	for i, m := range chat {
		content, ok := m.texts()
		if !ok {
			return request{}, errParts
		}
		isSystem := m.Role == "system" || m.Role == "developer"
		switch {
		case isSystem && len(r.history) == 0:
			systems = append(systems, content)
		case isSystem:
			return request{}, errors.New("the prompt is a chat with a system message after others: waza sends them first")
		case i == len(chat)-1 && m.Role == "user":
			r.user = content
		case m.Role == "user" || m.Role == "assistant":
			r.history = append(r.history, message{Role: m.Role, Content: content})
		default:
			return request{}, fmt.Errorf("the prompt is a chat with a message of %q: waza sends those of system, user and assistant", text.Clip(m.Role, 30))
		}
	}
	if chat[len(chat)-1].Role != "user" {
		return request{}, errors.New("the prompt is a chat whose last message is not one of the user")
	}
	r.system = strings.Join(systems, "\n\n")
	return r, nil
}

var errParts = errors.New("a message of the prompt has parts that are no texts")

// texts returns the text of a message; ok is false if it has other parts.
func (m message) texts() (s string, ok bool) {
	if s, ok := m.Content.(string); ok {
		return s, true
	}
	list, ok := m.Content.([]any)
	if !ok {
		return "", false
	}
	var texts []string
	for _, item := range list {
		one, _ := item.(map[string]any)
		s, ok := one["text"].(string)
		if kind, _ := one["type"].(string); !ok || kind != "text" && kind != "input_text" {
			return "", false
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, "\n"), true
}

// renderJSON renders the texts in a JSON text, and keeps its structure.
func renderJSON(source string, render func(string) (string, error)) (string, error) {
	var b strings.Builder
	for i := 0; i < len(source); {
		if source[i] != '"' {
			b.WriteByte(source[i])
			i++
			continue
		}
		end := i + 1
		for source[end] != '"' {
			if source[end] == '\\' {
				end++
			}
			end++
		}
		end++
		literal := source[i:end]
		i = end
		if after := strings.TrimLeft(source[end:], " \t\r\n"); strings.HasPrefix(after, ":") {
			b.WriteString(literal) // a key
			continue
		}
		var s string
		if err := json.Unmarshal([]byte(literal), &s); err != nil {
			return "", err
		}
		s, err := render(s)
		if err != nil {
			return "", err
		}
		data, err := jsonwalk.Encode(s)
		if err != nil {
			return "", err
		}
		if b.Write(data); b.Len() > maxRendered {
			return "", errTooLong
		}
	}
	return indented(b.String(), 2.0), nil
}
