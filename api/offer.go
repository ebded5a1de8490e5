package api

import "net/http"

// offer forwards a call for which there is another answer, and reports whether the provider has
// answered it. A refusal of the provider's is not shown.
func (s *Server) offer(w http.ResponseWriter, r *http.Request, p *proxied) bool {
	o := &offered{to: w, header: http.Header{}}
	s.passThrough(o, r, p)
	return o.taken
}

// offered is a response writer that passes an answer on if it is a success, and else swallows it.
type offered struct {
	to      http.ResponseWriter
	header  http.Header
	decided bool
	taken   bool
}

// Header implements http.ResponseWriter.
func (o *offered) Header() http.Header { return o.header }

// WriteHeader implements http.ResponseWriter.
func (o *offered) WriteHeader(status int) {
	if o.decided {
		return
	}
	o.decided, o.taken = true, status >= 200 && status < 300
	if o.taken {
		mergeHeader(o.to.Header(), o.header)
		o.to.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (o *offered) Write(b []byte) (int, error) {
	o.WriteHeader(http.StatusOK)
	if o.taken {
		return o.to.Write(b)
	}
	return len(b), nil
}

// FlushError is for http.ResponseController.
func (o *offered) FlushError() error {
	if o.taken {
		return http.NewResponseController(o.to).Flush()
	}
	return nil
}
