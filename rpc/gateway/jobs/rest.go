package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
)

// refuse answers a request with an error.
func refuse(w http.ResponseWriter, status int, message string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	door.Reply(w, status, map[string]string{"error": message})
}

// refuseToken answers a request with an invalid token.
func (s *Server) refuseToken(w http.ResponseWriter, err error) {
	if errors.Is(err, token.ErrStore) {
		s.log.Error("token check failed", board.EventKey, "store_failed", "error", err)
		refuse(w, http.StatusInternalServerError, token.ErrStore.Error())
		return
	}
	refuse(w, http.StatusUnauthorized, err.Error())
}

// withToken passes requests with a valid token in the header Authorization to h.
func (s *Server) withToken(h func(w http.ResponseWriter, r *http.Request, v board.Viewer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := door.Bearer(r)
		claims, err := s.options.Tokens.Check(r.Context(), text)
		if err != nil {
			s.refuseToken(w, err)
			return
		}
		h(w, r, viewer(claims))
	}
}

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request, v board.Viewer) {
	m, err := s.options.Board.Jobs(r.Context(), v)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	door.Reply(w, http.StatusOK, map[string]any{"jobs": append(m.Active, m.Recent...)})
}

func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request, v board.Viewer) {
	id := r.PathValue("id")
	code, message := s.cancel(context.WithoutCancel(r.Context()), v, id)
	status := map[string]int{"": http.StatusOK, "unknown_job": http.StatusNotFound, "job_over": http.StatusBadRequest}[code]
	switch status {
	case http.StatusOK:
		door.Reply(w, status, map[string]any{"job_id": id, "status": board.Cancelled})
	case 0:
		refuse(w, http.StatusBadGateway, message)
	default:
		refuse(w, status, message)
	}
}

func (s *Server) refreshToken(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Refresh string `json:"refresh_token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*token.MaxBytes)).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "body must be a JSON object with the field refresh_token")
		return
	}
	pair, err := s.options.Tokens.Refresh(r.Context(), body.Refresh)
	if err != nil {
		s.refuseToken(w, err)
		return
	}
	if d := s.options.Dashboard; d != nil {
		if err := d.SetCookie(r.Context(), w, pair.Access); err != nil {
			s.log.Warn("cookie for pages of runs could not be created", "error", err)
		}
	}
	door.Reply(w, http.StatusOK, pair)
}
