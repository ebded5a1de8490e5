package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/resume"
	"github.com/spool-dev/spool/test/rig"
)

// minted mints a token with the given body.
func minted(t *testing.T, g *rig.Rig, id, body string) wire.Token {
	t.Helper()
	a := g.Do("POST", "/runs/"+id+"/token", body)
	var token wire.Token
	if err := json.Unmarshal(a.Body, &token); a.Status != 200 || err != nil || token.Token == "" {
		t.Fatalf("%d %s %v", a.Status, a.Body, err)
	}
	return token
}

// chatted is a run that has ended.
func chatted(t *testing.T, g *rig.Rig) string {
	t.Helper()
	return told(t, g, "text/event-stream", "data: "+word+"\n\n", "data: "+stop+"\n\n", "data: [DONE]\n\n")
}

// asPage is a request without the caller's credential, and with what a page would send.
func asPage(headers ...string) []string { return append([]string{"Authorization", ""}, headers...) }

func TestTokens_ReadOneRunAndNothingElse(t *testing.T) {
	g := rig.New(t, rig.Options{Keys: map[string]string{"agent": "k"}, Plain: true})
	id, other := chatted(t, g), chatted(t, g)
	live, open, _ := paced(t, g, 4, 0)
	defer open()
	token, ofLive := minted(t, g, id, "").Token, minted(t, g, live, "").Token
	if token != url.QueryEscape(token) || len(token) > 120 {
		t.Errorf("%q is not for URLs", token)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/runs/" + id, 200},
		{"GET", "/runs/" + strings.ToLower(id), 200},
		{"GET", "/runs/" + id + "/resume?from=1", 200},
		{"GET", "/runs/" + id + "/events", 200},
		{"GET", "/runs/" + id + "/stream?resume=1", 204},
		{"GET", "/resume?run=" + id, 200},
		{"GET", "/events?run=" + id, 200},

		{"GET", "/runs/" + other, 401},
		{"GET", "/runs/" + other + "/events", 401},
		{"GET", "/runs/01JZZZZZZZ0000000000000009", 401},
		{"GET", "/runs/x", 401},
		{"GET", "/resume?key=x", 401},
		{"GET", "/events?run=" + id + "&run=" + other, 401},
		{"GET", "/runs", 401},
		{"POST", "/runs/" + id + "/cancel", 401},
		{"POST", "/runs/" + id + "/ack", 401},
		{"POST", "/runs/" + id + "/token", 401},
		{"POST", "/openai/v1/chat/completions", 401},
		{"GET", "/openai/v1/models", 401},
		{"POST", "/anthropic/v1/messages", 401},
	} {
		and := "?"
		if strings.Contains(c.path, "?") {
			and = "&"
		}
		for how, a := range map[string]rig.Answer{
			"query":  g.Do(c.method, c.path+and+"token="+token, "", asPage()...),
			"bearer": g.Do(c.method, c.path, "", "Authorization", "Bearer "+token),
		} {
			if a.Status != c.want {
				t.Errorf("%s %s by %s: %d, want %d: %s", c.method, c.path, how, a.Status, c.want, a.Body)
			}
		}
	}
	if n := g.Fake.Count("primary"); n != 3 {
		t.Errorf("the provider was asked %d times, want 3", n)
	}
	both := g.Open("GET", "/events?run="+id+"&run="+live+"&token="+token+"&token="+ofLive, "", asPage()...)
	both.Body.Close()
	if both.StatusCode != 200 {
		t.Error("a token for each run:", both.StatusCode)
	}
}

func TestTokens_AreNoCallersWithoutKeys(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	a := g.Chat("Authorization", "") // anonymous: whoever sends no credential owns it
	token := minted(t, g, chatted(t, g), "").Token
	id := a.RunID()
	for _, path := range []string{"/cancel", "/ack", "/token"} {
		if a := g.Do("POST", "/runs/"+id+path+"?token="+token, "", asPage()...); a.Status != 401 {
			t.Error(path, a.Status)
		}
	}
	before := g.Fake.Count("primary")
	for _, header := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "X-Provider-Key"} {
		if a := g.Chat("Authorization", "", header, token); a.Status != 401 {
			t.Error(header, a.Status)
		}
	}
	if a := g.Do("POST", "/gemini/v1beta/models/g:generateContent?key="+token, "{}", asPage()...); a.Status != 401 {
		t.Error("key:", a.Status)
	}
	if n := g.Fake.Count("primary"); n != before {
		t.Error("a token went to the provider")
	}
}

func TestTokens_RefusalsAreOne(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	id := chatted(t, g)
	good := minted(t, g, id, `{"ttl":"1h"}`).Token
	sign := func(secret, run string, d time.Duration) string {
		return api.NewTokens([]byte(secret), nil).Mint(resume.Grant{Run: mustID(t, run), Expires: time.Now().Add(d)})
	}
	if a := g.Do("GET", "/runs/"+id+"?token="+sign(rig.PreviousSecret, id, time.Hour), "", asPage()...); a.Status != 200 {
		t.Error("the previous secret is valid too:", a.Status)
	}
	const nobody = "01JZZZZZZZ0000000000000009"
	var first []byte
	for name, path := range map[string]string{
		"another's secret":        "/runs/" + id + "?token=" + sign("a stranger's secret", id, time.Hour),
		"over":                    "/runs/" + id + "?token=" + sign(rig.Secret, id, -time.Millisecond),
		"over, no such run":       "/runs/" + nobody + "?token=" + sign(rig.Secret, nobody, -time.Millisecond),
		"of another run":          "/runs/" + nobody + "?token=" + good,
		"cut":                     "/runs/" + id + "?token=" + good[:len(good)-1],
		"longer":                  "/runs/" + id + "?token=" + good + "A",
		"with a line end":         "/runs/" + id + "?token=" + good + "%0A",
		"another last character":  "/runs/" + id + "?token=" + good[:len(good)-1] + "_",
		"empty":                   "/runs/" + id + "?token=",
		"garbage":                 "/runs/" + id + "?token=srt_%00",
		"one of two":              "/runs/" + id + "?token=" + good + "&token=x",
		"of a run that is no run": "/runs/" + nobody + "?token=srt_AAAA",
	} {
		a := g.Do("GET", path, "", asPage()...)
		var p wire.Problem
		if err := json.Unmarshal(a.Body, &p); a.Status != 401 || err != nil || p.Code != "unauthorized" || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s %v", name, a.Status, a.Body, err)
		}
		if first == nil {
			first = a.Body
		}
		if !bytes.Equal(a.Body, first) {
			t.Errorf("%s is told apart: %s", name, a.Body)
		}
	}
	if a := g.Do("GET", "/runs/"+nobody+"?token="+sign(rig.Secret, nobody, time.Hour), "", asPage()...); a.Status != 404 {
		t.Error("a good token of a run that has gone:", a.Status)
	}
}

func mustID(t *testing.T, text string) ulid.ULID {
	id, err := ulid.ParseStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestTokens_EveryByteIsSigned(t *testing.T) {
	tokens := resume.NewTokens([]byte("secret"))
	g := resume.Grant{Run: ulid.Make(), From: 7, Origin: "https://a.example", Expires: time.UnixMilli(1_900_000_000_123)}
	text := tokens.Mint(g)
	if got, err := tokens.Read(text, g.Expires.Add(-time.Millisecond)); err != nil || got != g {
		t.Errorf("%v %v, want %v", got, err, g)
	}
	if _, err := tokens.Read(text, g.Expires); err != resume.ErrToken {
		t.Error("at its end:", err)
	}
	for i := range text {
		for _, c := range []byte("A_z0") {
			if text[i] == c {
				continue
			}
			if _, err := tokens.Read(text[:i]+string(c)+text[i+1:], time.UnixMilli(0)); err != resume.ErrToken {
				t.Fatalf("with %q at %d: %v", c, i, err)
			}
		}
		if _, err := tokens.Read(text[:i], time.UnixMilli(0)); err != resume.ErrToken {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	var none *resume.Tokens
	if _, err := none.Read(text, time.UnixMilli(0)); err != resume.ErrToken {
		t.Error(err)
	}
}

func TestTokens_Claims(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := chatted(t, g)
	from := minted(t, g, id, `{"from":1}`).Token
	if a := g.Do("GET", "/runs/"+id+"/resume?token="+from, "", asPage()...); a.Status != 200 || a.Header.Get("X-Buffer-From") != "1" {
		t.Error("without a position:", a.Status, a.Header.Get("X-Buffer-From"))
	}
	if got := listen(t, g, "/runs/"+id+"/events?token="+from, asPage()...).rest(); len(got) != 3 || got[0].id != id+":1" {
		t.Error(got)
	}
	for path, want := range map[string]int{"/resume?from=0&": 401, "/resume?from=1&": 200, "/resume?from_byte=0&": 401, "/events?from=0&": 401, "/events?from=2&": 200, "?": 200} {
		if a := g.Do("GET", "/runs/"+id+path+"token="+from, "", asPage()...); a.Status != want {
			t.Errorf("%s from 1: %d, want %d", path, a.Status, want)
		}
	}
	origin := minted(t, g, id, `{"origin":"https://App.example:8443"}`).Token
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"its page", []string{"Origin", "https://app.example:8443"}, 200},
		{"another page", []string{"Origin", "https://evil.example"}, 401},
		{"no page", nil, 401},
		{"a page of another host that says that it is its own", []string{"Sec-Fetch-Site", "same-origin"}, 401},
	} {
		if a := g.Do("GET", "/runs/"+id+"?token="+origin, "", asPage(c.headers...)...); a.Status != c.want {
			t.Errorf("%s: %d, want %d", c.name, a.Status, c.want)
		}
	}
	own := minted(t, g, id, fmt.Sprintf(`{"origin":%q}`, g.URL)).Token
	if a := g.Do("GET", "/runs/"+id+"?token="+own, "", asPage("Sec-Fetch-Site", "same-origin")...); a.Status != 200 {
		t.Error("the buffer's own page:", a.Status)
	}
}

func TestTokens_Minting(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := chatted(t, g)
	for body, ttl := range map[string]time.Duration{"": 10 * time.Minute, "{}": 10 * time.Minute, `{"ttl":"90s"}`: 90 * time.Second, `{"ttl":"999h"}`: 24 * time.Hour} {
		begun := time.Now().Truncate(time.Millisecond)
		token := minted(t, g, id, body)
		if token.Expires.Before(begun.Add(ttl)) || token.Expires.After(time.Now().Add(ttl)) {
			t.Errorf("%s: it ends %s, want in %s", body, token.Expires, ttl)
		}
	}
	for body, want := range map[string]int{
		`{"ttl":"0s"}`: 400, `{"ttl":"-1m"}`: 400, `{"ttl":"soon"}`: 400, `{"ttl":600}`: 400, `[]`: 400, `{"ttl":"1m"`: 400, `{}{}`: 400, `{"scope":"x"}`: 400,
		`{"from":-1}`: 400, `{"from":"x"}`: 400, `{"origin":"app.example"}`: 400, `{"origin":"https://a.example/path"}`: 400, `{"origin":"https://a.example/"}`: 400,
		`{"origin":"https://` + strings.Repeat("a", 300) + `"}`: 400, `{"ttl":"` + strings.Repeat("1", 5000) + `"}`: 413,
	} {
		if a := g.Do("POST", "/runs/"+id+"/token", body); a.Status != want {
			t.Errorf("%.40s: %d, want %d", body, a.Status, want)
		}
	}
	for _, path := range []string{"/runs/01JZZZZZZZ0000000000000009/token", "/runs/x/token"} {
		if a := g.Do("POST", path, ""); a.Status != 404 {
			t.Error(path, a.Status)
		}
	}
	if a := g.Do("POST", "/runs/"+id+"/token", "", "Authorization", "Bearer another"); a.Status != 404 {
		t.Error("another's run:", a.Status)
	}
}

func TestTokens_ComeWithTheAnswer(t *testing.T) {
	g := rig.New(t, rig.Options{})
	a := g.Chat("X-Buffer-Mint-Token", "10m")
	token := a.Header.Get("X-Buffer-Token")
	if got := g.Do("GET", "/runs/"+a.RunID()+"?token="+token, "", asPage()...); token == "" || got.Status != 200 {
		t.Errorf("%q: %d", token, got.Status)
	}
	if a := g.Chat(); a.Header.Get("X-Buffer-Token") != "" {
		t.Error("a token that nobody asked for")
	}
	before := g.Fake.Count("primary")
	for _, v := range []string{"x", "0s", "-1m"} {
		if a := g.Chat("X-Buffer-Mint-Token", v); a.Status != 400 {
			t.Errorf("%q: %d", v, a.Status)
		}
	}
	if g.Fake.Count("primary") != before {
		t.Error("a refused call was sent")
	}
}

func TestTokens_ExpiryCutsNoTail(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, events := paced(t, g, 6, 0)
	token := minted(t, g, id, `{"ttl":"1s"}`)
	p := listen(t, g, "/runs/"+id+"/events?token="+token.Token, asPage()...)
	p.until("up_to_date")
	eventually(t, func() bool { return g.Do("GET", "/runs/"+id+"?token="+token.Token, "", asPage()...).Status == 401 })
	open()
	if rest := p.rest(); rest[len(rest)-1].id != fmt.Sprintf("%s:%d", id, len(events)) {
		t.Error(rest)
	}
	if a := g.Do("GET", "/runs/"+id+"/events?token="+token.Token, "", asPage("Last-Event-ID", p.id)...); a.Status != 401 {
		t.Error("a new tail:", a.Status)
	}
}

func TestTokens_AreInNoLog(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	g := rig.New(t, rig.Options{Log: zap.New(core), Plain: true})
	a := g.Chat("X-Buffer-Mint-Token", "10m")
	token := a.Header.Get("X-Buffer-Token")
	for _, path := range []string{"/runs/" + a.RunID(), "/runs/" + a.RunID() + "/events", "/runs/" + a.RunID() + "/resume", "/openai/v1/models", "/nothing", "/runs"} {
		g.Do("GET", path+"?token="+token, "", asPage()...)
		g.Do("GET", path, "", "Authorization", "Bearer "+token)
	}
	for _, e := range logs.All() {
		if line := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(line, token[:20]) {
			t.Error("a token in the log:", line)
		}
	}
	if logs.FilterMessage("request").Len() == 0 {
		t.Error("no request is logged")
	}
}
