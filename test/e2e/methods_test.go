package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/rig"
)

// Every route of the buffer's own takes the methods of its document, and tells them where another comes.
func TestMethods_AreThoseOfTheDocument(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	g := rig.New(t, rig.Options{Plain: true}) // the document has no answer for what it does not know
	id := g.Chat().RunID()
	g.Await(id, buffer.Completed)
	asked := 0
	for path, item := range doc.Paths.Map() {
		if strings.HasPrefix(path, "/{provider}/") || path == "/metrics" || strings.HasPrefix(path, "/ai-gateway") {
			continue // forwarded, or not served by this rig
		}
		var allowed []string
		for _, m := range []string{"GET", "HEAD", "POST"} {
			if item.GetOperation(m) != nil {
				allowed = append(allowed, m)
			}
		}
		for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "frob"} {
			if item.GetOperation(strings.ToUpper(m)) != nil {
				continue
			}
			asked++
			a := g.Do(m, strings.NewReplacer("{run}", id, "{page:.*}", "runs").Replace(path), "")
			if allow := a.Header.Get("Allow"); a.Status != http.StatusMethodNotAllowed || allow != strings.Join(allowed, ", ") {
				t.Errorf("%s %s: %d, Allow %q; want 405 and %q", m, path, a.Status, allow, allowed)
			}
			if m != "HEAD" && (!strings.Contains(string(a.Body), `"code":"bad_method"`) || a.Header.Get("Content-Type") != "application/problem+json") {
				t.Errorf("%s %s: %s", m, path, a.Body)
			}
		}
	}
	if asked == 0 {
		t.Error("the document has no such routes")
	}
	for _, path := range []string{"/", "/streams", "/resume/x", "/runs/" + id + "/x", "/runs/" + id + "/", "/nobody"} {
		if a := g.Do("PUT", path, ""); a.Status != http.StatusNotFound || a.Header.Get("Allow") != "" {
			t.Errorf("PUT %s: %d, Allow %q; want 404", path, a.Status, a.Header.Get("Allow"))
		}
	}
}

// HEAD says what GET would begin with, now: it does not wait for a run that is under way, and is not cut
// where the run was.
func TestMethods_HeadIsGetWithoutTheWait(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, _ := live(t, g, []string{"one"}, []string{"two"})
	for path, want := range map[string]string{
		"/runs": "application/json", "/runs/" + id: "application/json",
		"/runs/" + id + "/resume?from=1": "text/event-stream", "/resume?run=" + id: "text/event-stream", "/runs/" + id + "/resume?from=2&wait=5m": "text/event-stream",
		"/runs/" + id + "/events": "text/event-stream", "/events?run=" + id: "text/event-stream", "/runs/" + id + "/stream": "text/event-stream",
	} {
		if a := g.Do("HEAD", path, ""); a.Status != 200 || a.Header.Get("Content-Type") != want || a.Err != nil {
			t.Errorf("HEAD %s: %d %v %v", path, a.Status, a.Header, a.Err)
		}
	}
	if a := g.Do("HEAD", "/runs/"+id+"/resume?from=1", ""); a.Header.Get("X-Buffer-From") != "1" || a.Header.Get("X-Buffer-Next") != "2" || a.Header.Get("X-Buffer-Status") != "streaming" {
		t.Errorf("the run is told as %v", a.Header)
	}
	for path, want := range map[string]int{"?from=3": 416, "?from=x": 400} {
		if a := g.Do("HEAD", "/runs/"+id+"/resume"+path, ""); a.Status != want {
			t.Errorf("HEAD %s: %d, want %d", path, a.Status, want)
		}
	}
	if a := g.Do("POST", "/runs/"+id+"/cancel", ""); a.Status != 200 {
		t.Fatalf("cancel: %d %s", a.Status, a.Body)
	}
	open()
	if a := g.Do("HEAD", "/runs/"+id+"/resume", ""); a.Status != 200 || a.Header.Get("X-Buffer-Status") != "cancelled" || a.Err != nil {
		t.Errorf("HEAD of a cut run: %d %v %v", a.Status, a.Header, a.Err)
	}
}
