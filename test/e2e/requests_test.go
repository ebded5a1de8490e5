package e2e

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// A request's id is the caller's where it is within bounds, else a new one; the buffer's own answers
// carry it.
func TestRequestID_IsTheCallersOrANewOne(t *testing.T) {
	g := rig.New(t, rig.Options{})
	seen := map[string]bool{}
	for name, row := range map[string]struct {
		sent string
		kept bool
	}{
		"within bounds":  {"req-7 of mine", true},
		"as long as can": {strings.Repeat("x", 128), true},
		"too long":       {strings.Repeat("x", 129), false},
		"not printable":  {"caf\xe9", false},
		"none":           {"", false},
		"none once more": {"", false},
	} {
		for _, path := range []string{"/runs", "/runs/01JZZZZZZZ0000000000000009", "/resume?run=none"} {
			got := g.Do("GET", path, "", "X-Request-Id", row.sent).Header.Values("X-Request-Id")
			if len(got) != 1 || got[0] == "" || (got[0] == row.sent) != row.kept || !row.kept && seen[got[0]] {
				t.Errorf("%s: %s: %q came back as %q", name, path, row.sent, got)
				continue
			}
			seen[got[0]] = true
		}
	}
}

// An answer that is a provider's has the provider's id, or the one that the caller chose: never one
// that was made here, which an SDK would report as the provider's.
func TestRequestID_OnAnAnswerIsTheProvidersOrTheCallers(t *testing.T) {
	g := rig.New(t, rig.Options{})
	bare := fakellm.JSON(200, `{"object":"list"}`)
	named := fakellm.JSON(200, `{"object":"list"}`)
	named.Headers = map[string][]string{"x-request-id": {"theirs"}}
	for _, path := range []string{"/openai/v1/chat/completions", "/openai/v1/files"} {
		for _, row := range []struct {
			name, sent, want string
			op               fakellm.Op
		}{
			{"nobody has one", "", "", bare},
			{"the caller has", "mine", "mine", bare},
			{"the provider has", "", "theirs", named},
			{"both have", "mine", "theirs", named},
		} {
			g.Fake.Script("primary", []fakellm.Op{row.op})
			a := g.Do("POST", path, `{"model":"m"}`, "X-Request-Id", row.sent)
			if got := strings.Join(a.Header.Values("X-Request-Id"), ","); got != row.want {
				t.Errorf("%s: %s: %q, want %q", path, row.name, got, row.want)
			}
		}
	}
}

// Every line about a run has its id and that of the request which began it, and so has the line about
// a request.
func TestRequestID_IsInEveryLineOfTheLog(t *testing.T) {
	core, lines := observer.New(zapcore.DebugLevel)
	g := rig.New(t, rig.Options{Log: zap.New(core)})
	a := g.Chat("X-Request-Id", "req-7")
	g.Await(a.RunID(), buffer.Completed)
	g.Runs.Drain(t.Context()) // it has said all
	for _, message := range []string{"attempt ended", "run ended", "request"} {
		all := lines.FilterMessage(message).FilterField(zap.String("request", "req-7")).All()
		if len(all) != 1 || all[0].ContextMap()["run"] != a.RunID() {
			t.Errorf("%s: %v", message, all)
		}
	}
}
