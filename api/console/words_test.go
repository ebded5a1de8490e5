package console

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/provider"
)

func TestWords(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1\u202f000"}, {count(1234567), "1\u202f234\u202f567"}, {count(-1234), "-1\u202f234"},
		{size(0), "0 B"}, {size(1023), "1023 B"}, {size(1536), "1.5 KiB"}, {size(300 << 20), "300 MiB"}, {size(5 << 40), "5.0 TiB"},
		{took(-1), "–"}, {took(0), "0 ms"}, {took(1500 * time.Millisecond), "1.5 s"}, {took(61 * time.Second), "1 m 01 s"}, {took(25 * time.Hour), "25 h 00 m"},
		{dollars(0), "$0.00"}, {dollars(0.00012), "$0.00012"}, {dollars(12.345), "$12.35"},
		{callerName("billing"), "billing"}, {callerName(strings.Repeat("0a", 32)), "0a0a0a0a…"},
	} {
		if row.got != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
}

func TestDestination_IsAPageOfTheConsole(t *testing.T) {
	for to, want := range map[string]string{
		"/ui": "/ui", "/ui?state=failed": "/ui?state=failed", "/ui/overview": "/ui/overview", "/ui/runs/01J": "/ui/runs/01J",
		"/ui/runs/01J?token=srt_x": "/ui/runs/01J",
		"":                         "/ui", "//evil.example/ui": "/ui", "https://evil.example/ui": "/ui", `/\evil.example/ui`: "/ui", "/openai/page": "/ui", "javascript:alert(1)": "/ui", "%": "/ui",
	} {
		r := httptest.NewRequest("POST", "/ui/sign-in", strings.NewReader(url.Values{"to": {to}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if got := destination(r); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

func TestTranscript_HoldsWhatAPageCan(t *testing.T) {
	var tr transcript
	page := &buffer.Page{Run: buffer.Run{Dialect: provider.OpenAIChat, Framing: frame.SSE}}
	for i := range 3 * pageEvents {
		page.Chunks = append(page.Chunks, buffer.Chunk{Pos: int64(i), Data: []byte(`data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n")})
	}
	tr.take(page)
	if len(tr.Pieces) != 1 || len(tr.Pieces[0].Text) != 3*pageEvents || len(tr.Events) != pageEvents || tr.Next != 3*pageEvents {
		t.Errorf("%d pieces, %d events, next %d", len(tr.Pieces), len(tr.Events), tr.Next)
	}
	if first := tr.Events[0].Pos; first != 2*pageEvents {
		t.Errorf("the events begin at %d: not the last ones", first)
	}
}

func TestRaw_IsATextOfBoundedSize(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing": nil, "long": []byte(strings.Repeat("é", eventBytes)), "binary": {0xff, 0xfe, 0, 1}, "long binary": []byte(strings.Repeat("\xff", 1<<20)),
	} {
		if text := raw(b); len(text) > 2*eventBytes || strings.ContainsRune(text, '\ufffd') {
			t.Errorf("%s: %d bytes of text", name, len(text))
		}
	}
}
