package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

func TestClient_ReadsWhatTheProviderSends(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	s := scenario{events: 200}
	measuring := new(atomic.Bool)
	measuring.Store(true)
	opened := 0
	pool := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c := &client{
		http: pool, method: http.MethodPost, url: srv.URL + "/load/v1/chat/completions?" + s.query(), events: int64(s.events),
		measuring: measuring, opened: func() { opened++ },
	}
	if err := c.call(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := (tally{Events: 200}); c.tally != want || c.counted != 200 || c.latency.total != 200 || c.first.total != 1 || opened != 1 {
		t.Errorf("got %+v, counted %d, latency of %d, first of %d, opened %d", c.tally, c.counted, c.latency.total, c.first.total, opened)
	}
}

func TestClient_CountsWhatIsWrong(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	events := provided(t, srv.URL+"/load/?"+scenario{events: 4}.query())
	if len(events) != 5 {
		t.Fatalf("got %d events", len(events))
	}
	for _, tt := range []struct {
		name  string
		order []int // of events; the last is the end
		edit  func(string) string
		want  tally
	}{
		{"whole", []int{0, 1, 2, 3, 4}, nil, tally{Events: 4}},
		{"heartbeats", []int{0, 1, 2, 3, 4}, func(s string) string { return strings.ReplaceAll(s, "data:", ": hb\ndata:") }, tally{Events: 4}},
		{"lost", []int{0, 2, 3, 4}, nil, tally{Events: 3, Lost: 1}},
		{"lost at the end", []int{0, 1, 4}, nil, tally{Events: 2, Lost: 2}},
		{"repeated", []int{0, 1, 1, 2, 3, 4}, nil, tally{Events: 4, Repeated: 1}},
		{"out of order", []int{0, 2, 1, 3, 4}, nil, tally{Events: 3, Lost: 1, Repeated: 1}},
		{"ends without its end", []int{0, 1, 2, 3}, nil, tally{Events: 4, Broken: 1}},
		{"damaged", []int{0, 1, 2, 3, 4}, func(s string) string { return strings.Replace(s, "content", "cntent", 1) }, tally{Events: 3, Lost: 1, Damaged: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			for _, i := range tt.order {
				b.WriteString(events[i])
			}
			text := b.String()
			if tt.edit != nil {
				text = tt.edit(text)
			}
			c := &client{events: 4, measuring: new(atomic.Bool), opened: func() {}}
			if rest := c.take([]byte(text)); len(rest) > 0 {
				t.Errorf("left %q", rest)
			}
			c.run.end(c.events, &c.tally)
			if c.tally != tt.want {
				t.Errorf("got %+v, want %+v", c.tally, tt.want)
			}
		})
	}
}

// provided is the answer of the provider, event by event.
func provided(t *testing.T, url string) []string {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Post(url, "application/json", strings.NewReader(callBody))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	events := bytes.SplitAfter(b, blankLine)
	var texts []string
	for _, e := range events[:len(events)-1] {
		texts = append(texts, string(e))
	}
	return texts
}
