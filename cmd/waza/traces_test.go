//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// waza run sends its traces before it ends, and an unreachable collector costs one line.
func TestRunTraces(t *testing.T) {
	t.Parallel()
	var spans atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var req coltracepb.ExportTraceServiceRequest
		if err == nil && proto.Unmarshal(b, &req) == nil {
			for _, rs := range req.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					spans.Add(int64(len(ss.Spans)))
				}
			}
		}
	}))
	defer collector.Close()
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite,
		[]byte("name: s\nconfig: {trials_per_task: 2}\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n"), 0o600))
	c := startWaza(t, environment(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL), "run", "--traces", "env", suite)
	require.Zero(t, c.exitCode(t))
	require.EqualValues(t, 1+2+4, spans.Load())

	collector.Close()
	c = startWaza(t, environment(t), "run", "--traces", collector.URL, suite)
	c.says(t, "cannot send traces to the collector")
	require.Zero(t, c.exitCode(t))
}
