package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// aboutNoRun are the paths of the document that name no run, and so cannot tell of another's. A path
// that is new stands here, or names its run in a way that naming knows.
var aboutNoRun = map[string]bool{
	"/healthz": true, "/readyz": true, "/metrics": true, "/ui": true,
	"/{provider}/{path:[^/]*}": true, "/{provider}/{path:[^/]*}/{rest:.*}": true,
}

// naming are the ways in which a path of the document names the run with an id and a key: none for a
// path that names no run.
func naming(path, id, key, response string) []string {
	fill := strings.NewReplacer("{run}", id, "{response}", response, "{gateway}", "any", "{provider}", "openai")
	switch {
	case strings.Contains(path, "{run}"), strings.Contains(path, "{response}"):
		return []string{fill.Replace(path)}
	case path == "/ui/{page:.*}":
		return []string{"/ui/runs/" + id}
	case path == "/resume":
		return []string{"/resume?run=" + id, "/resume?key=" + key}
	case path == "/events":
		return []string{"/events?run=" + id, "/events?run=" + id + ":0"}
	case path == "/runs":
		return []string{"/runs?after=" + id, "/runs?tag=name%3D" + key, "/runs?state=completed"}
	}
	return nil
}

// TestIsolation_AnothersRunIsAsGoodAsNone asks every path of the OpenAPI document, with every method,
// for another caller's run and for one that does not exist: the answers are the same, to the byte.
func TestIsolation_AnothersRunIsAsGoodAsNone(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	g := rig.New(t, rig.Options{Plain: true})
	own := g.Chat("Authorization", "Bearer stranger")
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Responses("a "), 0)...))
	theirs := g.Do("POST", "/openai/v1/responses", `{"model":"m","stream":true}`, "Idempotency-Key", "theirs", "X-Buffer-Tag", "name=theirs")
	run := g.Await(theirs.RunID(), buffer.Completed)
	if run.ProviderID == "" {
		t.Fatal("the response has no id")
	}
	token := g.Do("POST", "/runs/"+own.RunID()+"/token", "", "Authorization", "Bearer stranger")
	_, text, _ := strings.Cut(string(token.Body), `"token":"`)
	text, _, _ = strings.Cut(text, `"`)
	g.Fake.Script("primary", []fakellm.Op{fakellm.JSON(404, `{"error":{"message":"no such response"}}`)})

	unknown := theirs.RunID()[:25] + string("10"[strings.Count(theirs.RunID()[25:], "1")]) // of the same moment, since lists are ordered by it
	askers := map[string][]string{
		"a stranger":            {"Authorization", "Bearer stranger"},
		"nobody":                {"Authorization", ""},
		"a token of another":    {"Authorization", "Bearer " + text},
		"a stranger in a chain": {"Authorization", "Bearer stranger", "X-Buffer-Run-Id", theirs.RunID(), "Last-Event-ID", "0"},
	}
	neutral := strings.NewReplacer(theirs.RunID(), "RUN", unknown, "RUN", run.ProviderID, "RESPONSE", "resp_none", "RESPONSE", "theirs", "KEY", "none", "KEY")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		foreign := naming(path, theirs.RunID(), "theirs", run.ProviderID)
		none := naming(path, unknown, "none", "resp_none")
		if foreign == nil {
			if !aboutNoRun[path] && !strings.HasPrefix(path, "/{provider}/") {
				t.Errorf("%s: does it name a run? Say so in naming or aboutNoRun", path)
			}
			continue
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			for who, headers := range askers {
				for i := range foreign {
					if strings.HasPrefix(path, "/ai-gateway/") && who == "nobody" {
						continue // the run's id is the credential there
					}
					a, b := g.Do(method, foreign[i], "", headers...), g.Do(method, none[i], "", headers...)
					if got, want := everything(a, neutral), everything(b, neutral); got != want {
						t.Errorf("%s %s for %s:\n another's %s\n unknown's %s", method, foreign[i], who, got, want)
					}
					if bytes.Contains(a.Body, []byte("response.")) {
						t.Errorf("%s %s for %s gives the answer away", method, foreign[i], who)
					}
				}
			}
		}
	}
	if again := g.Await(theirs.RunID(), buffer.Completed); again.Head != run.Head || again.State != run.State {
		t.Errorf("the run noticed: %+v", again)
	}
}

// everything is all that an answer says, but for its time and for what was asked.
func everything(a rig.Answer, neutral *strings.Replacer) string {
	h := http.Header.Clone(a.Header)
	h.Del("Date")
	h.Del("X-Request-Id")
	h.Del("Content-Length") // of a text that names what was asked for
	return neutral.Replace(fmt.Sprintf("%d %v %s %v", a.Status, h, a.Body, a.Err))
}

// Readers of two runs in the file at once, some of both on one connection, get each run's events and no other's.
func TestIsolation_ReplaysOfEventsAtOnceKeepApart(t *testing.T) {
	const events, together, readers = 10_000, 200, 3
	dir := t.TempDir()
	g := rig.New(t, rig.Options{Dir: dir, Plain: true})
	wants := map[string]string{} // by the path that reads it
	var ids []string
	for _, name := range []string{"one", "two"} {
		parts := make([]string, events/together)
		var data []string
		for i := range events {
			text := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"%s %d"}}]}`, name, i)
			data, parts[i/together] = append(data, text), parts[i/together]+text+"\n\n"
		}
		id := told(t, g, "text/event-stream", append(parts, "data: "+stop+"\n\n", "data: [DONE]\n\n")...)
		var want strings.Builder
		for i, line := range append(data, "data: "+stop, "data: [DONE]") {
			fmt.Fprintf(&want, "%s\nid: %s:%d\n\n", line, id, i)
		}
		ids, wants["/runs/"+id+"/events"] = append(ids, id), want.String()
	}
	fresh := rig.New(t, rig.Options{Dir: dir, Plain: true, Join: true}) // it has nothing in memory
	var reading sync.WaitGroup
	for path, want := range wants {
		for range readers {
			reading.Go(func() {
				a := fresh.Do("GET", path, "")
				_, got, _ := strings.Cut(string(a.Body), "\n") // less the retry
				if !strings.HasPrefix(got, want) {
					t.Errorf("%s: %d bytes are not its %d", path, len(got), len(want))
				}
			})
		}
	}
	for range readers {
		reading.Go(func() {
			a := fresh.Do("GET", "/events?run="+strings.Join(ids, "&run="), "")
			var of [2]strings.Builder
			_, got, _ := strings.Cut(string(a.Body), "\n") // less the retry
			for block := range strings.SplitAfterSeq(got, "\n\n") {
				for i, id := range ids {
					if strings.Contains(block, "\nid: "+id+":") && strings.HasPrefix(block, "data: ") {
						of[i].WriteString(block)
					}
				}
			}
			for i, id := range ids {
				if path := "/runs/" + id + "/events"; !strings.HasPrefix(of[i].String(), wants[path]) {
					t.Errorf("%s beside another: %d bytes are not its %d", path, of[i].Len(), len(wants[path]))
				}
			}
		})
	}
	reading.Wait()
}
