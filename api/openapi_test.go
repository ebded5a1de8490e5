package api

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

func openDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil // any host
	return doc
}

// TestOpenAPI_Routes asks the server for every operation of the document, as a caller without a
// credential: each must be a route, the document's router must find that very operation, and the
// answer must be one that the document allows.
func TestOpenAPI_Routes(t *testing.T) {
	doc := openDocument(t)
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	server := &Server{
		Callers:    NewCallers([]byte("secret"), map[string]string{"name": "a key of sixteen or more"}),
		Providers:  map[string]provider.Route{"openai": {Name: "openai", BaseURL: base}},
		Cloudflare: true,
		Metrics:    http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		Log:        zap.NewNop(),
	}
	server.Drain() // readyz then says so without asking the store
	handler := server.Handler()
	fill := strings.NewReplacer("{provider}", "openai", "{path:[^/]*}", "v2", "{rest:.*}", "a/b%2Fc", "{page:.*}", "sign-in")
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			t.Run(method+" "+path, func(t *testing.T) {
				req := httptest.NewRequest(method, fill.Replace(path), nil)
				route, params, err := router.FindRoute(req)
				if err != nil {
					t.Fatal(err)
				}
				if route.Path != path {
					t.Fatalf("the document finds %s", route.Path)
				}
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, req)
				if strings.Contains(answer.Body.String(), "no such route") {
					t.Fatal("the server has no such route")
				}
				err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
					RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
					Status:                 answer.Code, Header: answer.Header(), Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())),
					Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: !strings.HasPrefix(path, "/runs")},
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestOpenAPI_HasEveryRoute reads the routes where they are written down, since a router that is
// wrapped does not tell them.
func TestOpenAPI_HasEveryRoute(t *testing.T) {
	doc := openDocument(t)
	routes := writtenRoutes(t)
	if len(routes) == 0 {
		t.Fatal("no routes are found in server.go")
	}
	for path, methods := range routes {
		item := doc.Paths.Value(path)
		if item == nil {
			t.Errorf("%s is not in the document", path)
			continue
		}
		if diff := cmp.Diff(methods, slices.Sorted(maps.Keys(item.Operations()))); diff != "" {
			t.Errorf("%s (-server +document)\n%s", path, diff)
		}
	}
	for path := range doc.Paths.Map() {
		if routes[path] == nil && !strings.HasPrefix(path, "/{provider}/") {
			t.Errorf("%s is in the document alone", path)
		}
	}
}

// writtenRoutes is every r.HandleFunc("path", …).Methods("M", …) of server.go.
func writtenRoutes(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "server.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		handle := ast.Expr(nil)
		methods, args := called(n)
		if methods != nil && methods.Sel.Name == "Methods" {
			handle = methods.X
		}
		if name, paths := called(handle); name != nil && strings.HasPrefix(name.Sel.Name, "Handle") {
			path := texts(t, paths[:1])[0]
			routes[path] = append(routes[path], texts(t, args)...)
			slices.Sort(routes[path])
		}
		return true
	})
	return routes
}

// called is the method that a call calls, and with what; nil for anything else.
func called(n ast.Node) (*ast.SelectorExpr, []ast.Expr) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, nil
	}
	method, _ := call.Fun.(*ast.SelectorExpr)
	return method, call.Args
}

func texts(t *testing.T, literals []ast.Expr) []string {
	t.Helper()
	var out []string
	for _, e := range literals {
		literal, ok := e.(*ast.BasicLit)
		if !ok {
			t.Fatal("a route of server.go is not written as a literal")
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

func TestOpenAPI_Codes(t *testing.T) {
	doc := openDocument(t)
	problem := doc.Components.Schemas["Problem"].Value
	var listed []string
	for _, code := range problem.Properties["code"].Value.Enum {
		listed = append(listed, code.(string))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), listed); diff != "" {
		t.Error("codes (-server +document)\n", diff)
	}
	want := map[string]int{}
	for code, k := range kinds {
		want[code] = k.status
	}
	text, err := json.Marshal(problem.Extensions["x-statuses"])
	if err != nil {
		t.Fatal(err)
	}
	var statuses map[string]int
	if err := json.Unmarshal(text, &statuses); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Error("statuses (-server +document)\n", diff)
	}
}

// TestOpenAPI_Schemas holds the document's objects against the types that are encoded.
func TestOpenAPI_Schemas(t *testing.T) {
	doc := openDocument(t)
	for name, value := range map[string]any{
		"Run": wire.Run{}, "RunList": wire.RunList{}, "Attempt": wire.Attempt{}, "Usage": wire.Usage{}, "Problem": wire.Problem{},
		"Token": wire.Token{},
	} {
		t.Run(name, func(t *testing.T) {
			var fields, required, nullable []string
			for f := range reflect.TypeOf(value).Fields() {
				field, option, _ := strings.Cut(f.Tag.Get("json"), ",")
				fields = append(fields, field)
				if option == "" {
					required = append(required, field)
				}
				if f.Type.Kind() == reflect.Pointer {
					nullable = append(nullable, field)
				}
			}
			schema := doc.Components.Schemas[name].Value
			var mayBeNull []string
			for field, s := range schema.Properties {
				if s.Value.Nullable {
					mayBeNull = append(mayBeNull, field)
				}
			}
			for what, pair := range map[string][2][]string{
				"fields":   {fields, slices.Collect(maps.Keys(schema.Properties))},
				"required": {required, schema.Required},
				"nullable": {nullable, mayBeNull},
			} {
				slices.Sort(pair[0])
				pair[1] = slices.Sorted(slices.Values(pair[1]))
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s (-server +document)\n%s", what, diff)
				}
			}
		})
	}
}

// TestOpenAPI_IdleRun is the run with the most nulls and empty words.
func TestOpenAPI_IdleRun(t *testing.T) {
	schema := openDocument(t).Components.Schemas["Run"].Value
	run := buffer.Run{
		ID: ulid.MustNew(1, nil), State: buffer.Idle, Kind: policy.ReadOnly,
		Attempts: []buffer.Attempt{{N: 1, Billed: policy.BilledUnknown}},
	}
	text, err := json.Marshal(WireRun(run, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	if err := schema.VisitJSON(value); err != nil {
		t.Error(err)
	}
}
