package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/rig"
)

func TestSteering_BadValuesAreRefusedByName(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	nine := strings.TrimPrefix(strings.Repeat(",a%d=b", 9), ",")
	for header, values := range map[string][]string{
		"X-Buffer-TTL":           {"never", "0", "0s", "-1h", "30", "1 h", "1h;"},
		"X-Buffer-Tag":           {"a", "=b", "a=b,c", "a=b,,c=d", "é=b", "a=\x01", fmt.Sprintf(nine, 1, 2, 3, 4, 5, 6, 7, 8, 9), "a=" + strings.Repeat("x", 300)},
		"X-Buffer-Budget":        {"3", "attempts", "attempts=0", "attempts=-1", "attempts=x", "elapsed=0s", "elapsed=5", "cost=-1", "cost=NaN", "cost=Inf", "cost=$1", "attempts=3;size=2", "attempts=3;;"},
		"X-Buffer-Kind":          {"write", "READ_ONLY", "read_only,external"},
		"X-Buffer-On-Disconnect": {"stop", "cancel-after", "cancel-after=", "cancel-after=0s", "cancel-after=-1s", "cancel-after=30", "Continue"},
		"X-Buffer-Heartbeat":     {"on", "0", "1", "-1s", "1ms", "never"},
		"X-Buffer-From":          {"x", "-1", "+1", "1.5", "1e3", "9223372036854775808", " ", "0x1"},
		"X-Buffer-Run-Id":        {"nonsense", "01JZZZZZZZ000000000000000", "01JZZZZZZZ00000000000000001", "81JZZZZZZZ0000000000000001", "01JZZZZZZZ000000000000000U", "00000000000000000000000000"},
		"X-Buffer-Operation":     {strings.Repeat("x", 256), "é"},
		"Idempotency-Key":        {`""`, strings.Repeat("x", 256), "é"},
	} {
		for _, value := range values {
			for _, path := range []string{"/openai/v1/chat/completions", "/anthropic/v1/messages"} {
				req := g.Request("POST", path, rig.ChatBody)
				req.Header[http.CanonicalHeaderKey(header)] = []string{value}
				resp, err := g.Client.Do(req)
				if err != nil {
					if strings.Contains(err.Error(), "invalid header field value") {
						continue // net/http does not let it out
					}
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusBadRequest || !bytes.Contains(b, []byte("spool: "+header)) || err != nil {
					t.Errorf("%s: %q: %d %s %v, want 400 that names the header", header, value, resp.StatusCode, b, err)
				}
			}
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
	wantNoRuns(t, g)
}

// Of two lines neither is taken: a proxy that appends one must not decide what the caller meant.
func TestSteering_HeaderGivenTwiceIsRefusedByName(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	for header, values := range map[string][]string{
		"X-Buffer-Run-Id":        {"01JZZZZZZZ0000000000000005", "01JZZZZZZZ0000000000000006"},
		"X-Buffer-Operation":     {"a", "b"},
		"X-Buffer-Kind":          {"external", "read_only"},
		"X-Buffer-On-Disconnect": {"continue", "cancel"},
		"X-Buffer-TTL":           {"1m", "2m"},
		"X-Buffer-Tag":           {"turn=1", "turn=2"},
		"X-Buffer-Budget":        {"attempts=1", "attempts=2"},
		"X-Buffer-From":          {"0", "1"},
		"X-Buffer-Heartbeat":     {"off", "1s"},
		"X-Buffer-Mint-Token":    {"1m", "2m"},
		"Idempotency-Key":        {"a", "b"},
	} {
		req := g.Request("POST", "/openai/v1/chat/completions", rig.ChatBody)
		req.Header[http.CanonicalHeaderKey(header)] = values
		if a := do(t, g, req); a.Status != http.StatusBadRequest || !bytes.Contains(a.Body, []byte("spool: "+header)) {
			t.Errorf("%s: %d %s, want 400 that names the header", header, a.Status, a.Body)
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
	wantNoRuns(t, g)
}

func TestSteering_GoodValuesAreKept(t *testing.T) {
	g := rig.New(t, rig.Options{})
	a := g.Chat("X-Buffer-TTL", "90m", "X-Buffer-Tag", "turn=1, user=a=b", "X-Buffer-Budget", "attempts=2; elapsed=1m;cost=0.5", "X-Buffer-Kind", "external",
		"X-Buffer-On-Disconnect", "cancel-after=30s", "X-Buffer-Heartbeat", "off", "X-Buffer-Operation", "op 1", "X-Buffer-From", "5")
	if a.Status != 200 || a.Header.Get("X-Buffer-From") != "0" {
		t.Fatalf("%d %s, from %s", a.Status, a.Body, a.Header.Get("X-Buffer-From"))
	}
	run := g.Await(a.RunID(), buffer.Completed)
	got := fmt.Sprintf("%v %v %v %v %v %v %v %v", run.TTL, run.Tags, run.Budget.Attempts, run.Budget.Elapsed, run.Budget.CostUSD, run.Kind, run.OnDisconnect, run.Operation)
	if want := "1h30m0s map[turn:1 user:a=b] 2 1m0s 0.5 external {true 30s} op 1"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if long := g.Chat("X-Buffer-TTL", "9000h"); g.Await(long.RunID(), buffer.Completed).TTL.Hours() != 24 {
		t.Error("a TTL above the maximum is not cut to it")
	}
}
