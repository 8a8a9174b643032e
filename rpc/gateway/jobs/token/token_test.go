package token_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/store"
)

func newIssuer(t *testing.T, dir string) (*token.Issuer, *store.Store) {
	t.Helper()
	s, err := store.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	i, err := token.New(t.Context(), s)
	require.NoError(t, err)
	return i, s
}

func claimsOf(t *testing.T, text string) (claims map[string]any) {
	t.Helper()
	parts := strings.Split(text, ".")
	require.Len(t, parts, 3)
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &claims))
	return claims
}

func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i, _ := newIssuer(t, dir)
	for _, c := range []struct {
		grant       token.Grant
		sub, kind   string
		role        token.Role
		owner, rule bool
		ttl         time.Duration
	}{
		{token.Grant{}, "owner", "access", token.User, true, false, token.AccessTTL},
		{token.Grant{User: "ann@example.com"}, "ann@example.com", "access", token.User, false, false, token.AccessTTL},
		{token.Grant{User: "bob", Role: token.Admin, TTL: time.Hour}, "bob", "cli", token.Admin, false, true, time.Hour},
	} {
		pair, err := i.Create(t.Context(), c.grant)
		require.NoError(t, err)
		other, _ := newIssuer(t, dir) // used by another process
		got, err := other.Check(t.Context(), pair.Access)
		require.NoError(t, err)
		require.Equal(t, []any{c.owner, c.rule}, []any{got.IsOwner(), got.IsAdmin()})
		claims := claimsOf(t, pair.Access)
		require.Equal(t, []any{c.sub, c.kind, string(c.role)}, []any{claims["sub"], claims["type"], claims["role"]})
		require.InDelta(t, time.Now().Add(c.ttl).Unix(), claims["exp"], 5)
		require.NotEmpty(t, claims["jti"])
		refresh := claimsOf(t, pair.Refresh)
		require.Equal(t, "refresh", refresh["type"])
		require.NotEqual(t, claims["jti"], refresh["jti"])
		_, err = i.Check(t.Context(), pair.Refresh)
		require.Equal(t, token.ErrType, err)
	}
	for want, g := range map[string]token.Grant{
		`user "owner" is the user who runs the server; leave it out`: {User: "owner"},
		`user must consist of 1 to 64 letters`:                       {User: "a b"},
		`role "root" is unknown; use user or admin`:                  {Role: "root"},
		"duration 1ms is out of range; use 1s to 366 days":           {TTL: time.Millisecond},
		"duration -1s is out of range; use 1s to 366 days":           {TTL: -time.Second},
		"duration 9000h0m0s is out of range; use 1s to 366":          {TTL: 9000 * time.Hour},
	} {
		_, err := i.Create(t.Context(), g)
		require.ErrorContains(t, err, want)
	}
}

// resigned returns a token with other claims or another header, signed with a key.
func resigned(t *testing.T, text string, method jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims(claimsOf(t, text))
	change(claims)
	out, err := jwt.NewWithClaims(method, claims).SignedString(key)
	require.NoError(t, err)
	return out
}

func TestAttackForgedTokens(t *testing.T) {
	t.Parallel()
	i, s := newIssuer(t, t.TempDir())
	pair, err := i.Create(t.Context(), token.Grant{User: "ann"})
	require.NoError(t, err)
	key, err := s.Secret(t.Context(), "jobs.tokens")
	require.NoError(t, err)
	foreign, _ := newIssuer(t, t.TempDir())
	stranger, err := foreign.Create(t.Context(), token.Grant{})
	require.NoError(t, err)
	same := func(jwt.MapClaims) {}
	_, err = i.Check(t.Context(), resigned(t, pair.Access, jwt.SigningMethodHS256, key, same))
	require.NoError(t, err, "the forged tokens below are otherwise valid")
	parts := strings.Split(pair.Access, ".")
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"missing":      {"", token.ErrMissing},
		"malformed":    {"geheim", token.ErrInvalid},
		"two parts":    {parts[0] + "." + parts[1], token.ErrInvalid},
		"no signature": {parts[0] + "." + parts[1] + ".", token.ErrInvalid},
		"long":         {strings.Repeat("x", 1<<20), token.ErrInvalid},
		"foreign":      {stranger.Access, token.ErrInvalid},
		"alg none":     {resigned(t, pair.Access, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, same), token.ErrInvalid},
		"alg HS512":    {resigned(t, pair.Access, jwt.SigningMethodHS512, key, same), token.ErrInvalid},
		"expired": {
			resigned(t, pair.Access, jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Second).Unix() }),
			token.ErrExpired,
		},
		"no expiry":    {resigned(t, pair.Access, jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { delete(c, "exp") }), token.ErrInvalid},
		"another user": {resigned(t, pair.Access, jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["sub"] = "bob" }), token.ErrRevoked},
		"another role": {
			resigned(t, pair.Access, jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["role"] = "admin" }),
			token.ErrRevoked,
		},
		"an unknown pair": {
			resigned(t, pair.Access, jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["jti"] = "abc-def" }),
			token.ErrRevoked,
		},
		"no type": {resigned(t, pair.Access, jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { delete(c, "type") }), token.ErrType},
		"refresh": {pair.Refresh, token.ErrType},
	} {
		_, err := i.Check(t.Context(), c.text)
		require.Equal(t, c.want, err, name)
	}
	_, err = i.Refresh(t.Context(), pair.Access)
	require.Equal(t, token.ErrType, err)
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	i, _ := newIssuer(t, t.TempDir())
	var pairs []token.Pair
	for range 3 {
		pair, err := i.Create(t.Context(), token.Grant{User: "ann"})
		require.NoError(t, err)
		pairs = append(pairs, pair)
	}
	list, err := i.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
	jti := func(text string) string { return claimsOf(t, text)["jti"].(string) }
	pairID := func(p token.Pair) string { id, _, _ := strings.Cut(jti(p.Access), "-"); return id }

	next, err := i.Refresh(t.Context(), pairs[0].Refresh)
	require.NoError(t, err)
	ok, err := i.Revoke(t.Context(), pairID(pairs[0]))
	require.NoError(t, err)
	require.True(t, ok)
	for _, text := range []string{pairs[0].Access, next.Access} {
		_, err = i.Check(t.Context(), text)
		require.Equal(t, token.ErrRevoked, err)
	}
	_, err = i.Refresh(t.Context(), next.Refresh)
	require.Equal(t, token.ErrRevoked, err)

	ok, err = i.Revoke(t.Context(), jti(pairs[1].Access))
	require.NoError(t, err)
	require.True(t, ok)
	_, err = i.Check(t.Context(), pairs[1].Access)
	require.Equal(t, token.ErrRevoked, err)
	_, err = i.Refresh(t.Context(), pairs[1].Refresh)
	require.NoError(t, err, "only one token of the pair was revoked")
	_, err = i.Check(t.Context(), pairs[2].Access)
	require.NoError(t, err)

	for _, unknown := range []string{"", "unknown", "unknown-token"} {
		ok, err = i.Revoke(t.Context(), unknown)
		require.NoError(t, err)
		require.False(t, ok)
	}
	list, err = i.List(t.Context())
	require.NoError(t, err)
	revoked := map[string]bool{}
	for _, p := range list {
		revoked[p.ID] = p.RevokedAt != nil
	}
	require.Equal(t, map[string]bool{pairID(pairs[0]): true, pairID(pairs[1]): false, pairID(pairs[2]): false}, revoked)
}

// A pair is kept until the last of its refreshed tokens has expired.
func TestExpiry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		i, _ := newIssuer(t, dir)
		first, err := i.Create(t.Context(), token.Grant{})
		require.NoError(t, err)
		time.Sleep(token.AccessTTL + time.Second)
		_, err = i.Check(t.Context(), first.Access)
		require.Equal(t, token.ErrExpired, err)
		time.Sleep(token.RefreshTTL / 2)
		second, err := i.Refresh(t.Context(), first.Refresh)
		require.NoError(t, err)
		time.Sleep(token.RefreshTTL / 2)
		_, err = i.Refresh(t.Context(), first.Refresh)
		require.Equal(t, token.ErrExpired, err)
		_, err = i.Create(t.Context(), token.Grant{})
		require.NoError(t, err)
		_, err = i.Refresh(t.Context(), second.Refresh)
		require.NoError(t, err)
		time.Sleep(token.RefreshTTL + time.Second)
		list, err := i.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
	})
}
