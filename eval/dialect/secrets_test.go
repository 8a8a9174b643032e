package dialect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/dialect"
)

func TestIsSecret(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PGPASSWORD", "OPENAI_APIKEY", "GH_TOKEN", "MYSQL_PWD", "key"} {
		require.True(t, dialect.IsSecret(name), name)
	}
	for _, name := range []string{"PWD", "OLDPWD", "HOME", "MONKEY", "PATH"} {
		require.False(t, dialect.IsSecret(name), name)
	}
}
