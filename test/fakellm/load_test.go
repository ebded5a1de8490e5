package fakellm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

func TestLoad_IsChatChunksOfTheSizeThenDone(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	c := client(t, nil)
	for _, tt := range []struct {
		query        string
		events, size int
	}{
		{"events=5", 5, 100},
		{"events=5&size=400", 5, 400},
		{"events=1000&batch=64&size=250", 1000, 250},
		{"events=10&rate=1000", 10, 100},
	} {
		t.Run(tt.query, func(t *testing.T) {
			got := post(t, c, srv.URL+"/load/v1/chat/completions?"+tt.query, "{}")
			if got.status != 200 || got.err != nil {
				t.Fatalf("got %d %v", got.status, got.err)
			}
			rest, ok := bytes.CutSuffix(got.body, []byte("data: [DONE]\n\n"))
			if !ok || len(rest) != tt.events*tt.size {
				t.Fatalf("got %d bytes", len(rest))
			}
			for i := range tt.events {
				checkLoadEvent(t, rest[i*tt.size:(i+1)*tt.size], i)
			}
		})
	}
}

func checkLoadEvent(t *testing.T, event []byte, i int) {
	t.Helper()
	data, ok := bytes.CutPrefix(event, []byte("data: "))
	var e struct {
		I, T    string
		Choices []struct {
			Delta struct{ Content string }
		}
	}
	if err := json.Unmarshal(data, &e); err != nil || !ok || !bytes.HasSuffix(event, []byte("}\n\n")) {
		t.Fatalf("event %d: %q %v", i, event, err)
	}
	if e.I != fmt.Sprintf("%010d", i) || len(e.T) != 19 || len(e.Choices) != 1 || e.Choices[0].Delta.Content == "" {
		t.Fatalf("event %d: %s", i, event)
	}
}

func TestLoad_HoldsTheStreamUntilThePeerLeaves(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	resp, err := client(t, nil).Post(srv.URL+"/load/?events=1&hold=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := resp.Body.Read(make([]byte, 1000)); n != 100 || err != nil {
		t.Errorf("got %d %v", n, err)
	}
	resp.Body.Close()
	err = srv.Await(t.Context(), func(r []fakellm.Request) bool { return len(r) == 1 && !r[0].Closed.IsZero() })
	if err != nil {
		t.Fatal(err)
	}
}

func TestLoad_BoundsWhatIsAskedFor(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	c := client(t, nil)
	for query, want := range map[string]int{
		"events=x": http.StatusBadRequest, "rate=-1": http.StatusBadRequest,
		"events=1&rate=9000000000000000000":                  http.StatusOK,
		"events=2&size=0":                                    http.StatusOK,
		"events=1&size=9000000000000&batch=9000000000000000": http.StatusOK,
	} {
		if got := post(t, c, srv.URL+"/load/x?"+query, ""); got.status != want || got.err != nil {
			t.Errorf("%s: got %d %v", query, got.status, got.err)
		}
	}
}
