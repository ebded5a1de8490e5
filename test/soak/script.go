package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

// dialect is how a provider is asked, and what it says to texts.
type dialect struct {
	provider string
	path     string // behind the base URL; %s is the model where it stands there
	content  string // type
	events   func(texts ...string) [][]byte
}

var dialects = []dialect{
	{"openai", "/v1/chat/completions", "text/event-stream", fakellm.Chat},
	{"openai", "/v1/completions", "text/event-stream", fakellm.Completions},
	{"openai", "/v1/responses", "text/event-stream", fakellm.Responses},
	{"anthropic", "/v1/messages", "text/event-stream", fakellm.Messages},
	{"gemini", "/v1beta/models/%s:streamGenerateContent?alt=sse", "text/event-stream", fakellm.GeminiSSE},
	{"gemini", "/v1beta/models/%s:streamGenerateContent", "application/json", fakellm.GeminiArray},
	{"ollama", "/api/chat", "application/x-ndjson", fakellm.OllamaChat},
	{"ollama", "/api/generate", "application/x-ndjson", fakellm.OllamaGenerate},
	{"bedrock", "/model/%s/converse-stream", "application/vnd.amazon.eventstream", fakellm.Converse},
	{"bedrock", "/model/%s/invoke-with-response-stream", "application/vnd.amazon.eventstream", fakellm.Invoke},
}

// script is one call, what the provider says to it, and what must become of it.
type script struct {
	ending  string // its name in the report
	path    string // on the service
	body    string
	headers []string // pairs
	answers [][]fakellm.Op

	text  text   // all that the provider sends of an answer, or would send
	state string // that the run ends in
	head  int    // its head then; below 0: where it was stopped
	stop  string // what stops it: "cancel" asks for it, "leave" is its caller leaving
	again bool   // a repeat of it buys anew
}

// text is bytes in which positions can be found.
type text struct {
	bytes []byte
	ends  []int // of each event
}

func newText(events [][]byte) text {
	t := text{bytes: bytes.Join(events, nil)}
	end := 0
	for _, e := range events {
		end += len(e)
		t.ends = append(t.ends, end)
	}
	return t
}

// offset is where the event at a position begins, which may be the one to come.
func (t text) offset(pos int) int {
	if pos == 0 {
		return 0
	}
	return t.ends[pos-1]
}

// position is how many whole events are before an offset.
func (t text) position(offset int) (pos int) {
	for pos < len(t.ends) && t.ends[pos] <= offset {
		pos++
	}
	return pos
}

// writer writes a script to a call that is already named.
type writer func(rng *rand.Rand, d dialect, s *script)

// endings are all ways in which an answer goes here, each with how often it comes.
var endings = []struct {
	name  string
	often int
	write writer
}{
	{"complete", 30, complete},
	{"slow", 12, slow},
	{"burst", 8, burst},
	{"pieces", 8, pieces},
	{"whole", 8, whole},
	{"big events", 1, big},
	{"cut by the provider", 10, cut},
	{"reset by the provider", 5, reset},
	{"refused", 6, refused},
	{"down once", 2, flaky},
	{"down", 1, down},
	{"cancelled", 8, cancelled},
	{"left", 4, left},
	{"cancelled before content", 2, silent},
}

// invent makes the n-th call. route is what the provider knows it by.
func invent(rng *rand.Rand, route, key string, n int) *script {
	pick := 0
	for _, e := range endings {
		pick += e.often
	}
	pick = rng.IntN(pick)
	i := 0
	for ; pick >= endings[i].often; i++ {
		pick -= endings[i].often
	}
	d := dialects[rng.IntN(len(dialects))]
	const models = 4096 // so many that what a route's failures do to a model is over when it comes again
	model := fmt.Sprintf("m%d", n%models)
	s := &script{
		ending: endings[i].name, path: "/" + d.provider + "/" + route + modelled(d.path, model),
		body:    fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":%q}]}`, model, key),
		headers: []string{"Idempotency-Key", key, "X-Buffer-Heartbeat", "off"},
	}
	endings[i].write(rng, d, s)
	return s
}

// modelled is a dialect's path with the model where it stands there.
func modelled(path, model string) string { return strings.Replace(path, "%s", model, 1) }

// say makes a stream of some of the events and the last steps of it.
func (s *script) say(d dialect, events [][]byte, every time.Duration, last ...fakellm.Op) {
	ops := append([]fakellm.Op{fakellm.Head(d.content)}, fakellm.Play(events, every)...)
	s.answers = [][]fakellm.Op{append(ops, last...)}
	s.text = newText(events)
}

func (s *script) completes() { s.state, s.head = "completed", len(s.text.ends) }

func complete(rng *rand.Rand, d dialect, s *script) {
	s.say(d, d.events(words(rng, 5+rng.IntN(60))...), upTo(rng, 10*time.Millisecond), fakellm.Done())
	s.completes()
}

func slow(rng *rand.Rand, d dialect, s *script) {
	s.say(d, d.events(words(rng, 5+rng.IntN(30))...), upTo(rng, 150*time.Millisecond), fakellm.Done())
	s.completes()
}

func burst(rng *rand.Rand, d dialect, s *script) {
	s.say(d, d.events(words(rng, 200+rng.IntN(600))...), 0, fakellm.Done())
	s.completes()
}

// pieces come in writes that know nothing of events.
func pieces(rng *rand.Rand, d dialect, s *script) {
	events := d.events(words(rng, 5+rng.IntN(30))...)
	s.say(d, events, 0)
	body := fakellm.Cut(s.text.bytes, 1+rng.IntN(500))
	body[0].Wait = upTo(rng, 4*time.Millisecond)
	s.answers = [][]fakellm.Op{fakellm.Stream(d.content, body...)}
	s.completes()
}

// whole is an answer without a stream.
func whole(rng *rand.Rand, _ dialect, s *script) {
	route := strings.Split(s.path, "/")[2]
	s.path = "/openai/" + route + "/v1/chat/completions"
	s.body = strings.Replace(s.body, `"stream":true`, `"stream":false`, 1)
	body := fmt.Sprintf(`{"id":"whole","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`,
		strings.Join(words(rng, 50), ""))
	s.answers = [][]fakellm.Op{{fakellm.Sleep(upTo(rng, 300*time.Millisecond)), fakellm.JSON(200, body)}}
	s.text = newText([][]byte{[]byte(body)})
	s.completes()
}

func big(rng *rand.Rand, d dialect, s *script) {
	var texts []string
	for range 2 + rng.IntN(4) {
		texts = append(texts, strings.Repeat("0123456789abcdef", (64<<10+rng.IntN(960<<10))/16))
	}
	s.say(d, d.events(texts...), 0, fakellm.Done())
	s.completes()
}

// begun is the beginning of an answer: some content, and nothing of its end.
func begun(rng *rand.Rand, d dialect) [][]byte {
	const opening = 4 // events of a dialect before its first content, at most
	texts := words(rng, 10+rng.IntN(30))
	return d.events(texts...)[:opening+1+rng.IntN(len(texts)-opening)]
}

func cut(rng *rand.Rand, d dialect, s *script) {
	s.say(d, begun(rng, d), upTo(rng, 5*time.Millisecond), fakellm.Fin())
	s.state, s.head = "interrupted", len(s.text.ends)
}

func reset(rng *rand.Rand, d dialect, s *script) {
	s.say(d, begun(rng, d), upTo(rng, 5*time.Millisecond), fakellm.RST())
	s.state, s.head = "interrupted", -1 // what was on its way may be gone with the connection
}

func refused(_ *rand.Rand, _ dialect, s *script) {
	body := `{"error":{"message":"no","type":"invalid_request_error","code":null}}`
	s.answers = [][]fakellm.Op{{fakellm.JSON(400, body)}}
	s.text = newText([][]byte{[]byte(body)})
	s.state, s.head = "failed", 1
}

func flaky(rng *rand.Rand, d dialect, s *script) {
	complete(rng, d, s)
	s.answers = [][]fakellm.Op{{unavailable()}, s.answers[0]}
}

func down(_ *rand.Rand, _ dialect, s *script) {
	s.headers = append(s.headers, "X-Buffer-Budget", "attempts=2;elapsed=20s")
	s.answers = [][]fakellm.Op{{unavailable()}}
	s.text = newText([][]byte{s.answers[0][0].Data})
	s.state, s.head, s.again = "failed", -1, true
}

func unavailable() fakellm.Op {
	return fakellm.JSON(503, `{"error":{"message":"down","type":"server_error","code":null}}`)
}

// cancelled begins, never ends, and is asked to stop.
func cancelled(rng *rand.Rand, d dialect, s *script) {
	s.say(d, begun(rng, d), upTo(rng, 20*time.Millisecond), fakellm.Hang(0))
	s.state, s.head, s.stop = "cancelled", -1, "cancel"
}

// left ends because its caller has gone.
func left(rng *rand.Rand, d dialect, s *script) {
	cancelled(rng, d, s)
	s.stop = "leave"
	s.headers = append(s.headers, "X-Buffer-On-Disconnect", []string{"cancel", "cancel-after=1s"}[rng.IntN(2)])
}

// silent says nothing at all, and is asked to stop.
func silent(_ *rand.Rand, _ dialect, s *script) {
	s.answers = [][]fakellm.Op{{fakellm.Hang(0)}}
	s.state, s.head, s.stop, s.again = "failed", 0, "silence", true
}

// words are texts of different lengths that name their place.
func words(rng *rand.Rand, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d%s ", i, strings.Repeat("-", rng.IntN(100)))
	}
	return texts
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
