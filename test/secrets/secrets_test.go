// Package secrets plants a secret in every place that has one, runs the built binary and its commands
// through all kinds of calls, and looks through everything that comes out for them.
package secrets

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/test/binary"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What may be seen nowhere, nowhere but in an answer's own readers, and what names a place of the former.
const (
	mark   = "planted-secret-in-"
	prompt = "planted-prompt"
	answer = "planted-answer"
)

func planted(place string) string { return mark + place }

// site is a service with a secret wherever one can be, and what comes out of it.
type site struct {
	t         *testing.T
	service   binary.Service
	process   *binary.Process
	fake      *fakellm.Server
	config    string
	collector *httptest.Server
	exported  chan struct{} // closed when the first spans have come

	log, pages, answers, commands, spans rig.Ear
}

func TestSecrets_ComeOutNowhere(t *testing.T) {
	s := start(t)
	ids := s.calls()
	for _, id := range ids {
		for _, path := range []string{"/runs/" + id, "/runs/" + id + "/events?follow=0", "/runs/" + id + "/resume?from=999&key=" + planted("query")} {
			s.ask(&s.answers, http.MethodGet, s.process.URL+path, "", caller()...)
		}
		s.ask(&s.answers, http.MethodGet, s.process.URL+"/runs/"+id+"?token="+planted("token"), "")
		s.ask(&s.pages, http.MethodGet, s.process.Admin+"/ui/runs/"+id, "", admin()...)
	}
	for _, path := range []string{"/ui", "/ui/overview", "/metrics", "/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/cmdline", "/readyz"} {
		s.ask(&s.pages, http.MethodGet, s.process.Admin+path, "", admin()...)
		s.ask(&s.pages, http.MethodGet, s.process.Admin+path, "", "Authorization", "Bearer "+planted("wrong-admin-key"))
	}
	s.run(ids)
	s.die()

	if len(ids) < 5 || !bytes.Contains(s.answers.Heard(), []byte(answer)) || len(s.spans.Heard()) == 0 || !bytes.Contains(s.log.Heard(), []byte("goroutine ")) {
		t.Fatalf("too little was heard: %d runs, %d bytes of spans", len(ids), len(s.spans.Heard()))
	}
	for where, heard := range map[string]*rig.Ear{"the log and the stacks": &s.log, "a command": &s.commands, "a span": &s.spans} {
		wantNone(t, where, heard.Heard(), mark, prompt, answer)
	}
	wantNone(t, "a page", s.pages.Heard(), mark, prompt)
	wantNone(t, "an answer", s.answers.Heard(), mark, prompt)
	s.wantNoneStored()
}

// start starts the service.
func start(t *testing.T) *site {
	path, err := binary.Build(t.Context(), t.TempDir(), binary.Spool)
	must(t, err)
	s := &site{t: t, fake: fakellm.Start(t, fakellm.Config{}), config: filepath.Join(t.TempDir(), "config.yaml"), exported: make(chan struct{})}
	first := sync.OnceFunc(func() { close(s.exported) })
	s.collector = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&s.spans, r.Body) // what is cut is heard as far as it came
		first()
	}))
	t.Cleanup(s.collector.Close)
	text := fmt.Sprintf(`
log_level: debug
secret: %s
previous_secret: %s
admin: {listen: "127.0.0.1:0"}
telemetry: {otlp_endpoint: %q, headers: {authorization: %s}}
auth: {keys: {agent: %s}}
providers:
  openai: {base_url: %q, key: %s}
  anthropic: {base_url: %q}
  gemini: {base_url: %q}
  nowhere: {base_url: "http://127.0.0.1:1", generates: true, key: %s}
`, planted("secret-of-thirty-two-characters"), planted("previous-secret-of-as-many"), s.collector.URL, planted("telemetry"), planted("buffer-key"),
		s.fake.URL+"/primary", planted("provider-key"), s.fake.URL+"/primary", s.fake.URL+"/primary", planted("provider-key"))
	must(t, os.WriteFile(s.config, []byte(text), 0o600))
	s.service = binary.Service{
		Path: path, Dir: filepath.Join(t.TempDir(), "data"), Log: &s.log, Env: []string{"GOTRACEBACK=all", "OTEL_BSP_SCHEDULE_DELAY=100"},
		Args: []string{"--config", s.config, "--admin-key", planted("admin-key")},
	}
	s.process, err = s.service.Serve()
	must(t, err)
	t.Cleanup(s.process.Kill)
	return s
}

func caller() []string { return []string{"X-Buffer-Key", planted("buffer-key")} }
func admin() []string  { return []string{"Authorization", "Bearer " + planted("admin-key")} }

// endings are what a provider answers with, one of each kind.
func endings() map[string][]fakellm.Op {
	events := fakellm.Chat(answer+" ", answer+" ")
	head := fakellm.Head("text/event-stream")
	return map[string][]fakellm.Op{
		"good": fakellm.Stream("text/event-stream", fakellm.Play(events, 0)...), "cut": {head, fakellm.Bytes(bytes.Join(events[:2], nil)), fakellm.RST()},
		"no HTTP": {fakellm.Data(planted("wire") + "\r\n\r\n"), fakellm.Fin()}, "closed": {fakellm.Fin()},
		"bad header": {fakellm.Data("HTTP/1.1 200 OK\r\n" + planted("wire") + "\r\n\r\n"), fakellm.Fin()},
		"refused":    {fakellm.JSON(401, `{"error":{"message":"no","type":"invalid_request_error"}}`)},
		"down":       {fakellm.JSON(503, `{"error":{"message":"no","type":"server_error"}}`)},
	}
}

// calls makes calls of every ending on every route, with a secret in each header that can carry one, and
// returns their runs. The last one is under way.
func (s *site) calls() (ids []string) {
	body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":%q}]}`, prompt)
	headers := append(caller(), "Authorization", "Bearer "+planted("authorization"), "X-Api-Key", planted("x-api-key"), "X-Goog-Api-Key", planted("x-goog-api-key"),
		"X-Provider-Key", planted("provider-key-of-the-call"), "Cookie", "session="+planted("cookie"), "X-Buffer-Budget", "attempts=1")
	for name, ops := range endings() {
		s.fake.Script("primary", ops)
		for _, path := range []string{
			"/openai/v1/chat/completions", "/anthropic/v1/messages", "/gemini/v1beta/models/m:streamGenerateContent?alt=sse&key=" + planted("query"),
			"/nowhere/v1/chat/completions", "/openai/v1/files?key=" + planted("query"), "/nobody/v1?key=" + planted("query"),
		} {
			if id := s.ask(&s.answers, http.MethodPost, s.process.URL+path, body, append(headers, "Idempotency-Key", name+path[:8])...); id != "" {
				ids = append(ids, id)
			}
			s.ask(&s.answers, http.MethodPost, s.process.URL+path, body, "X-Buffer-Key", planted("wrong-buffer-key"))
		}
	}
	s.fake.Script("primary", []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Bytes(bytes.Join(fakellm.Chat(answer)[:2], nil)), fakellm.Hang(0)})
	resp, err := s.do(http.MethodPost, s.process.URL+"/openai/v1/chat/completions", body, headers...)
	must(s.t, err)
	s.t.Cleanup(func() { resp.Body.Close() })
	return ids
}

// ask makes a request, hears its answer, and returns the run that it is of.
func (s *site) ask(to *rig.Ear, method, url, body string, headers ...string) string {
	s.t.Helper()
	resp, err := s.do(method, url, body, headers...)
	if err != nil {
		return "" // cut before its head
	}
	defer resp.Body.Close()
	resp.Header.Del(wire.HeaderToken) // the one place for it
	fmt.Fprintln(to, resp.Status, resp.Header)
	_, _ = io.Copy(to, resp.Body) // it may end as its run did
	return resp.Header.Get(wire.HeaderRunID)
}

func (s *site) do(method, url, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	must(s.t, err)
	req.Close = true // no connection outlives its request
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultTransport.RoundTrip(req)
}

// run runs the commands, with the right key and with a wrong one.
func (s *site) run(ids []string) {
	for _, key := range []string{planted("buffer-key"), planted("wrong-buffer-key")} {
		for _, args := range [][]string{
			{"runs"}, {"runs", "--json"}, {"show", ids[0]}, {"show", ids[0], "--json"}, {"show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {"cancel", ids[0]},
			{"token", ids[0], "--ttl", "nonsense"}, {"health"}, {"config", "check", s.config}, {"doctor", "--config", s.config}, {"doctor", "--admin-key", "short"},
			{"check", s.service.Dir}, {"backup", filepath.Join(s.t.TempDir(), "copy.db"), "--data", s.service.Dir}, {"serve", "--config", s.config, "--nonsense"},
			{"serve", "--config", s.config}, // whose folder is taken
		} {
			cmd := exec.CommandContext(s.t.Context(), s.service.Path, args...)
			cmd.Env = append(slices.Clone(s.service.Env), "SPOOL_URL="+s.process.URL, "SPOOL_KEY="+key, "SPOOL_DATA="+s.service.Dir)
			out, _ := cmd.CombinedOutput() // some are to fail
			fmt.Fprintf(&s.commands, "%s: %s\n", args, out)
		}
	}
}

// die ends the service in the middle of a call, with all that it has to say of that.
func (s *site) die() {
	select {
	case <-s.exported:
	case <-time.After(binary.Patience):
		s.t.Error("no spans are exported")
	}
	must(s.t, s.process.Quit())
	if code, err := s.process.Code(); err != nil || code != 2 {
		s.t.Errorf("it ended with %d, %v", code, err)
	}
}

// wantNoneStored looks into every file of the data folder, the write-ahead log included.
func (s *site) wantNoneStored() {
	must(s.t, filepath.WalkDir(s.service.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		wantNone(s.t, path, b, mark, prompt)
		return err
	}))
}

func wantNone(t *testing.T, where string, text []byte, plants ...string) {
	t.Helper()
	for _, plant := range plants {
		for rest := text; ; {
			i := bytes.Index(rest, []byte(plant))
			if i < 0 {
				break
			}
			t.Errorf("%s: %q", where, rest[max(0, i-80):min(i+60, len(rest))])
			rest = rest[i+1:]
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
