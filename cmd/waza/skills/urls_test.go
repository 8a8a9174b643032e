package skills

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeadURLs(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/fine", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/only-get", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	})
	mux.HandleFunc("/login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	server := httptest.NewServer(mux)
	defer server.Close()
	closed := httptest.NewServer(mux)
	closed.Close()
	got := deadURLs(t.Context(),
		[]string{server.URL + "/fine", server.URL + "/only-get", server.URL + "/login", server.URL + "/round", server.URL + "/gone", closed.URL})
	require.Len(t, got, 3)
	require.Equal(t, "the server answered 404 Not Found", got[server.URL+"/gone"])
	require.Contains(t, got[server.URL+"/round"], "more than 5 redirects")
	require.Contains(t, got[closed.URL], "refused")
}
