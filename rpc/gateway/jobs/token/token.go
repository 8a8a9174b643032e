// Package token creates and checks the tokens of clients of the jobs door. They are JSON Web
// Tokens, signed with HS256 and a key from the store. Create an [Issuer] with [New], then call
// [Issuer.Create] and [Issuer.Check].
package token

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"waza/eval/text"
	"waza/rpc/gateway/store"
)

// Owner is the default subject of tokens: the user who runs the server.
const Owner = "owner"

// Type is the purpose of a token.
type Type string

// The types of tokens.
const (
	Access  Type = "access"  // for pages, which refresh it
	CLI     Type = "cli"     // for programs, which do not refresh it
	Refresh Type = "refresh" // only for getting another pair
	Page    Type = "page"    // only for opening pages of runs
)

// Role determines which jobs the subject of a token sees.
type Role string

// The roles of subjects.
const (
	User  Role = "user"  // its own jobs
	Admin Role = "admin" // the jobs of all users
)

const (
	// AccessTTL is the lifetime of an access token.
	AccessTTL = 15 * time.Minute
	// RefreshTTL is the minimum lifetime of a refresh token.
	RefreshTTL = 30 * 24 * time.Hour
	// MaxTTL is the maximum lifetime of a token.
	MaxTTL = 366 * 24 * time.Hour
	// MaxBytes is the maximum length of a token. Longer ones are invalid.
	MaxBytes = 2048
)

// Reasons for refusing a token. Close frames contain them.
var (
	ErrMissing = errors.New("the token is missing")
	ErrInvalid = errors.New("the token is invalid")
	ErrExpired = errors.New("the token has expired")
	ErrRevoked = errors.New("the token was revoked")
	ErrType    = errors.New("the token is of the wrong type")
	ErrStore   = errors.New("the token cannot be checked")
)

// Claims are the contents of a token.
type Claims struct {
	jwt.RegisteredClaims
	Type Type `json:"type"`
	Role Role `json:"role"`
}

// IsAdmin reports whether the subject sees the jobs of all users.
func (c *Claims) IsAdmin() bool { return c.Role == Admin }

// IsOwner reports whether the subject is the user who runs the server.
func (c *Claims) IsOwner() bool { return c.Subject == Owner }

// Pair is an access token and the refresh token that replaces it.
type Pair struct {
	// ID identifies the pair in List and Revoke. It is no secret, and no part of the messages to
	// clients.
	ID      string `json:"-"`
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// Grant describes a pair of tokens to create.
type Grant struct {
	// User is the subject; empty means Owner.
	User string
	// Role is the role of the user; empty means User.
	Role Role
	// TTL, unless 0, makes the access token one of type CLI with this lifetime.
	TTL time.Duration
}

var userName = text.Pattern(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// Check returns an error when the grant is invalid.
func (g *Grant) Check() error {
	switch {
	case g.User == Owner:
		return fmt.Errorf("user %q is the user who runs the server; leave it out", g.User)
	case g.User != "" && !userName().MatchString(g.User):
		return fmt.Errorf("user must consist of 1 to 64 letters, digits, dots, underscores, hyphens or @, and start "+
			"with a letter or digit, got %q",
			g.User)
	case g.Role != "" && g.Role != User && g.Role != Admin:
		return fmt.Errorf("role %q is unknown; use %s or %s", g.Role, User, Admin)
	case g.TTL < 0 || g.TTL > MaxTTL || g.TTL > 0 && g.TTL < time.Second:
		return fmt.Errorf("duration %v is out of range; use 1s to %d days", g.TTL, MaxTTL/(24*time.Hour))
	}
	return nil
}

// Issuer creates and checks tokens. It is safe for concurrent use.
type Issuer struct {
	key    []byte
	store  store.Tokens
	parser *jwt.Parser
	now    func() time.Time
}

// keyName is the name of the signing key among the secrets of the store.
const keyName = "jobs.tokens"

// New returns an issuer that uses the key and the revoked tokens of a store. It creates the key
// at first use. The caller keeps the store open.
func New(ctx context.Context, s *store.Store) (*Issuer, error) {
	key, err := s.Secret(ctx, keyName)
	if err != nil {
		return nil, err
	}
	i := &Issuer{key: key, store: store.TokensOf(s), now: time.Now}
	i.parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(func() time.Time { return i.now() }), jwt.WithStrictDecoding())
	return i, nil
}

// Create creates a pair of tokens and records it in the store.
func (i *Issuer) Create(ctx context.Context, g Grant) (Pair, error) {
	if err := g.Check(); err != nil {
		return Pair{}, err
	}
	if g.User == "" {
		g.User = Owner
	}
	if g.Role == "" {
		g.Role = User
	}
	id, now := strings.ToLower(rand.Text()[:12]), i.now()
	pair, expires, err := i.sign(id, g)
	if err != nil {
		return Pair{}, err
	}
	err = i.store.Save(ctx, store.TokenRow{ID: id, User: g.User, Role: string(g.Role), Created: now, Expires: expires})
	if err != nil {
		return Pair{}, err
	}
	return pair, nil
}

// sign signs the tokens of a pair and returns when the last of them expires.
func (i *Issuer) sign(id string, g Grant) (pair Pair, expires time.Time, err error) {
	pair.ID = id
	kind, ttl := Access, AccessTTL
	if g.TTL > 0 {
		kind, ttl = CLI, g.TTL
	}
	now := i.now()
	expires = now.Add(max(RefreshTTL, ttl))
	if pair.Access, err = i.signOne(id, g, kind, now.Add(ttl)); err == nil {
		pair.Refresh, err = i.signOne(id, g, Refresh, expires)
	}
	return pair, expires, err
}

func (i *Issuer) signOne(id string, g Grant, kind Type, expires time.Time) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, &Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: g.User, ID: id + "-" + strings.ToLower(rand.Text()[:12]),
			IssuedAt: jwt.NewNumericDate(i.now()), ExpiresAt: jwt.NewNumericDate(expires),
		},
		Type: kind, Role: g.Role,
	}).SignedString(i.key)
}

// Check returns the claims of a token that has one of the types; no types mean [Access] and
// [CLI]. The error is one of this package's errors, which reveal nothing about the token.
func (i *Issuer) Check(ctx context.Context, text string, types ...Type) (*Claims, error) {
	switch {
	case text == "":
		return nil, ErrMissing
	case len(text) > MaxBytes:
		return nil, ErrInvalid
	case len(types) == 0:
		types = []Type{Access, CLI}
	}
	claims := &Claims{}
	_, err := i.parser.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) { return i.key, nil })
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return nil, ErrExpired
	case err != nil:
		return nil, ErrInvalid
	}
	for _, kind := range types {
		if claims.Type != kind {
			continue
		}
		if err := i.checkPair(ctx, claims); err != nil {
			return nil, err
		}
		return claims, nil
	}
	return nil, ErrType
}

// checkPair returns an error unless the token belongs to a valid pair.
func (i *Issuer) checkPair(ctx context.Context, c *Claims) error {
	row, ok, err := i.store.Get(ctx, pairOf(c.ID))
	revoked := false
	if err == nil && ok {
		revoked, err = i.store.IsRevoked(ctx, c.ID)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStore, err)
	case !ok || revoked || !row.Revoked.IsZero() || row.User != c.Subject || row.Role != string(c.Role):
		return ErrRevoked
	}
	return nil
}

// Revoked loads all revoked tokens, including those that other processes revoked. The returned
// function reports whether the token with these claims is among them.
func (i *Issuer) Revoked(ctx context.Context) (func(c *Claims) bool, error) {
	ids, err := i.store.Revoked(ctx)
	return func(c *Claims) bool { return ids[c.ID] || ids[pairOf(c.ID)] }, err
}

// pairOf returns the id of a token's pair.
func pairOf(id string) string {
	pair, _, _ := strings.Cut(id, "-")
	return pair
}

// Refresh returns another pair for a refresh token. The old tokens stay valid until they expire,
// because several tabs can share them. The errors are those of Check.
func (i *Issuer) Refresh(ctx context.Context, text string) (Pair, error) {
	claims, err := i.Check(ctx, text, Refresh)
	if err != nil {
		return Pair{}, err
	}
	id := pairOf(claims.ID)
	pair, expires, err := i.sign(id, Grant{User: claims.Subject, Role: claims.Role})
	if err == nil {
		err = i.store.Extend(ctx, id, expires)
	}
	if err != nil {
		return Pair{}, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return pair, nil
}

// PageToken creates a token of the type [Page] for the owner of an access token. It is valid for
// [AccessTTL], and is revoked with the pair of that token.
func (i *Issuer) PageToken(c *Claims) (string, error) {
	return i.signOne(pairOf(c.ID), Grant{User: c.Subject, Role: c.Role}, Page, i.now().Add(AccessTTL))
}

// Listed is a pair of tokens in the result of List.
type Listed struct {
	ID        string     `json:"id"`
	User      string     `json:"user"`
	Role      Role       `json:"role"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"`
	RevokedAt *time.Time `json:"revokedAt"`
}

// List returns the pairs that have not expired, oldest first.
func (i *Issuer) List(ctx context.Context) ([]Listed, error) {
	rows, err := i.store.List(ctx)
	list := make([]Listed, 0, len(rows))
	for _, row := range rows {
		l := Listed{ID: row.ID, User: row.User, Role: Role(row.Role), CreatedAt: row.Created.UTC(), ExpiresAt: row.Expires.UTC()}
		if !row.Revoked.IsZero() {
			at := row.Revoked.UTC()
			l.RevokedAt = &at
		}
		list = append(list, l)
	}
	return list, err
}

// Revoke revokes the pair with an id and all pairs derived from it, or the single token with
// that claim jti. It returns false when the pair does not exist.
func (i *Issuer) Revoke(ctx context.Context, id string) (bool, error) {
	pair := pairOf(id)
	if pair == id {
		return i.store.RevokePair(ctx, id)
	}
	row, ok, err := i.store.Get(ctx, pair)
	if err != nil || !ok {
		return false, err
	}
	return true, i.store.Revoke(ctx, id, row.Expires)
}
