package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// planted is a word that is in one place only, and may be seen nowhere else.
func planted(place string) string { return "planted-secret-in-" + place }

// plants are the places in which a request can carry a secret.
func plants(place string) []string {
	return []string{
		"Authorization", "Bearer " + planted("authorization-"+place), "X-Api-Key", planted("x-api-key-" + place),
		"X-Goog-Api-Key", planted("x-goog-api-key-" + place), "Api-Key", planted("api-key-" + place),
		"X-Provider-Key", planted("provider-key-" + place), "Cookie", "session=" + planted("cookie-"+place),
		"Proxy-Authorization", "Basic " + planted("proxy-"+place),
	}
}

// endings are what a provider answers with, one of each kind. Some of them quote the key.
func endings() map[string][]fakellm.Op {
	refused := func(status int) []fakellm.Op {
		op := fakellm.JSON(status, `{"error":{"message":"no","type":"invalid_request_error"}}`)
		op.Headers = map[string][]string{"Set-Cookie": {planted("set-cookie")}}
		return []fakellm.Op{op}
	}
	return map[string][]fakellm.Op{
		"good": fakellm.Stream("text/event-stream", fakellm.Bytes(shortChat)), "cut": {fakellm.Head("text/event-stream"), fakellm.Bytes(shortEvents[1]), fakellm.RST()},
		"no HTTP": {fakellm.Data(planted("wire") + "\r\n\r\n"), fakellm.Fin()}, "closed": {fakellm.Fin()}, "redirect": refused(307),
		"bad header": {fakellm.Data("HTTP/1.1 200 OK\r\n" + planted("wire") + "\r\n\r\n"), fakellm.Fin()},
		"bad chunk":  {fakellm.Data(okHead + "Transfer-Encoding: chunked\r\n\r\n" + planted("wire")), fakellm.Fin()},
		"400":        refused(400), "401": refused(401), "429": refused(429), "500": refused(500),
	}
}

// Of what a caller, a provider or the configuration keeps secret nothing is in a log line, a metric,
// an error, a run's JSON, its ledger or the data folder, whatever becomes of the call.
func TestSecrets_AreNowhere(t *testing.T) {
	log := &rig.Ear{}
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	dir := t.TempDir()
	keys := map[string]string{"agent": planted("buffer-key")}
	g := rig.New(t, rig.Options{
		Dir: dir, Plain: true, Log: zap.New(zapcore.NewCore(encoder, zapcore.AddSync(log), zapcore.DebugLevel)), Keys: keys,
		Routes: func(fake string) map[string]provider.Route {
			routes := map[string]provider.Route{}
			for _, name := range []string{"openai", "anthropic", "gemini"} {
				routes[name] = provider.Route{Name: name, BaseURL: rig.Parse(t, fake+"/primary"), Clocks: provider.Clocks{Headers: time.Second}}
			}
			routes["configured"] = provider.Route{Name: "configured", BaseURL: rig.Parse(t, fake+"/primary"), Key: planted("config")}
			routes["nowhere"] = provider.Route{Name: "nowhere", BaseURL: rig.Parse(t, "http://127.0.0.1:1"), Key: planted("config")}
			return routes
		},
	})
	var answers rig.Ear
	hear := func(a rig.Answer) rig.Answer {
		fmt.Fprintln(&answers, a.Status, a.Header, string(a.Body))
		return a
	}
	try := func(method, path, body string, headers ...string) rig.Answer { // some are cut before their head
		resp, err := g.Client.Do(g.Request(method, path, body, headers...))
		if err != nil {
			return rig.Answer{Err: err, Header: http.Header{}}
		}
		defer resp.Body.Close()
		return read(resp)
	}
	caller := []string{"X-Buffer-Key", planted("buffer-key"), "X-Buffer-Mint-Token", "10m"}
	var ids, tokens []string
	for name, ops := range endings() {
		g.Fake.Script("primary", ops)
		for _, path := range []string{
			"/openai/v1/chat/completions", "/anthropic/v1/messages", "/configured/v1/chat/completions", "/nowhere/v1/chat/completions",
			"/gemini/v1beta/models/g:streamGenerateContent?alt=sse&key=" + planted("query"), "/openai/v1/files?key=" + planted("query"),
			"/openai/v1/%2e%2e/x?key=" + planted("query"), "/nobody/v1?key=" + planted("query"),
		} {
			headers := append(plants(name[:3]), caller...)
			a := try("POST", path, rig.ChatBody, append(headers, "X-Buffer-Budget", "attempts=1", "Idempotency-Key", name+path[:8])...)
			tokens = append(tokens, a.Header.Get("X-Buffer-Token"))
			a.Header.Del("X-Buffer-Token") // the one place for it
			if strings.Contains(path, "/files") {
				a.Header.Del("Set-Cookie") // what passes through is the provider's to its caller
			}
			hear(a)
			if a.RunID() != "" {
				ids = append(ids, a.RunID())
			}
			hear(try("POST", path, rig.ChatBody, plants(name[:3])...)) // without a buffer key
		}
	}
	for i, id := range ids {
		for _, path := range []string{"/runs/" + id, "/runs/" + id + "/events?follow=0", "/runs/" + id + "/resume?from=99999&key=" + planted("query")} {
			hear(g.Do("GET", path, "", append(plants("read"), caller...)...))
		}
		hear(g.Do("GET", "/runs/"+id+"?token="+tokens[i]+planted("token"), "", "Authorization", ""))
	}
	hear(g.Do("GET", "/runs", "", caller...))
	hear(g.Do("GET", "/runs?state=nonsense", "", caller...))
	hear(g.Do("GET", "/metrics", ""))
	if len(ids) == 0 || !strings.Contains(string(answers.Heard()), `"attempts":[`) || len(log.Heard()) == 0 {
		t.Fatal("nothing was heard")
	}
	wantNoPlant(t, "the answers", answers.Heard())
	wantNoPlant(t, "the log", log.Heard())
	wantNoPlantIn(t, dir)
	for _, token := range tokens {
		if token != "" && (bytes.Contains(log.Heard(), []byte(token)) || bytes.Contains(answers.Heard(), []byte(token))) {
			t.Errorf("the run token %s was told", token)
		}
	}
}

func wantNoPlant(t *testing.T, where string, text []byte) {
	t.Helper()
	for rest := text; ; {
		i := bytes.Index(rest, []byte("planted-secret-in-"))
		if i < 0 {
			return
		}
		t.Errorf("%s: %q", where, rest[max(0, i-80):min(i+60, len(rest))])
		rest = rest[i+1:]
	}
}

// wantNoPlantIn looks into every file of the data folder, the write-ahead log included.
func wantNoPlantIn(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		wantNoPlant(t, path, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
