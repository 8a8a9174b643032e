package tokens

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write the vocabulary again")

// The packed vocabulary is that of the library.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	library := codec.NewO200kBase()
	texts := make([]string, tokens)
	for id := range texts {
		text, err := library.Decode([]uint{uint(id)})
		require.NoError(t, err)
		texts[id] = text
	}
	if *update {
		var file bytes.Buffer
		zip, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
		require.NoError(t, err)
		for _, text := range texts {
			_, err := zip.Write(append([]byte{byte(len(text))}, text...))
			require.NoError(t, err)
		}
		require.NoError(t, zip.Close())
		require.NoError(t, os.WriteFile("o200k_base.gz", file.Bytes(), 0o644))
		packed = file.Bytes()
	}
	v, err := load()
	require.NoError(t, err)
	require.Len(t, v, tokens)
	for id, text := range texts {
		rank, ok := v[text]
		require.True(t, ok && rank == uint(id), "%q", text)
	}
}
