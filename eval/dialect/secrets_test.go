package dialect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/dialect"
)

func TestIsSecret(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PGPASSWORD", "OPENAI_APIKEY", "GH_TOKEN", "MYSQL_PWD", "key", "AUTHORIZATION"} {
		require.True(t, dialect.IsSecret(name), name)
	}
	for _, name := range []string{"PWD", "OLDPWD", "HOME", "MONKEY", "PATH"} {
		require.False(t, dialect.IsSecret(name), name)
	}
}

func TestIsSecretVariable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"DATABASE_URL", "postgres://me:hunter2@db/x", true}, {"mongo_uri", "mongodb+srv://:p@h", true}, {"SENTRY_DSN", "https://a:b@s.io/1", true},
		{"DATABASE_URL", "postgres://db/x", false}, {"SITE_URL", "https://h/x:y@z", false}, {"TEXT", "see http://a:b@c", false}, {"API_KEY", "", true},
	} {
		require.Equal(t, c.want, dialect.IsSecretVariable(c.name, c.value), c.name+"="+c.value)
	}
}
