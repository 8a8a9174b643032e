package router

import "net/http"

// Handle serves a request like the door does.
func Handle(s *Server, w http.ResponseWriter, r *http.Request) { s.handle(w, r) }
