package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer/provider"
)

// anonymous is the caller that sends no credential.
const anonymous = "anonymous"

// Callers knows who a request comes from. A run belongs to its caller.
type Callers struct {
	secret []byte
	names  map[string]string // keyed hash of a buffer key → its name
}

// NewCallers returns the callers of a buffer with the given secret. keys maps names to buffer keys;
// where there are none, a caller is the credential that it sends to the provider.
func NewCallers(secret []byte, keys map[string]string) *Callers {
	c := &Callers{secret: secret, names: map[string]string{}}
	for name, key := range keys {
		c.names[c.hash(key)] = name
	}
	return c
}

// hash is all that is kept of a credential. Looking a hash up takes no time that tells of the key.
func (c *Callers) hash(credential string) string {
	m := hmac.New(sha256.New, c.secret)
	m.Write([]byte(credential))
	return hex.EncodeToString(m.Sum(nil))
}

// Identify returns the request's caller. With buffer keys configured, the header that carried the
// key is removed, so that it never reaches a provider.
func (c *Callers) Identify(r *http.Request) (string, error) {
	if len(c.names) == 0 {
		if cred := credential(r); cred != "" {
			return c.hash(cred), nil
		}
		return anonymous, nil
	}
	if key := r.Header.Get(wire.HeaderBufferKey); key != "" { // all other credentials go through
		return c.name(key)
	}
	for _, h := range provider.CredentialHeaders {
		v := r.Header.Get(h)
		if v == "" || h == "Api-Key" {
			continue
		}
		name, err := c.name(bare(v))
		if err == nil {
			r.Header.Del(h)
		}
		return name, err
	}
	return "", &fault{code: wire.CodeUnauthorized, detail: "a buffer key is needed: Authorization: Bearer KEY, or " + wire.HeaderBufferKey}
}

func (c *Callers) name(key string) (string, error) {
	if name, ok := c.names[c.hash(key)]; ok {
		return name, nil
	}
	return "", &fault{code: wire.CodeUnauthorized, detail: "the buffer key is not known"}
}

// credential is the secret that the request carries for its provider; empty for none.
func credential(r *http.Request) string {
	for _, h := range provider.CredentialHeaders {
		if v := r.Header.Get(h); v != "" {
			return bare(v)
		}
	}
	return r.URL.Query().Get("key")
}

// bare takes the scheme off an Authorization header, so that one secret is one caller whichever
// header carried it.
func bare(v string) string {
	if scheme, secret, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	return v
}

// authorize puts the provider's key into the headers that go upstream: the configured one, or the
// one that the caller sent beside its buffer key.
func authorize(out http.Header, route provider.Route, d provider.Dialect, in http.Header) {
	key := in.Get(wire.HeaderProviderKey)
	if key == "" {
		key = route.Key
	}
	if key == "" {
		return
	}
	provider.Authorize(out, d, key)
}
