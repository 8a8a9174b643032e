package chromium_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/client/chromium"
)

// site serves a small site and returns its address.
func site(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	page := func(path, title, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!doctype html><title>%s</title><body>%s</body>", title, body)
		})
	}
	page("/{$}", "Shop", `<h1>Shop</h1><p class=p> one </p><p class=p>two</p>
		<a href="/form" id=form>Order now</a> <a href="/new" target=_blank>Open a tab</a> <a href="https://example.org/x">Elsewhere</a>
		<button id=off disabled>Off</button> <button id=hid style="display:none">Hidden</button>
		<button id=say onclick="document.title=String(confirm('Sure?'))">Say</button>
		<button id=late onclick="setTimeout(()=>{const d=document.createElement('div');d.id='later';d.textContent='here';document.body.append(d)},300)">Late</button>
		<div style="position:relative"><button id=under onclick="document.title='under'">Under</button><div style="position:absolute;inset:0"></div></div>
		<table><caption>Prices</caption><tr><th>Item</th><th>Price</th></tr><tr><td>Milk</td><td>1.20</td></tr><tr><td>Bread</td><td>3</td></tr></table>
		<div style="height:4000px"></div><footer>End</footer>`)
	page("/form", "Form", `<form action=/done><input id=name name=name value=old><select name=size id=size><option value=s>Small<option value=l>Large</select>
		<input type=date id=day name=day><textarea id=note name=note></textarea><input type=password id=pw><div id=rich contenteditable>abc</div><button>Send</button></form>`)
	page("/new", "New tab", `<p id=x>in a new tab</p><button onclick="window.close()">Close</button>`)
	page("/more", "More", `<div style="height:2000px"></div><script>addEventListener('scroll',()=>{
		for(let n=document.body.children.length;n<4;n=4){const d=document.createElement('div');d.style.height='2000px';document.body.append(d)}})</script>`)
	page("/hang", "Hang", `<button onclick="for(;;);">Hang</button>`)
	mux.HandleFunc("GET /done", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<title>Done</title><p id=got>%s</p>", html.EscapeString(r.URL.RawQuery))
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=x.bin")
		fmt.Fprint(w, "x")
	})
	mux.HandleFunc("GET /cookie", func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Cookie("seen")
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes"})
		fmt.Fprintf(w, "<title>Cookie</title><p id=c>%v</p>", c != nil)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// newBrowser starts the installed Chromium.
func newBrowser(t *testing.T, hosts ...string) *chromium.Browser {
	t.Helper()
	path, err := chromium.Find("")
	if err != nil {
		t.Skip("skipped: chromium is not installed")
	}
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	dir := t.TempDir()
	b, err := chromium.Start(t.Context(), chromium.Options{Path: path, Dir: dir, AllowHosts: hosts})
	require.NoError(t, err)
	t.Cleanup(func() {
		b.Close()
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "the profile is removed")
	})
	return b
}

func TestTools(t *testing.T) {
	t.Parallel()
	b, base := newBrowser(t), site(t)
	require.Contains(t, b.Version(), "Chrome/")
	for _, c := range []struct {
		name  string
		steps []string // TOOL PARAMETERS → a part of the result, or ! and a part of the error
	}{
		{"nothing before a page", []string{
			`extract_text {"selector":"body"} → ! no page is open: navigate to one first`,
			`screenshot {} → ! no page is open`,
		}},
		{"addresses", []string{
			`navigate {} → ! url is required`,
			`navigate {"url":"file:///etc/passwd"} → ! url must start with http:// or https://`,
			`navigate {"url":"javascript:alert(1)"} → ! url must start with http:// or https://`,
			`navigate {"url":"chrome://version"} → ! url must start with http:// or https://`,
			`navigate {"url":"http://127.0.0.1:1/"} → ! could not be opened: `,
			`navigate {"url":"BASE/file"} → ! is a file to download`,
			`navigate {"url":"BASE/none"} → "status":404`,
			`navigate {"url":"BASE/","wait_until":"soon"} → ! wait_until must be load, domcontentloaded or networkidle`,
			`navigate {"url":7} → ! url must be a string, got a number`,
			`navigate {"url":"BASE/","wait_until":"domcontentloaded"} → "title":"Shop"`,
			`navigate {"url":"BASE/","wait_until":"networkidle"} → {"url":"BASE/","title":"Shop","status":200}`,
		}},
		{"reading", []string{
			`navigate {"url":"BASE/"} → Shop`,
			`extract_text {"selector":".p"} → {"text":"one","truncated":false}`,
			`extract_text {"selector":".p","all":true} → {"count":2,"texts":["one","two"],"truncated":false}`,
			`extract_text {"selector":"#none"} → ! no element matches #none`,
			`extract_text {"selector":"[["} → ! "[[" is not a valid CSS selector`,
			`extract_links {} → {"text":"Elsewhere","url":"https://example.org/x"}`,
			`extract_links {"filter_pattern":"^https://example"} → ` +
				`{"count":1,"links":[{"text":"Elsewhere","url":"https://example.org/x"}],"truncated":false}`,
			`extract_links {"filter_pattern":"("} → ! is not a regular expression`,
			`extract_tables {} → ` +
				`{"count":1,"tables":[{"caption":"Prices","headers":["Item","Price"],"rows":[["Milk","1.20"],["Bread","3"]]}],"truncated":false}`,
			`extract_tables {"selector":"h1"} → ! no table matches h1`,
			`get_dom {"selector":"table","depth":1} → <table>\n  <caption>…</caption>\n  <tbody>…</tbody>\n</table>`,
			`highlight_element {"selector":"h1"} → {"highlighted":1}`,
			`screenshot {"selector":"h1"} → "data_url":"data:image/jpeg;base64,/9j/`,
			`screenshot {"full_page":true} → "format":"jpeg"`,
			`scroll {"direction":"bottom"} → "at_bottom":true`,
			`scroll {"direction":"up","amount":100,"smooth":true} → "at_bottom":false`,
			`scroll {"direction":"top"} → "at_top":true`,
			`navigate {"url":"BASE/more"} → More`,
			`scroll {"direction":"bottom"} → "at_bottom":false`,
			`scroll {"direction":"bottom","smooth":true} → "at_bottom":false`,
			`scroll {"direction":"bottom","smooth":true} → "at_bottom":true`,
			`scroll {"direction":"left"} → ! direction must be up, down, top or bottom`,
		}},
		{"clicking", []string{
			`navigate {"url":"BASE/"} → Shop`,
			`click_element {} → ! selector or text is required`,
			`click_element {"selector":"#x"} → ! no element matches #x`,
			`click_element {"text":"Nothing"} → ! no link, button or other element has the text "Nothing"`,
			`click_element {"selector":"#off"} → ! button#off "Off" is disabled`,
			`click_element {"selector":"#hid"} → ! is not visible`,
			`click_element {"selector":"button","index":40} → ! index 40 is too large`,
			`click_element {"selector":"#under"} → "title":"under"`,
			`click_element {"selector":"#say"} → "dialogs":[{"type":"confirm","message":"Sure?"}]`,
			`click_element {"selector":"#late"} → "navigated":false`,
			`extract_text {"selector":"#later"} → {"text":"here","truncated":false}`,
			`click_element {"text":"order now"} → "navigated":true`,
			`extract_text {"selector":"title"} → {"text":"Form","truncated":false}`,
		}},
		{"a form", []string{
			`navigate {"url":"BASE/form"} → Form`,
			`type_text {"selector":"#name"} → ! selector and text are required`,
			`type_text {"selector":"#name","text":"er"} → "value":"older"`,
			`type_text {"selector":"#name","text":"Ada","clear_first":true} → "value":"Ada"`,
			`type_text {"selector":"#size","text":"Huge"} → ! has no option "Huge"; its options are "Small", "Large"`,
			`type_text {"selector":"#size","text":"large"} → "typed_into":"select#size`,
			`type_text {"selector":"#day","text":"2026-02-17"} → "typed_into":"input#day`,
			`type_text {"selector":"#rich","text":"def"} → "value":"abcdef"`,
			`type_text {"selector":"#rich","text":"new","clear_first":true} → "value":"new"`,
			`type_text {"selector":"button","text":"x"} → ! takes no text`,
			`type_text {"selector":"#note","text":"a\nb"} → "value":"a\nb"`,
			`type_text {"selector":"#pw","text":"secret"} → {"navigated":false,"title":"Form","typed_into":"input#pw","url":"BASE/form"}`,
			`type_text {"selector":"#name","text":"!","press_enter":true} → "navigated":true`,
			`extract_text {"selector":"#got"} → name=Ada%21&size=l&day=2026-02-17&note=a%0D%0Ab`,
		}},
		{"tabs", []string{
			`navigate {"url":"BASE/"} → Shop`,
			`click_element {"text":"Open a tab"} → "opened_tab":true`,
			`extract_text {"selector":"#x"} → in a new tab`,
			`click_element {"text":"Close"} → "title":"Shop"`,
		}},
		{"cookies of a session", []string{
			`navigate {"url":"BASE/cookie"} → Cookie`,
			`navigate {"url":"BASE/cookie"} → Cookie`,
			`extract_text {"selector":"#c"} → true`,
		}},
		{"a session without them", []string{
			`navigate {"url":"BASE/cookie"} → Cookie`,
			`extract_text {"selector":"#c"} → false`,
			`dance {} → ! unknown tool "dance"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, step := range c.steps {
				step = strings.ReplaceAll(step, "BASE", base)
				call, want, _ := strings.Cut(step, " → ")
				tool, params, _ := strings.Cut(call, " ")
				result, err := b.Do(t.Context(), c.name, tool, json.RawMessage(params))
				if fault, ok := strings.CutPrefix(want, "! "); ok {
					require.ErrorContains(t, err, fault, call)
					continue
				}
				require.NoError(t, err, call)
				require.Contains(t, string(result), want, call)
			}
		})
	}
}

// A page that hangs ends at the timeout of its tool, and does not affect the next session. A
// killed browser is restarted.
func TestHangsAndCrashes(t *testing.T) {
	t.Parallel()
	b, base := newBrowser(t), site(t)
	do := func(ctx context.Context, session, tool, params string) (string, error) {
		result, err := b.Do(ctx, session, tool, json.RawMessage(strings.ReplaceAll(params, "BASE", base)))
		return string(result), err
	}
	_, err := do(t.Context(), "a", "navigate", `{"url":"BASE/hang"}`)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = do(ctx, "a", "click_element", `{"text":"Hang"}`)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	got, err := do(t.Context(), "b", "navigate", `{"url":"BASE/"}`)
	require.NoError(t, err)
	require.Contains(t, got, "Shop")

	_, err = do(t.Context(), "b", "crash", `{}`)
	require.Error(t, err)
	b.Kill()
	_, err = do(t.Context(), "b", "extract_text", `{"selector":"h1"}`)
	require.ErrorContains(t, err, "no page is open", "its pages are lost")
	got, err = do(t.Context(), "b", "navigate", `{"url":"BASE/"}`)
	require.NoError(t, err)
	require.Contains(t, got, "Shop")
}

// Pages cannot load anything from hosts that are not allowed, by any kind of request.
func TestAllowedHosts(t *testing.T) {
	t.Parallel()
	base := site(t)
	u, err := url.Parse(base)
	require.NoError(t, err)
	elsewhere := "http://localhost:" + u.Port()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<title>Own</title><a href="%s/form">Leave</a><img src="%s/" `+
			`onerror="document.title='blocked'" onload="document.title='loaded'">`,
			elsewhere, elsewhere)
	})
	own := httptest.NewServer(mux)
	t.Cleanup(own.Close)
	b := newBrowser(t, "127.0.0.1", "*.example.org")
	_, err = b.Do(t.Context(), "a", "navigate", json.RawMessage(`{"url":"`+elsewhere+`/"}`))
	require.EqualError(t, err, "host localhost is not allowed in this browser (allowed: 127.0.0.1, *.example.org)")
	got, err := b.Do(t.Context(), "a", "navigate", json.RawMessage(`{"url":"`+own.URL+`/"}`))
	require.NoError(t, err)
	require.Contains(t, string(got), `"title":"blocked"`)
	got, err = b.Do(t.Context(), "a", "click_element", json.RawMessage(`{"text":"Leave","wait_for_navigation":true}`))
	require.NoError(t, err)
	require.NotContains(t, string(got), "Form")
}

// A process removes the profiles of killed processes.
func TestProfilesOfTheDead(t *testing.T) {
	t.Parallel()
	path, err := chromium.Find("")
	if err != nil {
		path = "/bin/false"
	}
	dir := t.TempDir()
	dead, alive := filepath.Join(dir, "profile-999999999-x"), filepath.Join(dir, fmt.Sprintf("profile-%d-x", os.Getppid()))
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "Default"), 0o700))
	require.NoError(t, os.Mkdir(alive, 0o700))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = chromium.Start(ctx, chromium.Options{Path: path, Dir: dir})
	require.Error(t, err)
	require.NoDirExists(t, dead)
	require.DirExists(t, alive)
}

func TestStartThatFails(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "chromium")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho no sandbox here >&2\nexit 3\n"), 0o700))
	_, err := chromium.Start(t.Context(), chromium.Options{Path: script, Dir: t.TempDir()})
	require.EqualError(t, err, "Chromium did not start (exit status 3): no sandbox here")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	_, err = chromium.Start(t.Context(), chromium.Options{Path: script, Dir: t.TempDir()})
	require.EqualError(t, err, "Chromium did not start (it ended): no output")
	_, err = chromium.Find(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
}
