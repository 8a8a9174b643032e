package dashboard_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/jobs/dashboard"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/store"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a dashboard with runs of the owner.
type site struct {
	*testing.T
	*dashboard.Dashboard
	mux    *http.ServeMux
	tokens *token.Issuer
	runs   map[string]record.Handle
}

func newSite(t *testing.T) *site {
	s := &site{T: t, mux: http.NewServeMux(), runs: map[string]record.Handle{}}
	rows, err := store.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rows.Close()) })
	s.tokens, err = token.New(t.Context(), rows)
	require.NoError(t, err)
	s.Dashboard = dashboard.New(dashboard.Options{
		Tokens: s.tokens,
		Run: func(id string) (record.Handle, error) {
			if h := s.runs[id]; h != nil {
				return h, nil
			}
			return nil, record.ErrRunNotFound
		},
		Sees: func(_ context.Context, c *token.Claims, id string) (bool, error) {
			return c.IsAdmin() || c.IsOwner(), nil
		},
	})
	s.Handle(s.mux)
	return s
}

// do sends a request with an optional body, and headers in pairs.
func (s *site) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w
}

func (s *site) exchange(code string) *httptest.ResponseRecorder {
	return s.do("POST", "/api/auth/exchange", `{"code":"`+code+`"}`)
}

// cookie returns the header of a client with a token.
func (s *site) cookie(g token.Grant) string {
	s.Helper()
	pair, err := s.tokens.Create(s.Context(), g)
	require.NoError(s, err)
	w := s.do("POST", "/api/auth/page", "{}", "Authorization", "Bearer "+pair.Access)
	require.Equal(s, http.StatusOK, w.Code)
	c := w.Result().Cookies()[0]
	return c.Name + "=" + c.Value
}

func TestFilesOfThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	index := s.do("GET", "/", "")
	require.Equal(t, http.StatusOK, index.Code)
	require.Equal(t, "text/html; charset=utf-8", index.Header().Get("Content-Type"))
	require.Equal(t, "no-cache", index.Header().Get("Cache-Control"))
	assets := regexp.MustCompile(`"(/assets/[^"]+)"`).FindAllStringSubmatch(index.Body.String(), -1)
	require.NotEmpty(t, assets)
	for _, a := range assets {
		w := s.do("GET", a[1], "")
		require.Equal(t, http.StatusOK, w.Code, a[1])
		require.Regexp(t, `immutable`, w.Header().Get("Cache-Control"))
		require.Regexp(t, `^text/(javascript|css)`, w.Header().Get("Content-Type"))
		again := s.do("GET", a[1], "", "If-None-Match", w.Header().Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.Code)
		policy := w.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.Contains(t, policy, "frame-ancestors 'none'")
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, []string{"nosniff", "no-referrer"},
			[]string{w.Header().Get("X-Content-Type-Options"), w.Header().Get("Referrer-Policy")})
	}
	for _, elsewhere := range []string{"/index.html", "/assets/", "/assets/none.js", "/src/main.tsx", "/..%2fdashboard.go"} {
		require.Equal(t, http.StatusNotFound, s.do("GET", elsewhere, "").Code, elsewhere)
	}
}

// All parts of the page come from the server itself.
func TestPageIsSelfContained(t *testing.T) {
	t.Parallel()
	elsewhere := regexp.MustCompile(`https?://[^"'\x60 )]+`)
	known := regexp.MustCompile(`^http://www\.w3\.org/`) // XML namespaces, which browsers do not load
	err := fs.WalkDir(os.DirFS("."), "built", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		for _, u := range elsewhere.FindAllString(string(content), -1) {
			require.Regexp(t, known, u, name)
		}
		require.NotRegexp(t, `\beval\(|new Function\(`, string(content), name)
		require.True(t, path.Base(name) == "index.html" || regexp.MustCompile(`-[\w-]{8}\.(js|css)$`).MatchString(name),
			"name of %s contains no hash", name)
		return err
	})
	require.NoError(t, err)
}

func TestCodeIsGoodForOneUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	code := s.NewCode()
	w := s.exchange(code)
	require.Equal(t, http.StatusOK, w.Code)
	var pair token.Pair
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &pair))
	claims, err := s.tokens.Check(t.Context(), pair.Access)
	require.NoError(t, err)
	require.True(t, claims.IsOwner())
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	for _, c := range w.Result().Cookies() {
		require.True(t, c.HttpOnly)
		require.Equal(t, http.SameSiteStrictMode, c.SameSite)
		require.Contains(t, []string{"/runs", "/compare"}, c.Path)
		_, err := s.tokens.Check(t.Context(), c.Value)
		require.ErrorIs(t, err, token.ErrType, "the cookie must not open connections")
		require.Equal(t, http.StatusUnauthorized,
			s.do("POST", "/api/auth/page", "{}", "Authorization", "Bearer "+c.Value).Code,
			"the cookie must not renew itself")
	}
	require.Equal(t, http.StatusUnauthorized, s.exchange(code).Code)
}

func TestAttackCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	code := s.NewCode()
	for _, body := range []string{
		"", "null", "[]", `{"code":""}`, `{"code":1}`, strings.Repeat("x", 1<<20),
		`{"code":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		require.Equal(t, http.StatusBadRequest, s.do("POST", "/api/auth/exchange", body).Code)
	}
	for _, wrong := range []string{strings.ToLower(code), code[1:], code + " ", "a"} {
		require.Equal(t, http.StatusUnauthorized, s.exchange(wrong).Code, wrong)
	}
	require.Equal(t, http.StatusOK, s.exchange(code).Code, "wrong codes do not use up the right one")
	require.Equal(t, http.StatusMethodNotAllowed, s.do("GET", "/api/auth/exchange", "").Code)
}

func TestCodesExpireAndAreFew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.NewCode()
	var last string
	for range 32 {
		last = s.NewCode()
	}
	require.Equal(t, http.StatusUnauthorized, s.exchange(first).Code, "32 newer codes exist")
	require.Equal(t, http.StatusOK, s.exchange(last).Code)
	synctest.Test(t, func(t *testing.T) {
		d := dashboard.New(dashboard.Options{})
		mux := http.NewServeMux()
		d.Handle(mux)
		code := d.NewCode()
		time.Sleep(10 * time.Minute)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/auth/exchange", strings.NewReader(`{"code":"`+code+`"}`)))
		require.Equal(t, http.StatusUnauthorized, w.Code)
	})
}

// recorded returns a finished run.
func recorded(t *testing.T) record.Handle {
	t.Helper()
	rn := runnertest.AgentRunner(t, t.TempDir(), func(context.Context, *executor.Trial) (string, error) { return "good", nil })
	run := runnertest.Start(t, rn, "-- eval.yaml --\nname: demo\nconfig: {executor: agent}\ntasks: [{id: a, prompt: a}]\n", record.Request{})
	<-run.Done()
	t.Cleanup(func() { require.NoError(t, rn.Close(context.Background())) })
	return run
}

func TestReports(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := recorded(t)
	s.runs["mine"], s.runs["other"] = run, run
	owner, ann, admin := s.cookie(token.Grant{}), s.cookie(token.Grant{User: "ann"}), s.cookie(token.Grant{User: "root", Role: token.Admin})
	for _, c := range []struct {
		cookie, target string
		want           int
	}{
		{"", "/runs/mine", http.StatusUnauthorized},
		{"waza_page=nonsense", "/runs/mine", http.StatusUnauthorized},
		{owner, "/runs/mine", http.StatusOK},
		{admin, "/runs/mine", http.StatusOK},
		{ann, "/runs/mine", http.StatusNotFound},
		{owner, "/runs/none", http.StatusNotFound},
		{owner, "/runs/" + url.PathEscape("../mine"), http.StatusNotFound},
		{owner, "/compare?run=mine&run=other", http.StatusOK},
		{ann, "/compare?run=mine&run=other", http.StatusNotFound},
		{owner, "/compare?run=mine&run=none", http.StatusNotFound},
		{owner, "/compare?run=mine", http.StatusBadRequest},
		{owner, "/compare?run=mine&run=", http.StatusBadRequest},
		{owner, "/compare?run=a&run=b&run=c", http.StatusBadRequest},
	} {
		w := s.do("GET", c.target, "", "Cookie", c.cookie)
		require.Equal(t, c.want, w.Code, c.target)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Equal(t, c.want == http.StatusOK, strings.Contains(w.Body.String(), run.ID()), c.target)
	}
	// An access token is not valid as a cookie, and a cookie is not valid as a header.
	pair, err := s.tokens.Create(t.Context(), token.Grant{})
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, s.do("GET", "/runs/mine", "", "Cookie", "waza_page="+pair.Access).Code)
	require.Equal(t, http.StatusUnauthorized, s.do("GET", "/runs/mine", "", "Authorization", "Bearer "+pair.Access).Code)
}
