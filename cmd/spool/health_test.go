package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without a URL, health asks the buffer of its own machine as that is set: by variables, as in a container, or a file.
func TestHealth_GoesByTheSettings(t *testing.T) {
	ready := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	plain, secure := httptest.NewServer(ready), httptest.NewUnstartedServer(ready)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // some speak no TLS to it
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	port := func(s *httptest.Server) string {
		_, port, err := net.SplitHostPort(s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	tlsFile := file("listen: 0.0.0.0:" + port(secure) + "\ntls: {cert: cert.pem, key: key.pem}\n")
	for name, test := range map[string]struct {
		env  map[string]string
		code int
	}{
		"every address":                      {map[string]string{"SPOOL_LISTEN": "0.0.0.0:" + port(plain)}, 0},
		"no host":                            {map[string]string{"SPOOL_LISTEN": ":" + port(plain)}, 0},
		"the loopback":                       {map[string]string{"SPOOL_LISTEN": "127.0.0.1:" + port(plain)}, 0},
		"TLS by variables":                   {map[string]string{"SPOOL_LISTEN": "0.0.0.0:" + port(secure), "SPOOL_TLS_CERT": "cert.pem"}, 0},
		"TLS by a file":                      {map[string]string{"SPOOL_CONFIG": tlsFile}, 0},
		"a file with a mistake made since":   {map[string]string{"SPOOL_CONFIG": file("nonsense: 1\nlisten: 127.0.0.1:" + port(plain) + "\n")}, 0},
		"the variable outranks the file":     {map[string]string{"SPOOL_CONFIG": file("listen: 127.0.0.1:1\n"), "SPOOL_LISTEN": ":" + port(plain)}, 0},
		"a URL outranks all":                 {map[string]string{"SPOOL_CONFIG": tlsFile, "SPOOL_URL": plain.URL}, 0},
		"TLS where there is none":            {map[string]string{"SPOOL_LISTEN": ":" + port(plain), "SPOOL_TLS_CERT": "cert.pem"}, 1},
		"no TLS where there is":              {map[string]string{"SPOOL_LISTEN": ":" + port(secure)}, 1},
		"a certificate of nobody, by URL":    {map[string]string{"SPOOL_URL": secure.URL}, 1},
		"nobody there":                       {map[string]string{"SPOOL_LISTEN": "127.0.0.1:1"}, 1},
		"a port that nobody knows before it": {map[string]string{"SPOOL_LISTEN": "127.0.0.1:0"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range test.env {
				t.Setenv(k, v)
			}
			var stdout, stderr strings.Builder
			if code := run([]string{"health"}, &stdout, &stderr); code != test.code {
				t.Errorf("it ends with %d, want %d: %s", code, test.code, stderr.String())
			}
		})
	}
}
