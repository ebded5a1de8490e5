package api

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/api/wire"
)

// passThrough forwards a call that generates nothing, as it is, and its answer as it comes. No run,
// no retry, no redirect followed.
func (s *Server) passThrough(w http.ResponseWriter, r *http.Request, p *proxied) {
	body := &upload{ReadCloser: r.Body, w: w, gap: s.Limits.BodyGap}
	if r.Body != http.NoBody {
		r.Body = body
	}
	rp := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			upgrade := pr.Out.Header.Get("Upgrade")
			pr.Out.URL, pr.Out.Host = p.target, ""
			pr.Out.Header = p.header
			if ae := r.Header.Values("Accept-Encoding"); len(ae) > 0 {
				pr.Out.Header["Accept-Encoding"] = ae // nothing of the body is looked at
			}
			if upgrade != "" {
				pr.Out.Header.Set("Upgrade", upgrade)
				pr.Out.Header.Set("Connection", "Upgrade")
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			for name := range resp.Header { // who may read is decided here, not there
				if strings.HasPrefix(name, "Access-Control-") {
					delete(resp.Header, name)
				}
			}
			yieldID(w.Header(), r, resp.Header)
			sandbox(resp.Header)
			return nil
		},
		FlushInterval: -1,
		Transport:     s.Client.Transport(),
		ErrorLog:      zap.NewStdLog(s.logOf(r)),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			s.logOf(r).Info("pass-through failed", zap.String("provider", p.route.Name), zap.String("error", fmt.Sprintf("%T", err))) // its text may quote the answer
			if body.late.Load() {
				writeProviderError(w, p.dialect, slowBody("limits.body_gap"))
				return
			}
			writeProviderError(w, p.dialect, &fault{code: wire.CodeUpstreamFailed, detail: "the provider could not be reached"})
		},
	}
	rp.ServeHTTP(final{w, socket{w, s.Limits.Write}}, r)
}

// final is a response writer that sends no informational status but the switch of protocols, since
// some clients take one for the answer, and that waits for its client no longer than any other.
type final struct {
	http.ResponseWriter
	out socket
}

// Write implements io.Writer.
func (f final) Write(b []byte) (int, error) {
	f.out.hurry()
	return f.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController. A flush that was too slow shows with the next write.
func (f final) FlushError() error {
	f.out.push()
	return nil
}

// WriteHeader implements http.ResponseWriter.
func (f final) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for http.ResponseController.
func (f final) Unwrap() http.ResponseWriter { return f.ResponseWriter }
