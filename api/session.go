package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"time"
)

// sessionTTL is how long a browser that has signed in stays so.
const sessionTTL = 12 * time.Hour

// sessions remember in a cookie who has signed in to the console. The cookie holds the keyed hash of
// the key and a time, signed: a key that is taken out of the configuration ends its sessions, and
// nothing is stored here.
type sessions struct {
	callers *Callers
	cookie  string // its name: two listeners of one host see each other's
	open    bool   // without keys: any credential is a caller of its own
}

// The form of a cookie: the hash of the key 32 | the end of its time 8, Unix seconds | HMAC-SHA256 32.
const sessionSize = sha256.Size + 8 + sha256.Size

// begin sets the cookie, if the key is one.
func (s sessions) begin(w http.ResponseWriter, r *http.Request, key string) error {
	hash := s.callers.hash(key)
	if _, ok := s.caller(hash); !ok || key == "" {
		return errUnknownKey
	}
	b, err := hex.DecodeString(hash)
	if err != nil {
		return err
	}
	b = binary.BigEndian.AppendUint64(b, uint64(time.Now().Add(sessionTTL).Unix()))
	b = append(b, s.sign(b)...)
	s.set(w, r, base64.RawURLEncoding.EncodeToString(b), sessionTTL)
	return nil
}

func (s sessions) end(w http.ResponseWriter, r *http.Request) { s.set(w, r, "", -time.Second) }

func (s sessions) set(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie, Value: value, Path: "/ui", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
}

// read returns whose session the request has.
func (s sessions) read(r *http.Request, now time.Time) (caller string, ok bool) {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return "", false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cookie.Value)
	if err != nil || len(b) != sessionSize {
		return "", false
	}
	signed, signature := b[:sessionSize-sha256.Size], b[sessionSize-sha256.Size:]
	until := int64(binary.BigEndian.Uint64(signed[sha256.Size:]))
	if !hmac.Equal(signature, s.sign(signed)) || now.Unix() >= until {
		return "", false
	}
	return s.caller(hex.EncodeToString(signed[:sha256.Size]))
}

// caller is who has the key with that hash.
func (s sessions) caller(hash string) (string, bool) {
	if s.open {
		return hash, true
	}
	name, ok := s.callers.names[hash]
	return name, ok
}

// sign has a key of its own, so that what else the secret hashes is never a session.
func (s sessions) sign(b []byte) []byte {
	sum := func(key, text []byte) []byte {
		m := hmac.New(sha256.New, key)
		m.Write(text)
		return m.Sum(nil)
	}
	return sum(sum(s.callers.secret, []byte("session "+s.cookie)), b)
}
