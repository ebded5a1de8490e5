package e2e

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// inBubble is a whole Spool over pipes, on the bubble's clock. Its handler is called directly.
func inBubble(t *testing.T) (http.Handler, *fakellm.Server, *sqlite.Store) {
	fake, dial := fakellm.Pipe(t, fakellm.Config{})
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	client := provider.NewClientOver(&http.Transport{DialContext: dial, DisableCompression: true})
	runs := buffer.NewRuns(store, client, buffer.Config{}, zap.NewNop())
	server := &api.Server{
		Store: store, Runs: runs, Client: client, Log: zap.NewNop(),
		Callers: api.NewCallers([]byte("a secret of the bubble"), nil),
		Providers: map[string]provider.Route{
			"openai": {Name: "openai", BaseURL: rig.Parse(t, fake.URL+"/primary")},
		},
	}
	t.Cleanup(func() {
		runs.Drain(context.Background())
		client.CloseIdle()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		rig.Check(t, dir)
	})
	return server.Handler(), fake, store
}

// Clocks go from the last sign of life and not from the beginning: an answer that comes steadily may
// take as long as it likes, one that has fallen silent may not, however short it is.
func TestLong_AnswerEndsBySilenceAndNotByAge(t *testing.T) {
	t.Parallel()
	const steady = 10 * time.Second
	words := strings.Fields(strings.Repeat("word ", 150)) // for 25 minutes
	for _, row := range []struct {
		name   string
		events int // of the answer, before the provider falls silent
		state  buffer.State
		reason buffer.Reason
		lives  time.Duration
	}{
		{"steady for 25 minutes", len(words) + 4, buffer.Completed, "", 25 * time.Minute},
		{"silent after 20 minutes", 121, buffer.Interrupted, buffer.Stalled, 22 * time.Minute},
		{"silent at once", 2, buffer.Interrupted, buffer.Stalled, 2 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, fake, store := inBubble(t)
				events := fakellm.Chat(words...)[:row.events]
				ops := append(fakellm.Play(events, steady), fakellm.Hang(0))
				if row.state == buffer.Completed {
					last := row.events - 2 // usage and [DONE] follow the finish at once
					ops = append(fakellm.Play(events[:last], steady), fakellm.Play(events[last:], 0)...)
				}
				fake.Script("primary", fakellm.Stream("text/event-stream", ops...))
				begun := time.Now()
				id := callInBubble(t, handler, bytes.Join(events, nil))
				run, err := store.Get(t.Context(), mustULID(t, id))
				if err != nil || run.State != row.state || run.Reason != row.reason || run.Head != int64(len(events)) {
					t.Errorf("the run is %s, reason %q, with %d of %d events; %v", run.State, run.Reason, run.Head, len(events), err)
				}
				if age := time.Since(begun); age < row.lives { // the bubble's clock: nothing of the machine's is in it
					t.Errorf("it lived for %s, want %s", age, row.lives)
				}
			})
		})
	}
}

// callInBubble makes the call and returns its run's id. The answer must begin with these bytes.
func callInBubble(t *testing.T, handler http.Handler, want []byte) (id string) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), "POST", "/openai/v1/chat/completions", strings.NewReader(rig.ChatBody))
	req.Header.Set("X-Buffer-Heartbeat", "off")
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		handler.ServeHTTP(w, req)
	}()
	if !bytes.HasPrefix(w.Body.Bytes(), want) {
		t.Errorf("the answer is %d bytes, want %d of the provider's", w.Body.Len(), len(want))
	}
	return w.Header().Get("X-Buffer-Run-Id")
}
