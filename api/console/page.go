package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"

	"go.uber.org/zap"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static
var statics embed.FS

// pages are the templates, by the name of their page.
type pages map[string]*template.Template

// parsePages reads every page together with the layout and the parts. They are constants of the
// program: one that cannot be read is found by any test.
func parsePages() pages {
	all := pages{}
	for _, name := range []string{"runs", "run", "overview", "keys", "sorry"} {
		all[name] = template.Must(template.New("layout.html").Funcs(words).
			ParseFS(templates, "templates/layout.html", "templates/parts.html", "templates/"+name+".html"))
	}
	return all
}

// page is what every page says.
type page struct {
	Title  string
	Viewer Viewer
	Hour   bool // there is an overview
	Body   any
}

// show answers with a whole page.
func (c *Console) show(w http.ResponseWriter, name string, p page) error {
	return c.write(w, http.StatusOK, name, p)
}

func (c *Console) write(w http.ResponseWriter, status int, name string, p page) error {
	p.Hour = c.Record != nil && p.Viewer.All
	var out bytes.Buffer
	if err := c.pages[name].Execute(&out, p); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // a viewer that has left sees nothing
	return nil
}

// part answers with the part of a page that moves; with 304 where it is what the page has already.
func (c *Console) part(w http.ResponseWriter, r *http.Request, name, part string, body any) error {
	var out bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&out, part, body); err != nil {
		return err
	}
	tag := etag(out.Bytes())
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // as in write
	return nil
}

func etag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// sorry is the page of an error: with the form to sign in where that is what is missing.
func (c *Console) sorry(w http.ResponseWriter, r *http.Request, v Viewer, status int, text string) {
	body := struct {
		Status int
		Text   string
		SignIn bool
		To     string
	}{status, text, status == http.StatusUnauthorized, destination(r)}
	title := http.StatusText(status)
	if body.SignIn {
		title = "Sign in"
	}
	if err := c.write(w, status, "sorry", page{Title: title, Viewer: v, Body: body}); err != nil {
		c.Log.Error("page not made", zap.Error(err))
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// static serves the embedded files. They change with the program alone.
func static(w http.ResponseWriter, r *http.Request) {
	b, err := statics.ReadFile("static/" + r.PathValue("file"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	tag := etag(b)
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", tag)
	http.ServeFileFS(w, r, statics, "static/"+r.PathValue("file"))
}
