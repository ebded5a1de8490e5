package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

// MaxTokenTTL is the longest that a run token lives.
const MaxTokenTTL = 24 * time.Hour

const (
	defaultTokenTTL = 10 * time.Minute
	maxTokenBody    = 4 << 10 // bytes of a request for a token
)

// errGrant is the one refusal of a run token. It does not tell whether the token is of another run,
// over, or no token at all, nor whether there is such a run.
var errGrant = &fault{code: wire.CodeUnauthorized, detail: "the run token does not allow this, or no longer"}

// NewTokens returns the run tokens of a buffer with the given secret. While the secret is changed,
// what was signed with the previous one is valid too; empty for none.
func NewTokens(secret, previous []byte) *resume.Tokens { return resume.NewTokens(secret, previous) }

// reader is who wants to read a run: its caller, or a page that holds run tokens.
type reader struct {
	caller string
	grants []resume.Grant // of the tokens that came; the caller is not known then
}

// readHandler serves a route on which a run token is enough.
type readHandler func(w http.ResponseWriter, r *http.Request, who reader) error

// reads finds out who asks and maps the handler's error to the contract. query names the parameters
// that the route knows, besides the token.
func (s *Server) reads(h readHandler, query ...string) http.HandlerFunc {
	query = append([]string{"token"}, query...)
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := s.reader(r)
		if err == nil {
			err = knows(r, query)
		}
		if err == nil {
			err = h(w, r, who)
		}
		if err != nil {
			refuse(w, r, err)
		}
	}
}

// reader reads the request's tokens, all of which must be valid; without one, its caller is asked for.
func (s *Server) reader(r *http.Request) (reader, error) {
	if err := wellFormed(r); err != nil {
		return reader{}, err
	}
	texts := r.URL.Query()["token"]
	if cred := bare(r.Header.Get("Authorization")); resume.IsToken(cred) {
		texts = append(texts, cred)
	}
	if len(texts) == 0 {
		caller, err := s.Callers.Identify(r, "")
		return reader{caller: caller}, err
	}
	var who reader
	for _, text := range texts {
		g, err := s.Tokens.Read(text, time.Now())
		if err != nil || !sameOrigin(r, g.Origin) {
			return reader{}, errGrant
		}
		who.grants = append(who.grants, g)
	}
	return who, nil
}

// sameOrigin reports whether a token for pages of an origin may be used by the page that asks.
// Browsers send no Origin to the page's own, but say so in another way.
func sameOrigin(r *http.Request, origin string) bool {
	if origin == "" || r.Header.Get("Origin") == origin {
		return true
	}
	_, host, _ := strings.Cut(origin, "://")
	return r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "same-origin" && host == r.Host
}

// readable returns the run that the text names, if it may be read, and what the reader's token says
// about it.
func (s *Server) readable(ctx context.Context, who reader, text string) (buffer.Run, resume.Grant, error) {
	if who.grants == nil {
		run, err := s.owned(ctx, who.caller, text)
		return run, resume.Grant{}, err
	}
	id, err := ulid.ParseStrict(strings.ToUpper(text))
	if err != nil {
		return buffer.Run{}, resume.Grant{}, errGrant
	}
	for _, g := range who.grants {
		if g.Run != id {
			continue
		}
		page, err := s.Store.Read(ctx, id, 0, 0) // from memory, where the run is recent
		if errors.Is(err, buffer.ErrReleased) {
			err = nil
		}
		return page.Run, g, err
	}
	return buffer.Run{}, resume.Grant{}, errGrant
}

// carriesToken reports whether a request brings a run token where none is taken. It would be a
// caller of its own there, or go to the provider.
func carriesToken(r *http.Request) bool {
	for _, name := range append([]string{wire.HeaderBufferKey, wire.HeaderProviderKey}, provider.CredentialHeaders...) {
		if resume.IsToken(bare(r.Header.Get(name))) {
			return true
		}
	}
	for _, name := range []string{"token", "key"} {
		if slices.ContainsFunc(r.URL.Query()[name], resume.IsToken) {
			return true
		}
	}
	return false
}

// mintToken serves POST /runs/{run}/token.
func (s *Server) mintToken(w http.ResponseWriter, r *http.Request, caller string) error {
	asked, err := tokenAsked(w, r)
	if err != nil {
		return err
	}
	run, err := s.owned(r.Context(), caller, mux.Vars(r)["run"])
	if err != nil {
		return err
	}
	ttl, err := tokenTTL(asked.TTL)
	if err != nil {
		return bad("ttl " + err.Error())
	}
	if asked.From < 0 {
		return bad("from must be a position")
	}
	origin, ok := originOf(asked.Origin)
	if !ok {
		return bad("origin must be like https://app.example.com")
	}
	g := resume.Grant{Run: run.ID, From: asked.From, Origin: origin, Expires: time.Now().Add(ttl)}
	return writeJSON(w, wire.Token{Token: s.Tokens.Mint(g), Expires: g.Expires.UTC().Truncate(time.Millisecond)})
}

// tokenAsked reads the body; none means all defaults. A claim that is not known is refused, since it
// may have been meant to forbid something.
func tokenAsked(w http.ResponseWriter, r *http.Request) (wire.TokenRequest, error) {
	var asked wire.TokenRequest
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTokenBody))
	body.DisallowUnknownFields()
	err := body.Decode(&asked)
	if err == nil {
		if _, err = body.Token(); err == nil {
			err = errors.New("more than one value")
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return asked, nil
	}
	if f, ok := errors.AsType[*fault](bodyFault(err, "what a request for a token may have")); ok && f.code != wire.CodeBadRequest {
		return asked, f
	}
	return asked, bad(`the body must be a JSON object such as {"ttl": "10m"}; ttl, from and origin are known`)
}

// tokenTTL is how long a token lives; more than the maximum is the maximum.
func tokenTTL(text string) (time.Duration, error) {
	if text == "" {
		return defaultTokenTTL, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("must be a duration above 0, such as 10m")
	}
	return min(d, MaxTokenTTL), nil
}

// originOf reads an origin as browsers write it; empty is none.
func originOf(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || len(text) > resume.MaxOrigin || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != u.String() {
		return "", false
	}
	return u.String(), true
}

// mintTTL reads the header with which a call asks for a token of its run; 0 is not asked for.
func mintTTL(h http.Header) (time.Duration, error) {
	v, ok := h[wire.HeaderMintToken]
	if !ok {
		return 0, nil
	}
	d, err := tokenTTL(v[0])
	if err != nil {
		return 0, bad(wire.HeaderMintToken + " " + err.Error())
	}
	return d, nil
}
