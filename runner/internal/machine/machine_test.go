package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// counters writes a directory like /proc.
func counters(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "pressure"), 0o700))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

var busy = map[string]string{
	"pressure/cpu":    "some avg10=9.12 avg60=4.70 avg300=22.38 total=248424569\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	"pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
	"loadavg":         "3.00 1.36 1.05 2/102 23488\n",
	"meminfo":         "MemTotal:       200 kB\nMemFree:        10 kB\nMemAvailable:   50 kB\n",
}

func TestSample(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	require.Equal(t, Sample{
		At: now, CPUWait: 248424569 * time.Microsecond, MemoryWait: 7 * time.Microsecond,
		Load: 3 / float64(runtime.NumCPU()), MemoryFree: 0.25,
	}, NewSampler(counters(t, busy)).sampleAt(now))
	require.Equal(t, Sample{At: now, CPUWait: -1, MemoryWait: -1, Load: -1, MemoryFree: -1},
		NewSampler(counters(t, nil)).sampleAt(now), "a system without counters")
}

// Trials that start together share a reading.
func TestSampleIsShared(t *testing.T) {
	t.Parallel()
	dir := counters(t, busy)
	s := NewSampler(dir)
	now := time.Unix(1000, 0)
	first := s.sampleAt(now)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "loadavg"), []byte("9 0 0\n"), 0o600))
	require.Equal(t, first, s.sampleAt(now.Add(interval-1)))
	require.InDelta(t, 9/float64(runtime.NumCPU()), s.sampleAt(now.Add(interval)).Load, 1e-9)
}

func TestFilesThatSayNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "some", "some total=", "some total=-1", "some total=1e3", "full total=5", "some total=99999999999999999999"} {
		_, ok := parsePressure([]byte(text))
		require.False(t, ok, text)
	}
	for _, text := range []string{"", "x", "NaN", "-1", "Inf"} {
		_, ok := parseLoad([]byte(text))
		require.False(t, ok, text)
	}
	for _, text := range []string{"", "MemTotal: 5 kB", "MemTotal: 0 kB\nMemAvailable: 0 kB", "MemTotal: 5\nMemAvailable: 6", "MemTotal: x\nMemAvailable: 6"} {
		_, ok := parseMemory([]byte(text))
		require.False(t, ok, text)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	s := new(Sampler).Sample()
	require.WithinDuration(t, time.Now(), s.At, time.Minute)
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		require.GreaterOrEqual(t, s.Load, 0.0)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range busy {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, ok := parsePressure(text); ok {
			require.True(t, d >= 0 && d <= maxPressure)
		}
		if load, ok := parseLoad(text); ok {
			require.True(t, load >= 0 && load < 1e9)
		}
		if share, ok := parseMemory(text); ok {
			require.True(t, share >= 0 && share <= 1)
		}
	})
}

func BenchmarkSample(b *testing.B) {
	b.ReportAllocs()
	var s Sampler
	now := time.Now()
	for i := range b.N {
		s.sampleAt(now.Add(time.Duration(i) * interval))
	}
}
