package runnertest

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// SecretKey is a key that no record may contain.
const SecretKey = "sk-run-0123456789abcdef"

// JudgeServer is a judge that passes everything, until Fail is called.
type JudgeServer struct {
	Requests atomic.Int64
	mu       sync.Mutex
	status   int // 0 means answer
	after    int64
}

// Fail makes the server answer with the status after the given number of requests.
func (s *JudgeServer) Fail(status int, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.after = status, after
}

func (s *JudgeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.Requests.Add(1)
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != 0 && n > s.after {
		w.WriteHeader(s.status)
		fmt.Fprint(w, `{"error":{"message":"no judgement today"}}`)
		return
	}
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"submit_verdict","arguments":"{\"score\":0.8,\"passed\":true,\"reason\":\"fine\"}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":60,"completion_tokens":40,"total_tokens":100}}`+"\n\ndata: [DONE]\n\n")
}
