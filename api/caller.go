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

// Identify returns the request's caller. With buffer keys configured, every header that carries one
// is removed, so that it never reaches a provider. query is the credential that the URL carries on a
// route where it may; empty for none. A run token is no caller.
func (c *Callers) Identify(r *http.Request, query string) (string, error) {
	if carriesToken(r) {
		return "", errGrant
	}
	if len(c.names) == 0 {
		if cred := first(credential(r), query); cred != "" {
			return c.hash(cred), nil
		}
		return anonymous, nil
	}
	if key := r.Header.Get(wire.HeaderBufferKey); key != "" { // all other credentials go through
		c.strip(r.Header)
		return c.name(key)
	}
	found := false
	for _, h := range provider.CredentialHeaders {
		v := r.Header.Get(h)
		if v == "" || h == "Api-Key" {
			continue
		}
		found = true
		if name, err := c.name(bare(v)); err == nil { // another header may hold the provider's own key
			c.strip(r.Header)
			return name, nil
		}
	}
	if found {
		return "", errUnknownKey
	}
	return "", &fault{code: wire.CodeUnauthorized, detail: "a buffer key is needed: Authorization: Bearer KEY, or " + wire.HeaderBufferKey}
}

var errUnknownKey = &fault{code: wire.CodeUnauthorized, detail: "the buffer key is not known"}

// strip takes the buffer keys out: some SDKs send one key in two headers.
func (c *Callers) strip(h http.Header) {
	for _, name := range provider.CredentialHeaders {
		if _, known := c.names[c.hash(bare(h.Get(name)))]; known {
			h.Del(name)
		}
	}
}

func (c *Callers) name(key string) (string, error) {
	if name, ok := c.names[c.hash(key)]; ok {
		return name, nil
	}
	return "", errUnknownKey
}

// credential is the secret that the request's headers carry for its provider; empty for none.
func credential(r *http.Request) string {
	for _, h := range provider.CredentialHeaders {
		if v := r.Header.Get(h); v != "" {
			return bare(v)
		}
	}
	return ""
}

// bare takes the scheme off an Authorization header, so that one secret is one caller whichever
// header carried it.
func bare(v string) string {
	if scheme, secret, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	return v
}

// authorize puts the provider's key into the headers that go upstream, in place of the caller's own
// credential: the configured one, or the one that the caller sent beside its buffer key.
func authorize(p *proxied, in http.Header) {
	key := first(in.Get(wire.HeaderProviderKey), p.route.Key)
	if key == "" {
		return
	}
	provider.Authorize(p.header, p.dialect, key)
	if p.dialect == provider.Gemini {
		p.target.RawQuery = provider.WithoutKey(p.target.RawQuery)
	}
}
