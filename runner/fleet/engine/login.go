package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"waza/eval/files"
)

// mostLoginBytes is the maximum size of a login file.
const mostLoginBytes = 1 << 20

// loginOptions returns the options for the login and TLS. nats.go reads the files for each
// connection, so that operators can replace them.
func (c *Conn) loginOptions() ([]nats.Option, error) {
	a := c.address
	if err := a.Check(); err != nil {
		return nil, err
	}
	var options []nats.Option
	switch {
	case c.home != nil:
		options = append(options, nats.TokenHandler(c.home.token))
	case a.Token != "":
		options = append(options, nats.Token(a.Token))
	case a.User != "":
		options = append(options, nats.UserInfo(a.User, a.Password))
	case a.Creds != "":
		if err := checkCreds(a.Creds); err != nil {
			return nil, fmt.Errorf("fleet address: parameter \"creds\": file %s %w", a.Creds, err)
		}
		options = append(options, nats.UserCredentials(a.Creds))
	case a.NKey != "":
		option, err := nkeyOption(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("fleet address: parameter \"nkey\": file %s %w", a.NKey, err)
		}
		options = append(options, option)
	}
	if a.CA != "" {
		if err := checkCA(a.CA); err != nil {
			return nil, fmt.Errorf("fleet address: parameter \"ca\": file %s %w", a.CA, err)
		}
		options = append(options, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		if _, err := tls.LoadX509KeyPair(a.Cert, a.Key); err != nil {
			return nil, fmt.Errorf("fleet address: parameters \"cert\" and \"key\": %s", err)
		}
		options = append(options, nats.ClientCert(a.Cert, a.Key))
	}
	return options, nil
}

// checkCreds reports problems that a server would reject without a reason. Its errors follow the
// name of the file.
func checkCreds(path string) error {
	content, err := files.Read(path, mostLoginBytes)
	if err != nil {
		return fmt.Errorf("cannot be read: %s", files.Reason(err))
	}
	token, err := jwt.ParseDecoratedJWT(content)
	if err != nil {
		return errors.New("has no JWT of a NATS user; write it with nsc generate creds")
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return errors.New("has no valid JWT of a NATS user; write it with nsc generate creds")
	}
	if _, err := jwt.ParseDecoratedUserNKey(content); err != nil {
		return errors.New("has a JWT but no seed of its user; write it with nsc generate creds")
	}
	if claims.Expires > 0 && claims.Expires < time.Now().Unix() {
		return fmt.Errorf("has a JWT that expired at %s; get a new one from the operator of the server",
			time.Unix(claims.Expires, 0).UTC().Format(time.RFC3339))
	}
	return nil
}

// checkCA reports a file without certificates. Its errors follow the name of the file.
func checkCA(path string) error {
	content, err := files.Read(path, mostLoginBytes)
	if err != nil {
		return fmt.Errorf("cannot be read: %s", files.Reason(err))
	}
	if !x509.NewCertPool().AppendCertsFromPEM(content) {
		return errors.New("has no certificate in PEM form")
	}
	return nil
}

// nkeyOption reads a seed, now and each time that a server requests a signature. Its errors
// follow the name of the file.
func nkeyOption(path string) (nats.Option, error) {
	pair, err := userKey(path)
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil {
		return nil, errors.New("has no valid seed")
	}
	return nats.Nkey(public, func(nonce []byte) ([]byte, error) {
		pair, err := userKey(path)
		if err != nil {
			return nil, fmt.Errorf("file %s %w", path, err)
		}
		defer pair.Wipe()
		return pair.Sign(nonce)
	}), nil
}

func userKey(path string) (nkeys.KeyPair, error) {
	content, err := files.Read(path, mostLoginBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %s", files.Reason(err))
	}
	pair, err := nkeys.ParseDecoratedUserNKey(content)
	if err != nil {
		return nil, errors.New("has no seed of a NATS user, which starts with SU")
	}
	return pair, nil
}

// refusals are the errors of a server that rejects this client, with the remedy.
var refusals = []struct {
	is   error
	hint string
}{
	{nats.ErrAuthExpired, "the login has expired; get a new one from the operator of the server"},
	{nats.ErrAuthRevoked, "the login was revoked; get a new one from the operator of the server"},
	{nats.ErrAccountAuthExpired, "the account has expired; ask the operator of the server"},
	{nats.ErrAuthorization, "the server rejects the login; check user and password, creds or nkey of the fleet address"},
	{nats.ErrSecureConnRequired, "the server requires TLS; use tls:// or ca=FILE"},
	{nats.ErrSecureConnWanted, "the server does not support TLS; use nats:// without ca and cert"},
	{nats.ErrNkeysNotSupported, "the server does not support NKeys; use a different login"},
	{nats.ErrMaxConnectionsExceeded, "the server has reached its maximum number of connections; ask its operator"},
	{nats.ErrMaxAccountConnectionsExceeded, "the account has reached its maximum number of connections; ask the operator of the server"},
}

// hint describes, in terms of the fleet address, why a server rejects a client. It returns ""
// for other errors.
func hint(err error) string {
	for _, refusal := range refusals {
		if errors.Is(err, refusal.is) {
			return refusal.hint
		}
	}
	switch text := err.Error(); {
	case strings.Contains(text, "certificate required"), strings.Contains(text, "bad certificate"):
		return "the server requires a trusted client certificate; use cert=FILE and key=FILE"
	case strings.Contains(text, "unknown authority"):
		return "the certificate of the server is signed by an unknown authority; use ca=FILE"
	case strings.Contains(text, "x509:"), strings.Contains(text, "tls:"):
		return "TLS failed: " + text
	}
	return ""
}
