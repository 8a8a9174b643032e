package wire

import (
	"bufio"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkRoundTrip sends ping over a pair of pipes, with several requests in flight, through
// the library's connection. One operation is one round trip.
func BenchmarkRoundTrip(b *testing.B) {
	for _, inFlight := range []int{1, 64} {
		b.Run(strconv.Itoa(inFlight), func(b *testing.B) {
			r1, w1, err := os.Pipe()
			require.NoError(b, err)
			r2, w2, err := os.Pipe()
			require.NoError(b, err)
			defer r2.Close()
			s := NewStream(r1, w2, Options{})
			c := s.Connect(b.Context(), handler{s: s})
			defer c.Close()
			in := bufio.NewReader(r2)
			request := []byte(probe)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N + inFlight {
				if i >= inFlight {
					if _, err := in.ReadSlice('\n'); err != nil {
						b.Fatal(err)
					}
				}
				if i < b.N {
					if _, err := w1.Write(request); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "roundtrips/s")
		})
	}
}

// BenchmarkScan reads a large message, without the connection.
func BenchmarkScan(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":[`)
	for range 10_000 {
		line = append(line, `{"name":"a string of words","value":[1,2.5,true,null]},`...)
	}
	line = append(line, `0]}`...)
	var p parser
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, _, fault := p.parse(line, 100); fault != nil {
			b.Fatal(fault)
		}
	}
}
