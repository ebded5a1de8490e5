package console

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// signIn begins a session for who gives a key, and goes to the page that asked for it.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	key := strings.TrimSpace(r.PostFormValue("key"))
	if err := c.Gate.SignIn(w, r, key); err != nil {
		status, text := c.Explain(err)
		c.sorry(w, r, Viewer{}, status, text)
		return
	}
	http.Redirect(w, r, destination(r), http.StatusSeeOther)
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	c.Gate.SignOut(w, r)
	http.Redirect(w, r, "/ui", http.StatusSeeOther)
}

// destination is the page to go to after signing in: one of the console's own, whatever the form says.
func destination(r *http.Request) string {
	to := r.URL.RequestURI()
	if r.Method == http.MethodPost {
		to = r.PostFormValue("to")
	}
	u, err := url.Parse(to)
	if err != nil || path.Clean(u.Path) != u.Path || u.Host != "" || u.Scheme != "" || u.Path != "/ui" && u.Path != "/ui/overview" && !strings.HasPrefix(u.Path, "/ui/runs/") {
		return "/ui"
	}
	q := u.Query()
	q.Del("token") // it was not valid
	u.RawQuery = q.Encode()
	return u.RequestURI()
}
