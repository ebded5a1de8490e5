package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/rig"
)

// A page is full of the provider that is looked for, however many runs of others are newer.
func TestConsole_FiltersByProviderOverAllRuns(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, "")
	runs := map[string][]string{}
	for i := range 60 {
		provider := "openai"
		if i == 0 {
			provider = "ollama"
		}
		run := buffer.Run{ID: ulid.MustNew(uint64(i+1), nil), Caller: "c", Provider: provider, State: buffer.Idle, TTL: time.Hour}
		log, run, err := g.Store.Create(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), nil, buffer.Failed, buffer.Closing{}); err != nil {
			t.Fatal(err)
		}
		runs[provider] = append(runs[provider], run.ID.String())
	}
	rows := func(query string) (n int, text string) {
		_, text = asked(t, "GET", base+"/ui/table"+query, "")
		return strings.Count(text, "<tr id="), text
	}
	if n, text := rows("?provider=ollama"); n != 1 || !strings.Contains(text, runs["ollama"][0]) || strings.Contains(text, "Older") {
		t.Errorf("%d runs of ollama, want the one and no more pages", n)
	}
	if n, text := rows("?provider=openai"); n != 50 || !strings.Contains(text, "Older") {
		t.Errorf("%d runs of openai on the first page, want 50 and more", n)
	}
	if n, text := rows("?provider=openai&after=" + runs["openai"][9]); n != 9 || strings.Contains(text, "Older") {
		t.Errorf("%d runs of openai on the last page, want 9", n)
	}
}

// What is released nobody reads again, also before the sweeper comes.
func TestConsole_ShowsNothingOfWhatIsReleased(t *testing.T) {
	g := rig.New(t, rig.Options{Runs: buffer.Config{Sweep: time.Hour}})
	base := admin(t, g, "")
	id := g.Chat().RunID()
	if a := g.Do("POST", "/runs/"+id+"/ack", ""); a.Status != 200 {
		t.Fatalf("ack: %d", a.Status)
	}
	for _, path := range []string{"", "/live"} {
		if _, text := asked(t, "GET", base+"/ui/runs/"+id+path, ""); strings.Contains(text, "chat.completion.chunk") || !strings.Contains(text, "released") {
			t.Errorf("%s shows\n%s", path, text)
		}
	}
}
