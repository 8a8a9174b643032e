package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"strings"

	"waza/rpc/gateway/jobs/token"
	"waza/runner/record"
	"waza/runner/report/page"
)

// The paths of reports. The cookie is valid for these paths.
const (
	runsPath    = "/runs/"
	comparePath = "/compare"
)

// cookieName returns the name of a server's cookie. Cookies do not distinguish ports, and a
// machine can run several servers.
func cookieName(ctx context.Context) string {
	if addr, ok := ctx.Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return fmt.Sprintf("waza_page_%d", addr.Port)
	}
	return "waza_page"
}

// SetCookie lets a browser that has shown an access token open reports for the lifetime of such
// a token. Browsers cannot send a header when they open a page. The cookie contains a token that
// is valid for reports only. The error comes from the token package.
func (d *Dashboard) SetCookie(ctx context.Context, w http.ResponseWriter, text string) error {
	claims, err := d.o.Tokens.Check(ctx, text)
	if err != nil {
		return err
	}
	value, err := d.o.Tokens.PageToken(claims)
	if err != nil {
		return err
	}
	for _, path := range []string{strings.TrimSuffix(runsPath, "/"), comparePath} {
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(ctx), Value: value, Path: path, MaxAge: int(token.AccessTTL.Seconds()),
			HttpOnly: true, Secure: d.o.Secure, SameSite: http.SameSiteStrictMode,
		})
	}
	return nil
}

// report serves the report of a run.
func (d *Dashboard) report(w http.ResponseWriter, r *http.Request) {
	d.show(w, r, r.PathValue("id"), "")
}

// compare serves the report of the second of two runs, with its changes since the first.
func (d *Dashboard) compare(w http.ResponseWriter, r *http.Request) {
	runs := r.URL.Query()["run"]
	if len(runs) != 2 || runs[0] == "" || runs[1] == "" {
		explain(w, http.StatusBadRequest, "Name two runs to compare: /compare?run=BEFORE&run=AFTER.")
		return
	}
	d.show(w, r, runs[1], runs[0])
}

// show writes the report of a run, compared with an earlier run unless against is empty.
func (d *Dashboard) show(w http.ResponseWriter, r *http.Request, id, against string) {
	claims, err := d.visitor(r)
	switch {
	case errors.Is(err, token.ErrStore):
		d.log.Error("token check failed", "error", err)
		explain(w, http.StatusInternalServerError, "Your token could not be checked.")
		return
	case err != nil:
		explain(w, http.StatusUnauthorized, "Open the dashboard first, then load this page again.")
		return
	}
	h, err := d.find(r.Context(), claims, id)
	o := page.Options{Ledger: d.o.Ledger}
	if err == nil && against != "" {
		o.Against, err = d.find(r.Context(), claims, against)
	}
	switch {
	case errors.Is(err, record.ErrRunNotFound):
		explain(w, http.StatusNotFound, "Run not found.")
		return
	case err != nil:
		d.log.Error("report of a run failed", "run", id, "error", err)
		explain(w, http.StatusInternalServerError, "The run could not be read.")
		return
	}
	select {
	case d.rendering <- struct{}{}:
		defer func() { <-d.rendering }()
	case <-r.Context().Done():
		return
	}
	protect(w.Header(), "frame-ancestors 'none'") // the report sets its own policy
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := page.WriteWith(w, h, o); err != nil && r.Context().Err() == nil {
		d.log.Warn("report of a run failed", "run", id, "error", err)
		panic(http.ErrAbortHandler) // otherwise the browser would accept an incomplete page
	}
}

// visitor returns the claims of the user who opens a page.
func (d *Dashboard) visitor(r *http.Request) (*token.Claims, error) {
	cookie, err := r.Cookie(cookieName(r.Context()))
	if err != nil {
		return nil, token.ErrMissing
	}
	return d.o.Tokens.Check(r.Context(), cookie.Value, token.Page)
}

// find returns a run if the user can see it. Otherwise the run does not exist for the user.
func (d *Dashboard) find(ctx context.Context, c *token.Claims, id string) (record.Handle, error) {
	h, err := d.o.Run(id)
	if err != nil {
		return nil, err
	}
	sees, err := d.o.Sees(ctx, c, h.ID())
	if err == nil && !sees {
		err = record.ErrRunNotFound
	}
	return h, err
}

// explain shows a page with the reason of a failure.
func explain(w http.ResponseWriter, status int, text string) {
	protect(w.Header(), "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>waza</title></head>
<body><main><h1>waza</h1><p>%s</p><p><a href="/">Open the dashboard</a></p></main></body></html>
`, html.EscapeString(text))
}
