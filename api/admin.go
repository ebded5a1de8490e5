package api

import (
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/spool-dev/spool/api/console"
	"github.com/spool-dev/spool/api/wire"
)

// Admin serves what the operator alone may see, on a listener of its own: the metrics, the profiles and
// the console with the runs of all callers.
type Admin struct {
	Server  *Server
	Key     string   // what a request must bring; empty: whoever reaches the listener may look
	Hosts   []string // names by which it is reached, besides localhost and addresses
	Record  *console.Record
	Metrics http.Handler
	Base    string // where agents reach the buffer, for commands to copy
}

// Handler returns the routes.
func (a *Admin) Handler() http.Handler {
	gate := adminGate{sessions: sessions{cookie: "spool_admin"}}
	if a.Key != "" {
		gate.sessions.callers = NewCallers(a.Server.Callers.secret, map[string]string{"admin": a.Key})
	}
	ui := a.Server.pages(gate, a.Record, a.Base)
	r := mux.NewRouter()
	r.HandleFunc("/healthz", a.Server.health).Methods("GET", "HEAD")
	r.HandleFunc("/readyz", a.Server.ready).Methods("GET", "HEAD")
	r.Handle("/metrics", gate.guards(a.Metrics)).Methods("GET", "HEAD")
	// No /debug/pprof/cmdline: the admin key may stand in the command line.
	r.Handle("/debug/pprof/profile", gate.guards(http.HandlerFunc(pprof.Profile))).Methods("GET")
	r.Handle("/debug/pprof/symbol", gate.guards(http.HandlerFunc(pprof.Symbol))).Methods("GET")
	r.Handle("/debug/pprof/trace", gate.guards(http.HandlerFunc(pprof.Trace))).Methods("GET")
	r.PathPrefix("/debug/pprof/").Handler(gate.guards(http.HandlerFunc(pprof.Index))).Methods("GET")
	r.Handle("/ui", ui)
	r.PathPrefix("/ui/").Handler(ui)
	r.Handle("/", http.RedirectHandler("/ui", http.StatusSeeOther)).Methods("GET", "HEAD")
	none := a.Server.otherwise(r)
	r.NotFoundHandler, r.MethodNotAllowedHandler = none, none
	return a.Server.guard(patient(a.hosted(r)))
}

// patient lifts the deadline for reading from a request that has been read: it would end the answers
// that take long, a profile or an answer that is watched.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a writer that has none needs none
		}
		next.ServeHTTP(w, r)
	})
}

// hosted refuses names that are not the listener's own. A page whose name has been pointed here, to
// read what its browser can reach, sends its own name; an address cannot be pointed anywhere.
func (a *Admin) hosted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.Trim(host, "[]")
		if !strings.EqualFold(host, "localhost") && net.ParseIP(host) == nil && !slices.ContainsFunc(a.Hosts, func(name string) bool { return strings.EqualFold(name, host) }) {
			writeProblem(w, bad("Host: this listener is reached by an address, by localhost, or by a name in admin.hosts"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// adminGate lets who has the key see everything; without a key, everybody.
type adminGate struct{ sessions sessions }

// See implements console.Gate.
func (g adminGate) See(r *http.Request) (console.Viewer, error) {
	v := console.Viewer{Name: "all callers", All: true}
	if g.sessions.callers == nil {
		return v, nil
	}
	if _, ok := g.sessions.read(r, time.Now()); ok {
		v.Out = true
		return v, nil
	}
	if !hasCredential(r) {
		return console.Viewer{}, errAdmin
	}
	if _, err := g.sessions.callers.Identify(r, ""); err != nil {
		return console.Viewer{}, errAdmin
	}
	return v, nil
}

var errAdmin = &fault{code: wire.CodeUnauthorized, detail: "The admin key is needed: sign in, or send it as Authorization: Bearer KEY."}

// guards lets those through whom See does.
func (g adminGate) guards(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := g.See(r); err != nil {
			writeProblem(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SignIn implements console.Gate.
func (g adminGate) SignIn(w http.ResponseWriter, r *http.Request, key string) error {
	if g.sessions.callers == nil {
		return nil // there is nothing to sign in to
	}
	return g.sessions.begin(w, r, key)
}

// SignOut implements console.Gate.
func (g adminGate) SignOut(w http.ResponseWriter, r *http.Request) { g.sessions.end(w, r) }
