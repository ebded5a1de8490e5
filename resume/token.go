package resume

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// ErrToken: a run token that is none, was signed with another secret, or is over. Which of these it
// is, is not told.
var ErrToken = errors.New("run token is not valid")

// Grant is what a run token allows: to read one run, until a given time.
type Grant struct {
	Run     ulid.ULID
	From    int64     // the first position that may be read
	Origin  string    // the origin whose pages may use it; empty is any
	Expires time.Time // whole milliseconds
}

// MaxOrigin bounds the origin of a grant, so that a token fits into a URL.
const MaxOrigin = 255

// tokenPrefix makes a run token known wherever it turns up: in the wrong header, or in a leak.
const tokenPrefix = "srt_"

// The form of a token: the prefix, then in unpadded URL-safe base64
//
//	version 1 | run 16 | expires 8, Unix milliseconds | from 8 | origin 0 to 255 | HMAC-SHA256 32
const (
	tokenVersion = 1
	tokenFixed   = 1 + 16 + 8 + 8
	tokenMax     = tokenFixed + MaxOrigin + sha256.Size
)

// IsToken reports whether a credential has the look of a run token, valid or not.
func IsToken(text string) bool { return strings.HasPrefix(text, tokenPrefix) }

// Tokens signs and reads run tokens. It is safe for concurrent use; nil reads none.
type Tokens struct {
	keys [][]byte // the first one signs
}

// NewTokens signs with secret, and reads what was signed with it or with one of the previous
// secrets: while a secret is changed, two are valid. Empty ones are left out.
func NewTokens(secret []byte, previous ...[]byte) *Tokens {
	t := &Tokens{keys: [][]byte{tokenKey(secret)}}
	for _, p := range previous {
		if len(p) > 0 {
			t.keys = append(t.keys, tokenKey(p))
		}
	}
	return t
}

// tokenKey is the secret's key for tokens alone: what else the secret hashes is never a signature.
func tokenKey(secret []byte) []byte { return sign(secret, []byte("run token")) }

func sign(key, text []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(text)
	return m.Sum(nil)
}

// Mint returns the token of a grant, whose Origin has at most MaxOrigin bytes.
func (t *Tokens) Mint(g Grant) string {
	b := make([]byte, 0, tokenMax)
	b = append(b, tokenVersion)
	b = append(b, g.Run[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(g.Expires.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, uint64(g.From))
	b = append(b, g.Origin...)
	b = append(b, sign(t.keys[0], b)...)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// Read returns what a token grants at the time now, or ErrToken.
func (t *Tokens) Read(text string, now time.Time) (Grant, error) {
	b, ok := decodeToken(text)
	if !ok || !t.signed(b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]) || b[0] != tokenVersion {
		return Grant{}, ErrToken
	}
	g := Grant{
		Run:     ulid.ULID(b[1:17]),
		Expires: time.UnixMilli(int64(binary.BigEndian.Uint64(b[17:]))),
		From:    int64(binary.BigEndian.Uint64(b[25:])),
		Origin:  string(b[tokenFixed : len(b)-sha256.Size]),
	}
	if !now.Before(g.Expires) {
		return Grant{}, ErrToken
	}
	return g, nil
}

// decodeToken undoes the encoding. Of the texts that decode to the same bytes it takes one alone, so
// that a token cannot be written in two ways.
func decodeToken(text string) ([]byte, bool) {
	encoded, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(encoded) > base64.RawURLEncoding.EncodedLen(tokenMax) || strings.ContainsAny(encoded, "\r\n") {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	return b, err == nil && len(b) >= tokenFixed+sha256.Size
}

// signed compares in a time that tells nothing of the signature.
func (t *Tokens) signed(text, signature []byte) bool {
	if t == nil {
		return false
	}
	for _, key := range t.keys {
		if hmac.Equal(sign(key, text), signature) {
			return true
		}
	}
	return false
}
