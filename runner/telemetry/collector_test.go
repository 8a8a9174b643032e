package telemetry_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector receives traces as OTLP over HTTP, like a real collector.
type collector struct {
	*httptest.Server

	mu       sync.Mutex // guards the fields below
	spans    []*tracepb.Span
	resource []*commonpb.KeyValue
	requests int
	headers  http.Header
	status   int // status of responses; 0 means 200
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Server.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	var req coltracepb.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
		proto.Unmarshal(b, &req) != nil {
		http.Error(w, "unexpected request", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	c.headers = r.Header
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	for _, rs := range req.ResourceSpans {
		c.resource = rs.Resource.Attributes
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	b, _ = proto.Marshal(&coltracepb.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(b)
}

// node is a span with its children.
type node struct {
	*tracepb.Span
	children []*node
}

// tree builds the trees of spans, and checks that each span is within the time of its parent.
func (c *collector) tree(t *testing.T) []*node {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := map[string]*node{}
	for _, s := range c.spans {
		require.NotContains(t, nodes, string(s.SpanId))
		require.LessOrEqual(t, s.StartTimeUnixNano, s.EndTimeUnixNano, s.Name)
		nodes[string(s.SpanId)] = &node{Span: s}
	}
	var roots []*node
	for _, s := range c.spans {
		n := nodes[string(s.SpanId)]
		if len(s.ParentSpanId) == 0 {
			roots = append(roots, n)
			continue
		}
		parent := nodes[string(s.ParentSpanId)]
		require.NotNil(t, parent, "%s has no parent", s.Name)
		require.Equal(t, parent.TraceId, s.TraceId)
		require.GreaterOrEqual(t, s.StartTimeUnixNano, parent.StartTimeUnixNano, "%s in %s", s.Name, parent.Name)
		parent.children = append(parent.children, n)
	}
	return roots
}

func attributesOf(list []*commonpb.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.Key] = v.IntValue
		case *commonpb.AnyValue_DoubleValue:
			m[kv.Key] = v.DoubleValue
		case *commonpb.AnyValue_BoolValue:
			m[kv.Key] = v.BoolValue
		}
	}
	return m
}
