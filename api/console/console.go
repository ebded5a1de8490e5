package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/tail"
)

// Viewer is who looks, and what they may see.
type Viewer struct {
	Name   string    // as the page calls them
	Caller string    // whose runs; empty with All or Run
	All    bool      // the runs of all callers, and the last hour
	Run    ulid.ULID // with a run token: the one run, to be read alone
	From   int64     // the token's first position
	Token  string    // carried on in the links of the run's page
	Out    bool      // there is a session to end
}

// reads reports whether the viewer may see the run.
func (v Viewer) reads(r buffer.Run) bool {
	return v.All || v.Run == r.ID || v.Run == (ulid.ULID{}) && v.Caller != "" && v.Caller == r.Caller
}

// Changes reports whether the viewer may stop or release the run.
func (v Viewer) Changes(r buffer.Run) bool { return v.Run == (ulid.ULID{}) && v.reads(r) }

// lists reports whether the viewer may see more than one run.
func (v Viewer) lists() bool { return v.Run == (ulid.ULID{}) }

// Gate knows who looks. Its errors are those that Explain knows.
type Gate interface {
	// See returns the request's viewer.
	See(r *http.Request) (Viewer, error)
	// SignIn begins a session of the browser for who has the key.
	SignIn(w http.ResponseWriter, r *http.Request, key string) error
	// SignOut ends the browser's session.
	SignOut(w http.ResponseWriter, r *http.Request)
}

// Console serves the pages under /ui. Its fields are set before Handler is called.
type Console struct {
	Store     buffer.Store
	Pages     *tail.Pages // which its readers share with all others
	Runs      *buffer.Runs
	Gate      Gate
	Record    *Record                     // the last hour, for viewers of all runs; nil shows none
	Price     func(string) provider.Price // of a route
	Providers []string                    // that there are, for the filter
	Base      string                      // where agents reach the buffer; empty is where the page came from
	Explain   func(error) (int, string)   // an error's status, and what to say of it
	Otherwise http.Handler                // answers a POST that no page makes
	Log       *zap.Logger

	pages pages
}

// maxForm bounds the body of a POST, in bytes.
const maxForm = 4 << 10

// Handler returns the pages. Every POST must come from a page of the same origin, or from no browser.
func (c *Console) Handler() http.Handler {
	c.pages = parsePages()
	m := http.NewServeMux()
	m.HandleFunc("GET /ui", c.viewed(c.runs))
	m.HandleFunc("GET /ui/table", c.viewed(c.table))
	m.HandleFunc("GET /ui/overview", c.viewed(c.overview))
	m.HandleFunc("GET /ui/panels", c.viewed(c.panels))
	m.HandleFunc("GET /ui/keys", c.viewed(c.keys))
	m.HandleFunc("GET /ui/runs/{run}", c.viewed(c.run))
	m.HandleFunc("GET /ui/runs/{run}/facts", c.viewed(c.facts))
	m.HandleFunc("GET /ui/runs/{run}/live", c.viewed(c.live))
	m.HandleFunc("POST /ui/runs/{run}/cancel", c.viewed(c.cancel))
	m.HandleFunc("POST /ui/runs/{run}/ack", c.viewed(c.ack))
	m.HandleFunc("POST /ui/sign-in", c.signIn)
	m.HandleFunc("POST /ui/sign-out", c.signOut)
	m.HandleFunc("GET /ui/static/{file}", static)
	m.HandleFunc("GET /ui/{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ui", http.StatusMovedPermanently) })
	m.Handle("POST /ui/", c.Otherwise)
	m.HandleFunc("/ui/", c.viewed(func(http.ResponseWriter, *http.Request, Viewer) error { return errNoPage }))
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.sorry(w, r, Viewer{}, http.StatusForbidden, "This was asked by a page of another origin.")
	}))
	return secured(origins.Handler(m))
}

// policy is what a page may load: its own files, and nothing that stands in it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // not no-referrer: a form's Origin would be null then
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// errNoPage: there is no such page, or the viewer may not know of it.
var errNoPage = errors.New("no such page")

// viewed finds out who looks and shows what went wrong.
func (c *Console) viewed(h func(http.ResponseWriter, *http.Request, Viewer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := c.Gate.See(r)
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			err = h(w, r, v)
		}
		switch {
		case err == nil, r.Context().Err() != nil:
		case errors.Is(err, errNoPage):
			c.sorry(w, r, v, http.StatusNotFound, "There is no such page.")
		default:
			status, text := c.Explain(err)
			c.sorry(w, r, v, status, text)
		}
	}
}

// visible returns the run that the path names, if the viewer may see it, without its ledger. Of a
// released run there is the row alone.
func (c *Console) visible(ctx context.Context, r *http.Request, v Viewer) (buffer.Run, error) {
	id, err := ulid.ParseStrict(strings.ToUpper(r.PathValue("run")))
	if err != nil {
		return buffer.Run{}, buffer.ErrNotFound
	}
	page, err := c.Store.Read(ctx, id, 0, 0) // from memory, where the run is recent
	if err != nil && !errors.Is(err, buffer.ErrReleased) {
		return buffer.Run{}, err
	}
	if !v.reads(page.Run) {
		return buffer.Run{}, buffer.ErrNotFound
	}
	return page.Run, nil
}

func (c *Console) cancel(w http.ResponseWriter, r *http.Request, v Viewer) error {
	return c.change(w, r, v, c.Runs.Cancel)
}

func (c *Console) ack(w http.ResponseWriter, r *http.Request, v Viewer) error {
	return c.change(w, r, v, c.Runs.Ack)
}

// change does what a form of the run's page asks for, and goes back there.
func (c *Console) change(w http.ResponseWriter, r *http.Request, v Viewer, do func(context.Context, ulid.ULID) (buffer.Run, error)) error {
	run, err := c.visible(r.Context(), r, v)
	if err != nil {
		return err
	}
	if !v.Changes(run) {
		return buffer.ErrNotFound
	}
	if _, err := do(r.Context(), run.ID); err != nil {
		return err
	}
	http.Redirect(w, r, "/ui/runs/"+run.ID.String(), http.StatusSeeOther)
	return nil
}

func (c *Console) keys(w http.ResponseWriter, r *http.Request, v Viewer) error {
	return c.show(w, "keys", page{Title: "Keys", Viewer: v})
}
