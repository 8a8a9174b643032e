package fleettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

// SecretFile writes a file that only this user can read, and returns its path.
func SecretFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// NKey creates a user with an NKey. It returns the file with the seed, and the public key for
// server.Options.Nkeys.
func NKey(t testing.TB) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	return SecretFile(t, seed), public
}

// Authority is a certificate authority.
type Authority struct {
	File string // PEM file of its certificate

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns a new certificate authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &Authority{SecretFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), parsed, key}
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// Issue issues a certificate for this machine, and returns the PEM files of the certificate and
// its key.
func (a *Authority) Issue(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, certificate(name), a.certificate, &key.PublicKey, a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return SecretFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		SecretFile(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// TLS returns options of a server with a certificate of the authority. If mutual is set, the
// server also requires a client certificate.
func (a *Authority) TLS(t testing.TB, mutual bool) *server.Options {
	t.Helper()
	cert, key := a.Issue(t, "server")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if mutual {
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AddCert(a.certificate)
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return &server.Options{TLS: true, TLSVerify: mutual, TLSConfig: config, TLSTimeout: startTime.Seconds()}
}

// Operator is an operator of NATS servers with one account, which issues JWTs.
type Operator struct {
	claims   *jwt.OperatorClaims
	account  nkeys.KeyPair
	resolver *server.MemAccResolver
}

// NewOperator returns a new operator, whose account has JetStream.
func NewOperator(t testing.TB) *Operator {
	t.Helper()
	operator, err := nkeys.CreateOperator()
	require.NoError(t, err)
	account, err := nkeys.CreateAccount()
	require.NoError(t, err)
	system, err := nkeys.CreateAccount()
	require.NoError(t, err)
	resolver := &server.MemAccResolver{}
	for _, a := range []struct {
		pair  nkeys.KeyPair
		store int64
	}{{account, -1}, {system, 0}} {
		public, err := a.pair.PublicKey()
		require.NoError(t, err)
		claims := jwt.NewAccountClaims(public)
		claims.Limits.DiskStorage, claims.Limits.MemoryStorage = a.store, a.store
		token, err := claims.Encode(operator)
		require.NoError(t, err)
		require.NoError(t, resolver.Store(public, token))
	}
	public, err := operator.PublicKey()
	require.NoError(t, err)
	claims := jwt.NewOperatorClaims(public)
	claims.SystemAccount, err = system.PublicKey()
	require.NoError(t, err)
	_, err = claims.Encode(operator) // signs them
	require.NoError(t, err)
	return &Operator{claims, account, resolver}
}

// Options returns options of a server that accepts the operator's users.
func (o *Operator) Options() *server.Options {
	return &server.Options{
		TrustedOperators: []*jwt.OperatorClaims{o.claims},
		AccountResolver:  o.resolver,
		SystemAccount:    o.claims.SystemAccount,
	}
}

// Creds creates a user and returns its credentials file. The zero time means that it does not
// expire.
func (o *Operator) Creds(t testing.TB, permissions jwt.Permissions, expires time.Time) string {
	t.Helper()
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	claims := jwt.NewUserClaims(public)
	claims.Permissions = permissions
	if !expires.IsZero() {
		claims.Expires = expires.Unix()
	}
	token, err := claims.Encode(o.account)
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	content, err := jwt.FormatUserConfig(token, seed)
	require.NoError(t, err)
	return SecretFile(t, content)
}
