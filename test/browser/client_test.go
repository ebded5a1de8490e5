//go:build browser

package browser

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

// clientJob is what client.mjs is told.
type clientJob struct {
	Spool  string `json:"spool"`
	Cutter string `json:"cutter"` // before it
	Cut    string `json:"cut"`    // POST: cuts every connection of the cutter
	Home   string `json:"home"`   // an origin that serves the client's folder
	Text   string `json:"text"`   // what provider openai says
	Words  int    `json:"words"`  // in it
}

// calls are those that the cases make to provider openai.
const calls = 5

// readWithClient has pages load the client's files as they are.
func readWithClient(t *testing.T) {
	const words = 30
	chat := fakellm.Chat(slices.Repeat([]string{"word "}, words)...)
	fake := fakellm.Start(t, fakellm.Config{})
	fake.Script("paced", fakellm.Stream("text/event-stream", fakellm.Play(chat, 60*time.Millisecond)...))
	fake.Script("open", append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(chat[:3], 0), fakellm.Hang(0))...))

	files := http.FileServer(http.Dir(filepath.Join("..", "..", "clients", "js")))
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<!doctype html><title>page</title>")) // the browser would notice
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(home.Close)

	j := clientJob{Home: home.URL, Text: string(bytes.Join(chat, nil)), Words: words}
	j.Spool = "http://" + serving(t, build(t), "--provider", "openai="+fake.URL+"/paced",
		"--provider", "open:openai_chat="+fake.URL+"/open", "--cors-origin", home.URL)
	j.Cutter, j.Cut = cutting(t, j.Spool)
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	drive(t, "client.mjs", text)
	if n := fake.Count("paced"); n != calls && flag.NArg() == 0 {
		t.Errorf("the provider was called %d times, want %d", n, calls)
	}
}
