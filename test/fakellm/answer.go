package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultText is what a generation call without a script is answered with.
const DefaultText = "A durable stream outlives the process that asked for it. " +
	"Every word that a model writes is kept in the order of its arrival before anybody reads it, " +
	"so a reader that loses its connection comes back, names the last position that it saw, " +
	"and goes on from there. Nothing is bought twice, nothing is lost, and the answer ends only when its author says so."

// reportRoute tells what was asked; it is not counted itself.
const reportRoute = "__requests"

// answer chooses what a request gets, and names its route.
func (s *Server) answer(rec *record, req *http.Request) []Op {
	path := req.URL.Path
	segment, _, _ := strings.Cut(routeName(path), "/")
	rec.Route = segment

	s.mu.Lock()
	route, ops, ok := s.scripted(path)
	s.mu.Unlock()
	switch {
	case ok:
		rec.Route = route
		return ops
	case segment == reportRoute:
		return []Op{JSON(http.StatusOK, s.report())}
	case segment == "load":
		return load(req.URL.Query())
	}
	if r, opts, ok := s.recorded(segment); ok {
		return r.answer(opts)
	}
	if req.Method == http.MethodGet && strings.HasSuffix(path, "/models") {
		return []Op{JSON(http.StatusOK, fmt.Sprintf(`{"object":"list","data":[{"id":%q,"object":"model","created":%d,"owned_by":"fakellm"}]}`, fakeModel, fakeCreated))}
	}
	if d, ok := dialectOf(req.URL, rec.Body); ok && req.Method == http.MethodPost {
		return d.say(s.config.Text, s.config.Every)
	}
	return []Op{refusal(http.StatusNotFound, "no script, recording or generation call at "+path)}
}

func refusal(status int, text string) Op {
	return JSON(status, `{"error":{"message":`+quote(text)+`,"type":"invalid_request_error","code":null}}`)
}

// dialect is how a generation call is answered.
type dialect struct {
	streams     bool
	contentType string
	events      func(texts ...string) [][]byte
	body        func(texts ...string) string
}

const (
	typeSSE    = "text/event-stream; charset=utf-8"
	typeNDJSON = "application/x-ndjson"
	typeJSON   = "application/json"
	typeAWS    = "application/vnd.amazon.eventstream"
)

// dialectOf knows a generation call by the end of its path, and whether it asks for a stream.
func dialectOf(u *url.URL, body []byte) (dialect, bool) {
	var asked struct {
		Stream *bool `json:"stream"`
	}
	_ = json.Unmarshal(body, &asked) // a body that is not JSON asks for no stream
	stream := asked.Stream != nil && *asked.Stream
	unlessFalse := asked.Stream == nil || *asked.Stream

	is := func(suffix string) bool { return strings.HasSuffix(u.Path, suffix) }
	switch {
	case is("/chat/completions"):
		return dialect{stream, typeSSE, Chat, chatBody}, true
	case is("/completions"):
		return dialect{stream, typeSSE, Completions, completionsBody}, true
	case is("/responses"):
		return dialect{stream, typeSSE, Responses, responsesBody}, true
	case is("/messages"):
		return dialect{stream, typeSSE, Messages, messagesBody}, true
	case is(":streamGenerateContent") && u.Query().Get("alt") == "sse":
		return dialect{true, "text/event-stream", GeminiSSE, geminiBody}, true
	case is(":streamGenerateContent"):
		return dialect{true, typeJSON, GeminiArray, geminiBody}, true
	case is(":generateContent"):
		return dialect{false, typeJSON, GeminiArray, geminiBody}, true
	case is("/converse-stream"), is("/converse"):
		return dialect{is("-stream"), typeAWS, Converse, converseBody}, true
	case is("/invoke-with-response-stream"), is("/invoke"):
		return dialect{is("-stream"), typeAWS, Invoke, messagesBody}, true
	case is("/api/chat"):
		return dialect{unlessFalse, typeNDJSON, OllamaChat, ollamaChatBody}, true
	case is("/api/generate"):
		return dialect{unlessFalse, typeNDJSON, OllamaGenerate, ollamaGenerateBody}, true
	}
	return dialect{}, false
}

// say answers with a text, a word to an event.
func (d dialect) say(text string, every time.Duration) []Op {
	words := strings.SplitAfter(text, " ")
	if !d.streams {
		return []Op{JSON(http.StatusOK, d.body(words...))}
	}
	return Stream(d.contentType, Play(d.events(words...), every)...)
}

// report is the record of requests as JSON.
func (s *Server) report() string {
	type request struct {
		Conn    int         `json:"conn"`
		Route   string      `json:"route"`
		Method  string      `json:"method"`
		Target  string      `json:"target"`
		Header  http.Header `json:"header"`
		Body    string      `json:"body"`
		At      time.Time   `json:"at"`
		Written int64       `json:"written"`
		Ended   time.Time   `json:"ended,omitzero"`
		Closed  time.Time   `json:"closed,omitzero"`
	}
	requests := []request{}
	for _, r := range s.Requests() {
		requests = append(requests, request{r.Conn, r.Route, r.Method, r.Target, r.Header, string(r.Body), r.At, r.Written, r.Ended, r.Closed})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.MarshalIndent(map[string]any{
		"connections": s.accepted, "total": s.total, "counts": s.counts, "requests": requests,
	}, "", "  ")
	if err != nil {
		panic(err) // strings, numbers and times always have a JSON form
	}
	return string(b)
}
