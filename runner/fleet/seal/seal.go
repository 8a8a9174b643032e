// Package seal signs the orders of a fleet and checks them. An owner calls [ReadSigner] once and
// [Signer.Sign] for each order. A worker calls [ReadTrust] once, and [Trust.Check] before it
// executes any part of an order. Keys are Ed25519 keys in the text forms of NATS: public keys of
// users start with U, their seeds with SU. A signature is valid for one team, one subject and
// one body. It does not cover time: the body must contain its expiry, and the hashes of
// everything that it refers to.
package seal

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
)

// The headers of a message that contain its seal.
const (
	HeaderKey       = "Waza-Key"
	HeaderSignature = "Waza-Signature"
)

// Seal is a signature and the public key of its signer. The zero value means that a message is
// not signed.
type Seal struct {
	// Key is the public key of a user, U and 55 characters.
	Key string
	// Signature is in base64url without padding, 86 characters.
	Signature string
}

// Errors of [Trust.Check], which wraps them.
var (
	ErrUnsigned   = errors.New("not signed")
	ErrMalformed  = errors.New("malformed seal")
	ErrUnknownKey = errors.New("signed with an untrusted key")
	ErrAltered    = errors.New("altered after it was signed")
)

const (
	// domain is the prefix of all signed bytes, so that a signature for a different purpose or
	// version is invalid here.
	domain          = "waza-order-v1"
	signatureLength = 86
	keyLength       = 56
)

// encoding is the encoding of signatures. It is strict, because a signature must have only one
// valid text.
var encoding = base64.RawURLEncoding.Strict()

// signed returns the bytes to sign. Each part is preceded by its length, so that no two orders
// have the same bytes.
func signed(team, subject string, body []byte) []byte {
	b := make([]byte, 0, len(domain)+3*8+len(team)+len(subject)+len(body))
	b = append(b, domain...)
	b = append(binary.BigEndian.AppendUint64(b, uint64(len(team))), team...)
	b = append(binary.BigEndian.AppendUint64(b, uint64(len(subject))), subject...)
	return append(binary.BigEndian.AppendUint64(b, uint64(len(body))), body...)
}

// Signer signs orders with the key of one owner. It is safe for concurrent use. Printing it
// never shows the seed.
type Signer struct {
	public string
	// sign closes over the private key, so that printing a Signer does not reach it.
	sign func(message []byte) []byte
}

// newSigner returns the signer of a raw seed.
func newSigner(seed []byte) (*Signer, error) {
	private := ed25519.NewKeyFromSeed(seed)
	public, err := nkeys.Encode(nkeys.PrefixByteUser, private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return &Signer{public: string(public), sign: func(m []byte) []byte { return ed25519.Sign(private, m) }}, nil
}

// Public returns the public key, for the flag `--trust` of workers.
func (s *Signer) Public() string { return s.public }

// String identifies the signer by its public key.
func (s *Signer) String() string { return "signer " + s.public }

// Sign returns the seal for the subject and body of an order of a team, exactly as they are
// published.
func (s *Signer) Sign(team, subject string, body []byte) Seal {
	return Seal{Key: s.public, Signature: encoding.EncodeToString(s.sign(signed(team, subject, body)))}
}

// Check returns nil if the seal belongs to exactly this team, subject and body, and its key is
// trusted. Other errors wrap [ErrUnsigned], [ErrMalformed], [ErrUnknownKey] or [ErrAltered].
// They contain no text of the order.
func (t *Trust) Check(team, subject string, body []byte, seal Seal) error {
	if seal == (Seal{}) {
		return fmt.Errorf("%w: the order has no headers %s and %s", ErrUnsigned, HeaderKey, HeaderSignature)
	}
	signature, err := readSignature(seal.Signature)
	if err != nil {
		return err
	}
	key, err := t.find(seal.Key)
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, signed(team, subject, body), signature) {
		return fmt.Errorf("%w: the signature of key %s does not match the team, the subject and the body", ErrAltered, seal.Key)
	}
	return nil
}

func readSignature(text string) ([]byte, error) {
	if len(text) != signatureLength {
		return nil, fmt.Errorf("%w: %s has %d characters, expected %d", ErrMalformed, HeaderSignature, len(text), signatureLength)
	}
	signature, err := encoding.DecodeString(text)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return nil, fmt.Errorf("%w: %s is not base64url", ErrMalformed, HeaderSignature)
	}
	return signature, nil
}

// find returns a trusted key. The error quotes an unknown key only if it is a valid key, so that
// a stranger cannot write text to the log.
func (t *Trust) find(name string) (ed25519.PublicKey, error) {
	if t != nil {
		if key, ok := t.keys[name]; ok {
			return key, nil
		}
	}
	if _, err := readKey(name); err != nil {
		return nil, fmt.Errorf("%w: %s is not the public key of a user (U and %d characters)", ErrMalformed, HeaderKey, keyLength-1)
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownKey, name)
}
