package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"waza/runner/internal/secrets"
)

func TestMaskKeepsLengthsAndHidesSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-abcabd-0123456789"
	var r secrets.Redactor
	r.Add(secret)
	stars := strings.Repeat("*", len(secret))
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	digits := hex.EncodeToString([]byte(secret))
	for text, want := range map[string]string{
		"":                           "",
		"nothing":                    "nothing",
		secret:                       stars,
		"a" + secret + secret + "z":  "a" + stars + stars + "z",
		"sk-abcab" + secret:          "sk-abcab" + stars,
		"sk-abc":                     "sk-abc",
		secret[:len(secret)-1] + "x": secret[:len(secret)-1] + "x",
		digits:                       strings.Repeat("*", len(digits)),
	} {
		for name, src := range map[string]io.Reader{
			"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)),
			"halves": iotest.HalfReader(strings.NewReader(text)), "end": iotest.DataErrReader(strings.NewReader(text)),
		} {
			got, err := io.ReadAll(r.Mask(io.NopCloser(src)))
			require.NoError(t, err)
			require.Equal(t, want, string(got), "%s of %q", name, text)
		}
	}
	got, err := io.ReadAll(r.Mask(io.NopCloser(strings.NewReader(encoded))))
	require.NoError(t, err)
	require.Len(t, got, len(encoded))
	require.NotContains(t, string(got), encoded[:8])
}

// A stream of events arrived late, because the end of each was held back until the next.
func TestMaskPassesCompleteTextsAtOnce(t *testing.T) {
	t.Parallel()
	var r secrets.Redactor
	r.Add("sk-abcabd-0123456789")
	in, out := io.Pipe()
	masked := r.Mask(in)
	for _, event := range []string{"data: one\n\n", "data: sk\n\n"} {
		go out.Write([]byte(event))
		got := make([]byte, len(event))
		_, err := io.ReadFull(masked, got)
		require.NoError(t, err)
		require.Equal(t, event, string(got))
	}
	require.NoError(t, masked.Close())
	_, err := out.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// The start of a secret was returned when it ended with a shorter secret.
func TestMaskHidesSecretsWithinSecrets(t *testing.T) {
	t.Parallel()
	var r secrets.Redactor
	r.Add("CDEFGH")
	r.Add("ABCDEFGH12345678")
	got, err := io.ReadAll(r.Mask(io.NopCloser(&pieces{text: "<ABCDEFGH12345678>", size: 9})))
	require.NoError(t, err)
	require.Equal(t, "<****************>", string(got))
}

func TestMaskWithoutSecretsIsTheSource(t *testing.T) {
	t.Parallel()
	src := io.NopCloser(strings.NewReader("x"))
	require.Equal(t, src, new(secrets.Redactor).Mask(src))
}

func FuzzMask(f *testing.F) {
	f.Add("sk-aaaab", "xxsk-aask-aaaabyy", 3)
	f.Add("aaaaaaab", "aaaaaaaaaab", 1)
	f.Fuzz(func(t *testing.T, secret, text string, size int) {
		if len(secret) < 6 || size < 1 || strings.ContainsAny(secret, "* ") {
			t.Skip()
		}
		var r secrets.Redactor
		r.Add(secret)
		var got bytes.Buffer
		_, err := io.Copy(&got, r.Mask(io.NopCloser(&pieces{text: text, size: size})))
		require.NoError(t, err)
		require.Len(t, got.Bytes(), len(text))
		require.NotContains(t, got.String(), secret)
		for i := range text {
			require.True(t, got.Bytes()[i] == text[i] || got.Bytes()[i] == '*')
		}
	})
}

// pieces returns a text in pieces of that size.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(len(p.text), p.size)])
	p.text = p.text[n:]
	return n, nil
}
