package provider

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// plainBody undoes gzip, which some providers send though identity was asked for: what is framed,
// judged and stored is the content itself. Any other encoding stays as it is, and so does its header.
func plainBody(h http.Header, body io.ReadCloser) io.ReadCloser {
	switch strings.ToLower(h.Get("Content-Encoding")) {
	case "gzip", "x-gzip":
		h.Del("Content-Encoding")
		return &gunzip{body: body}
	case "identity":
		h.Del("Content-Encoding")
	}
	return body
}

// gunzip reads its header with the first Read, so that an answer's head never waits for its body.
type gunzip struct {
	body io.ReadCloser
	zip  *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.zip == nil {
		zip, err := gzip.NewReader(g.body)
		if err != nil {
			return 0, err
		}
		g.zip = zip
	}
	return g.zip.Read(p)
}

func (g *gunzip) Close() error { return g.body.Close() }
