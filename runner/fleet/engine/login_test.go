package engine_test

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
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet/fleettest"
)

// certAuthority is a certificate authority.
type certAuthority struct {
	file string // PEM file of its certificate

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newAuthority returns a new certificate authority.
func newAuthority(t *testing.T) *certAuthority {
	t.Helper()
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &certAuthority{fleettest.SecretFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), parsed, key}
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

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// issue issues a certificate for this machine, and returns the PEM files of the certificate and
// its key.
func (a *certAuthority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, certificate(name), a.certificate, &key.PublicKey, a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return fleettest.SecretFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		fleettest.SecretFile(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// options returns options of a server with a certificate of the authority. If mutual is set, the
// server also requires a client certificate.
func (a *certAuthority) options(t *testing.T, mutual bool) *server.Options {
	t.Helper()
	cert, key := a.issue(t, "server")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if mutual {
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AddCert(a.certificate)
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return &server.Options{TLS: true, TLSVerify: mutual, TLSConfig: config, TLSTimeout: 30}
}

// jwtOperator is an operator of NATS servers with one account, which issues JWTs.
type jwtOperator struct {
	claims   *jwt.OperatorClaims
	account  nkeys.KeyPair
	resolver *server.MemAccResolver
}

// newOperator returns a new operator, whose account has JetStream.
func newOperator(t *testing.T) *jwtOperator {
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
	return &jwtOperator{claims, account, resolver}
}

// options returns options of a server that accepts the operator's users.
func (o *jwtOperator) options() *server.Options {
	return &server.Options{
		TrustedOperators: []*jwt.OperatorClaims{o.claims},
		AccountResolver:  o.resolver,
		SystemAccount:    o.claims.SystemAccount,
	}
}

// creds creates a user and returns its credentials file. The zero time means that it does not
// expire.
func (o *jwtOperator) creds(t *testing.T, permissions jwt.Permissions, expires time.Time) string {
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
	return fleettest.SecretFile(t, content)
}
