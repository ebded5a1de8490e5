package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/rig"
)

// Each state that /readyz knows, and the way back where there is one. /healthz knows none of them.
func TestReady_SaysEachState(t *testing.T) {
	var refused atomic.Bool
	g := rig.New(t, rig.Options{Fault: func(p sqlite.Point) error {
		if p == sqlite.AtCommit && refused.Load() {
			return os.ErrPermission
		}
		return nil
	}})
	state := func() string {
		a := g.Do("GET", "/readyz", "")
		switch {
		case a.Status == http.StatusOK:
			return "ready"
		case a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "":
			t.Errorf("status %d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
		case strings.Contains(string(a.Body), `"code":"storage"`):
			return "storage"
		case strings.Contains(string(a.Body), `"code":"draining"`):
			return "draining"
		}
		return string(a.Body)
	}
	want := func(want, why string) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("%s: it is %s, want %s", why, got, want)
		}
		if a := g.Do("GET", "/healthz", ""); a.Status != http.StatusOK {
			t.Errorf("%s: not healthy, %d", why, a.Status)
		}
	}
	want("ready", "at the start")

	file := filepath.Join(g.Dir, "spool.db")
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(file, file+".away")
	want("storage", "a log that cannot be read")
	move(file+".away", file)
	want("ready", "a log that is back")

	refused.Store(true)
	if a := g.Do("POST", "/openai/v1/chat/completions", rig.ChatBody); a.Status != http.StatusServiceUnavailable {
		t.Errorf("a call beside it: %d", a.Status)
	}
	want("storage", "a log that cannot be written")
	refused.Store(false)
	eventually(t, func() bool { return state() == "ready" })

	g.Server.Drain()
	want("draining", "on the way down")
}
