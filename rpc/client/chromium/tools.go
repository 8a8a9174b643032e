package chromium

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Limits for results.
const (
	maxText  = 100_000 // characters of texts, links and tables
	maxItems = 500     // elements, links, rows
	maxDOM   = 100_000 // characters
	// maxTyped is the maximum length of typed text, and maxURL that of an address.
	maxTyped, maxURL = 100_000, 8_000
)

// tools are the functions of the tools. Their parameters are unchecked.
var tools = map[string]func(ctx context.Context, s *session, params json.RawMessage) (any, error){
	"navigate":          with(navigate),
	"click_element":     with(click),
	"type_text":         with(typeText),
	"scroll":            with(scroll),
	"screenshot":        with(screenshot),
	"extract_text":      with(extractText),
	"extract_links":     with(extractLinks),
	"extract_tables":    with(extractTables),
	"get_dom":           with(getDOM),
	"highlight_element": with(highlight),
}

// with returns a function that decodes the parameters of a tool and calls do.
func with[P any](
	do func(ctx context.Context, s *session, t *tab, p *P) (any, error),
) func(context.Context, *session, json.RawMessage) (any, error) {
	return func(ctx context.Context, s *session, params json.RawMessage) (any, error) {
		p := new(P)
		if err := decode(params, p); err != nil {
			return nil, err
		}
		t, err := s.tab(ctx)
		if err != nil {
			return nil, err
		}
		return do(ctx, s, t, p)
	}
}

func decode(params json.RawMessage, into any) error {
	if len(bytes.TrimSpace(params)) == 0 {
		return nil
	}
	err := json.Unmarshal(params, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s must be a %s, got a %s", wrong.Field,
			strings.NewReplacer("bool", "boolean", "int", "whole number").Replace(wrong.Type.String()), wrong.Value)
	case err != nil:
		return errors.New("the parameters are not a JSON object")
	}
	return nil
}

// where describes the page after a tool has finished.
type where struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

// describe returns the address and title of the current tab of the session.
func (s *session) describe(ctx context.Context) (where, error) {
	for {
		t, err := s.tab(ctx)
		if err != nil {
			return where{}, err
		}
		var at struct {
			where
			Closing bool `json:"closing"`
		}
		err = t.call(ctx, "where", struct{}{}, &at)
		if err == nil && at.Closing {
			_ = t.until(ctx, t.closed) // otherwise describe fails with the cause of ctx
		}
		if !t.closed() {
			return at.where, err
		}
	}
}

func navigate(ctx context.Context, s *session, t *tab, p *struct {
	URL       string `json:"url"`
	WaitUntil string `json:"wait_until"`
	TimeoutMS int    `json:"timeout_ms"`
}) (any, error) {
	milestone, ok := map[string]string{
		"": "load", "load": "load", "domcontentloaded": "DOMContentLoaded", "networkidle": "networkIdle",
		"networkidle0": "networkIdle", "networkidle2": "networkAlmostIdle",
	}[strings.ToLower(p.WaitUntil)]
	if !ok {
		return nil, fmt.Errorf("wait_until must be load, domcontentloaded or networkidle, got %q", p.WaitUntil)
	}
	if err := s.in.checkAddress(p.URL); err != nil {
		return nil, err
	}
	if p.TimeoutMS > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(min(p.TimeoutMS, 60_000))*time.Millisecond)
		defer cancel()
		result, err := t.open(limited, s, p.URL, milestone)
		if limited.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s did not load within %d ms", p.URL, p.TimeoutMS)
		}
		return result, err
	}
	return t.open(ctx, s, p.URL, milestone)
}

// checkAddress returns why the browser cannot open an address, or nil.
func (in *instance) checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return errors.New("url is required")
	case len(address) > maxURL:
		return fmt.Errorf("url has %d bytes, the maximum is %d", len(address), maxURL)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url must start with http:// or https://, got %q", address)
	case !allowed(in.hosts, u.Hostname()):
		return fmt.Errorf("host %s is not allowed in this browser (allowed: %s)", u.Hostname(), strings.Join(in.hosts, ", "))
	}
	return nil
}

// allowed reports whether a host matches the list; an empty list matches all hosts.
func allowed(hosts []string, host string) bool {
	for _, h := range hosts {
		suffix, wild := strings.CutPrefix(h, "*")
		if strings.EqualFold(strings.Trim(h, "[]"), host) || wild && strings.HasSuffix(strings.ToLower(host), strings.ToLower(suffix)) {
			return true
		}
	}
	return len(hosts) == 0
}

func click(ctx context.Context, s *session, t *tab, p *struct {
	Selector string `json:"selector"`
	Text     string `json:"text"`
	Index    *int   `json:"index"`
	Wait     bool   `json:"wait_for_navigation"`
}) (any, error) {
	if p.Selector == "" && p.Text == "" {
		return nil, errors.New("selector or text is required")
	}
	if p.Index != nil && *p.Index < 0 {
		return nil, fmt.Errorf("index must be 0 or more, got %d", *p.Index)
	}
	var at struct {
		What   string  `json:"what"`
		X      float64 `json:"x"`
		Y      float64 `json:"y"`
		Hit    bool    `json:"hit"`
		Leaves bool    `json:"leaves"`
	}
	before := t.count()
	args := map[string]any{"selector": p.Selector, "text": p.Text}
	if p.Index != nil {
		args["index"] = *p.Index
	}
	if err := t.find(ctx, "point", args, &at); err != nil {
		return nil, err
	}
	var err error
	if at.Hit {
		err = t.press(ctx, at.X, at.Y)
	} else { // another element covers it; click anyway, like extensions do
		err = t.call(ctx, "click", struct{}{}, &struct{}{})
	}
	if err != nil && !t.closed() && !left(err) {
		return nil, err
	}
	return s.awaitEffects(ctx, t, before, waitTime(p.Wait, at.Leaves), map[string]any{"clicked": at.What})
}

// waitTime returns how long a navigation can take to start.
func waitTime(asked, leaves bool) time.Duration {
	switch {
	case asked:
		return maxWait
	case leaves:
		return leaveTime
	}
	return stayTime
}

// awaitEffects waits for the effects of an action, and adds them to the result.
func (s *session) awaitEffects(ctx context.Context, t *tab, before int, begin time.Duration, result map[string]any) (any, error) {
	navigated, err := t.settle(ctx, before, begin)
	if err != nil && !t.closed() {
		return nil, err
	}
	opened, err := s.adopt(ctx)
	if err != nil {
		return nil, err
	}
	if opened {
		if t, err = s.tab(ctx); err != nil {
			return nil, err
		}
		if err := t.loaded(ctx); err != nil && !t.closed() {
			return nil, err
		}
		result["opened_tab"] = true
	}
	at, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	result["navigated"], result["url"], result["title"] = navigated, at.URL, at.Title
	return result, nil
}

func typeText(ctx context.Context, s *session, t *tab, p *struct {
	Selector string  `json:"selector"`
	Text     *string `json:"text"`
	Clear    bool    `json:"clear_first"`
	Enter    bool    `json:"press_enter"`
}) (any, error) {
	switch {
	case p.Selector == "" || p.Text == nil:
		return nil, errors.New("selector and text are required")
	case len(*p.Text) > maxTyped:
		return nil, fmt.Errorf("text has %d bytes, the maximum is %d", len(*p.Text), maxTyped)
	}
	before := t.count()
	var field struct {
		What string `json:"what"`
		Done bool   `json:"done"`
	}
	if err := t.find(ctx, "focus", map[string]any{"selector": p.Selector, "value": *p.Text, "clear": p.Clear}, &field); err != nil {
		return nil, err
	}
	if !field.Done && *p.Text != "" {
		if err := t.insert(ctx, *p.Text); err != nil {
			return nil, err
		}
	}
	result := map[string]any{"typed_into": field.What}
	if !field.Done {
		var typed struct {
			Value string `json:"value"`
		}
		if err := t.call(ctx, "typed", struct{}{}, &typed); err != nil {
			return nil, err
		}
		if typed.Value != "" {
			result["value"] = typed.Value
		}
	}
	if p.Enter {
		if err := t.enter(ctx); err != nil && !left(err) {
			return nil, err
		}
	}
	return s.awaitEffects(ctx, t, before, waitTime(false, p.Enter), result)
}

func scroll(ctx context.Context, _ *session, t *tab, p *struct {
	Direction string `json:"direction"`
	Amount    int    `json:"amount"`
	Smooth    bool   `json:"smooth"`
}) (any, error) {
	p.Direction = cmp.Or(strings.ToLower(p.Direction), "down")
	switch p.Direction {
	case "up", "down", "top", "bottom":
	default:
		return nil, fmt.Errorf("direction must be up, down, top or bottom, got %q", p.Direction)
	}
	if p.Amount < 0 || p.Amount > 1_000_000 {
		return nil, fmt.Errorf("amount must be between 0 and 1000000 pixels, got %d", p.Amount)
	}
	return t.read(ctx, "scroll", map[string]any{"direction": p.Direction, "amount": p.Amount, "smooth": p.Smooth})
}

func extractText(ctx context.Context, _ *session, t *tab, p *struct {
	Selector string `json:"selector"`
	All      bool   `json:"all"`
	Trim     *bool  `json:"trim"`
}) (any, error) {
	if p.Selector == "" {
		return nil, errors.New("selector is required")
	}
	return t.read(ctx, "text", map[string]any{
		"selector": p.Selector, "all": p.All, "trim": p.Trim == nil || *p.Trim, "most": maxText,
		"items": maxItems,
	})
}

func extractLinks(ctx context.Context, _ *session, t *tab, p *struct {
	Selector string `json:"selector"`
	Pattern  string `json:"filter_pattern"`
}) (any, error) {
	return t.read(ctx, "links", map[string]any{"selector": p.Selector, "pattern": p.Pattern, "most": maxText, "items": maxItems})
}

func extractTables(ctx context.Context, _ *session, t *tab, p *struct {
	Selector string `json:"selector"`
}) (any, error) {
	return t.read(ctx, "tables", map[string]any{"selector": p.Selector, "most": maxText, "items": maxItems})
}

func getDOM(ctx context.Context, _ *session, t *tab, p *struct {
	Selector string `json:"selector"`
	Depth    int    `json:"depth"`
}) (any, error) {
	if p.Depth < 0 {
		return nil, fmt.Errorf("depth must be positive, got %d", p.Depth)
	}
	return t.read(ctx, "dom", map[string]any{"selector": p.Selector, "depth": min(cmp.Or(p.Depth, 20), 100), "most": maxDOM})
}

func highlight(ctx context.Context, _ *session, t *tab, p *struct {
	Selector   string `json:"selector"`
	DurationMS int    `json:"duration_ms"`
}) (any, error) {
	if p.Selector == "" {
		return nil, errors.New("selector is required")
	}
	return t.read(ctx, "highlight", map[string]any{"selector": p.Selector, "duration": min(max(cmp.Or(p.DurationMS, 2000), 0), 60_000)})
}

// errNoPage is the error of tools that read a page before one is open.
var errNoPage = errors.New("no page is open: navigate to one first")

// read calls an operation that returns the tool's result.
func (t *tab) read(ctx context.Context, operation string, args map[string]any) (any, error) {
	if t.blank() {
		return nil, errNoPage
	}
	var result map[string]any
	err := t.find(ctx, operation, args, &result)
	return result, err
}
