package api

import (
	"maps"
	"net/http"
	"slices"

	"github.com/rs/cors"

	"github.com/spool-dev/spool/api/wire"
)

// corsMaxAge is how long a browser may keep the answer to a preflight, in seconds.
const corsMaxAge = 600

// cors lets pages of the configured origins ask and read. They may send any header, which a preflight
// grants by name: providers' SDKs send theirs. Cookies are never used, so credentials are not allowed.
// Without origins there is nothing to let.
func (s *Server) cors(next http.Handler) http.Handler {
	if len(s.Origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: s.Origins,
		AllowedMethods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders: []string{"*"},
		ExposedHeaders: []string{
			wire.HeaderRunID, wire.HeaderStatus, wire.HeaderFrom, wire.HeaderNext, wire.HeaderAttempts,
			wire.HeaderToken, wire.HeaderReplayed, "Location", "Retry-After", "X-Should-Retry", "Request-Id", "X-Request-Id",
		},
		MaxAge: corsMaxAge,
	}).Handler(next)
}

// mergeHeader adds a provider's headers to an answer, which may vary by origin already.
func mergeHeader(to, from http.Header) {
	vary := to["Vary"]
	maps.Copy(to, from)
	if len(vary) > 0 {
		to["Vary"] = slices.Concat(vary, from["Vary"])
	}
}
