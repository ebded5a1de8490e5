package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/rig"
)

// Every route of the buffer's own takes the query parameters of its document, and refuses all others
// by their name, with those that it takes.
func TestQuery_ParametersAreThoseOfTheDocument(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	g := rig.New(t, rig.Options{})
	id := g.Chat("Idempotency-Key", "turn").RunID()
	g.Await(id, buffer.Completed)
	anyName := []string{"from", "from_byte", "starting_after", "follow", "wait", "partial", "run", "key", "token", "state", "tag", "limit", "after", "resume", "FROM", "frmo", ""}
	asked := 0
	for path, item := range doc.Paths.Map() {
		if !slices.Contains([]string{"runs", "resume", "events"}, strings.Split(path, "/")[1]) {
			continue
		}
		for method, operation := range item.Operations() {
			if method == http.MethodHead { // GET without the body that is looked at here
				continue
			}
			known := queryOf(item.Parameters, operation)
			for _, name := range anyName {
				a := g.Do(method, strings.Replace(path, "{run}", id, 1)+"?"+name+"=x", "")
				refused := strings.Contains(string(a.Body), "query parameter")
				if refused == slices.Contains(known, name) {
					t.Errorf("%s %s with %q: %d %s; the document has %q", method, path, name, a.Status, a.Body, known)
				}
				if refused && (a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), `"code":"bad_request"`) || !strings.Contains(string(a.Body), strings.Join(known, ", "))) {
					t.Errorf("%s %s with %q: %d %s, want what is known: %q", method, path, name, a.Status, a.Body, known)
				}
				asked++
			}
		}
	}
	if asked == 0 {
		t.Error("the document has no such routes")
	}
}

// What is said twice is refused by its name, and neither of the two is taken.
func TestQuery_GivenTwiceIsRefusedByName(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := g.Chat("Idempotency-Key", "turn").RunID()
	g.Await(id, buffer.Completed)
	for _, row := range []struct{ name, path, code, field string }{
		{"positions", "/runs/" + id + "/resume?from=1&from=2", "bad_position", "from"},
		{"the same position", "/runs/" + id + "/resume?from=1&from=1", "bad_position", "from"},
		{"bytes", "/runs/" + id + "/resume?from_byte=1&from_byte=2", "bad_position", "from_byte"},
		{"events", "/runs/" + id + "/events?starting_after=1&starting_after=2", "bad_position", "starting_after"},
		{"to follow and not to", "/runs/" + id + "/resume?follow=0&follow=1", "bad_position", "follow"},
		{"waits", "/resume?run=" + id + "&wait=1s&wait=2s", "bad_position", "wait"},
		{"runs of one answer", "/resume?run=" + id + "&run=" + id, "bad_request", "run"},
		{"keys", "/resume?key=turn&key=other", "bad_request", "key"},
		{"tags", "/runs?tag=a=1&tag=b=2", "bad_request", "tag"},
		{"limits", "/runs?limit=1&limit=2", "bad_request", "limit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := g.Do("GET", row.path, "")
			if body := string(a.Body); a.Status != 400 || !strings.Contains(body, `"code":"`+row.code+`"`) || !strings.Contains(body, row.field+" must be given once") {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	req := g.Request("GET", "/runs/"+id+"/resume", "")
	req.Header["Last-Event-Id"] = []string{"1", "2"}
	if a := do(t, g, req); a.Status != 400 || !strings.Contains(string(a.Body), "bad_position") {
		t.Errorf("Last-Event-ID twice: %d %s", a.Status, a.Body)
	}
}

// do sends a request that the rig could not make, and reads its answer to the end.
func do(t *testing.T, g *rig.Rig, req *http.Request) rig.Answer {
	t.Helper()
	resp, err := g.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return read(resp)
}

// queryOf is every query parameter of an operation: the token first, then the others in the
// document's order.
func queryOf(shared openapi3.Parameters, o *openapi3.Operation) (names []string) {
	if o.Security != nil {
		for _, way := range *o.Security {
			if _, token := way["runToken"]; token {
				names = append(names, "token")
			}
		}
	}
	for _, p := range slices.Concat(shared, o.Parameters) {
		if p.Value.In == "query" {
			names = append(names, p.Value.Name)
		}
	}
	return names
}

// A query that a provider's route gets goes to the provider, whatever is in it.
func TestQuery_OfAProviderPasses(t *testing.T) {
	g := rig.New(t, rig.Options{})
	g.Do("POST", "/openai/v1/chat/completions?frmo=1&api-version=x", rig.ChatBody)
	sent := g.Fake.Requests()
	if len(sent) != 1 || !strings.HasSuffix(sent[0].Target, "/v1/chat/completions?frmo=1&api-version=x") {
		t.Errorf("the provider got %+v", sent)
	}
}
