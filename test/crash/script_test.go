package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

// script is the answer of the provider to one call. It is another one for each call, so that no
// event can be taken for another's.
type script struct {
	events  [][]byte       // all that it would send, an event each
	status  int            // a refusal's is not 200
	single  bool           // the call asks for no stream
	broken  bool           // the provider itself cuts it
	endless bool           // it never ends
	down    string         // the first request gets this under 503 instead
	answers [][]fakellm.Op // how it is played, request by request
}

const contentType = "text/event-stream"

// scripts are the ways in which a provider answers here.
var scripts = []func(*rand.Rand, string) script{steady, steady, burst, pieces, late, stuck, cut, refused, flaky, whole}

// steady comes word by word.
func steady(rng *rand.Rand, key string) script {
	events := chat(rng, key, 5+rng.IntN(60))
	return script{events: events, status: 200, answers: playing(fakellm.Stream(contentType, fakellm.Play(events, upTo(rng, 12))...))}
}

// burst comes as fast as it is taken.
func burst(rng *rand.Rand, key string) script {
	events := chat(rng, key, 100+rng.IntN(500))
	return script{events: events, status: 200, answers: playing(fakellm.Stream(contentType, fakellm.Play(events, 0)...))}
}

// pieces comes in writes that know nothing of events.
func pieces(rng *rand.Rand, key string) script {
	events := chat(rng, key, 5+rng.IntN(20))
	body := fakellm.Cut(bytes.Join(events, nil), 1+rng.IntN(400))
	body[0].Wait = upTo(rng, 4)
	return script{events: events, status: 200, answers: playing(fakellm.Stream(contentType, body...))}
}

// late keeps its caller waiting.
func late(rng *rand.Rand, key string) script {
	s := steady(rng, key)
	s.answers = playing(append([]fakellm.Op{fakellm.Sleep(upTo(rng, 250))}, s.answers[0]...))
	return s
}

// stuck begins and never ends.
func stuck(rng *rand.Rand, key string) script {
	events := chat(rng, key, 5+rng.IntN(20))
	events = events[:len(events)-3] // up to the last word
	ops := append([]fakellm.Op{fakellm.Head(contentType)}, fakellm.Play(events, upTo(rng, 5))...)
	return script{events: events, status: 200, endless: true, answers: playing(append(ops, fakellm.Hang(0)))}
}

// cut breaks off.
func cut(rng *rand.Rand, key string) script {
	s := stuck(rng, key)
	s.broken, s.endless = true, false
	s.answers[0][len(s.answers[0])-1] = fakellm.Fin()
	return s
}

// refused is no answer but an error that no retry heals.
func refused(_ *rand.Rand, key string) script {
	body := fmt.Sprintf(`{"error":{"message":"no %s","type":"invalid_request_error","code":null}}`, key)
	return script{events: [][]byte{[]byte(body)}, status: 400, answers: playing([]fakellm.Op{fakellm.JSON(400, body)})}
}

// flaky is down once.
func flaky(rng *rand.Rand, key string) script {
	s := steady(rng, key)
	s.down = `{"error":{"message":"down","type":"server_error","code":null}}`
	s.answers = playing([]fakellm.Op{fakellm.JSON(503, s.down)}, s.answers[0])
	return s
}

// staysDown is for a provider that is not asked again: what died with its owner has used up the budget.
func (s *script) staysDown() { s.events, s.status = [][]byte{[]byte(s.down)}, 503 }

// whole is an answer without a stream.
func whole(rng *rand.Rand, key string) script {
	body := fmt.Sprintf(`{"id":"chatcmpl-fake","object":"chat.completion","created":1764500000,"model":%q,"choices":[{"index":0,`+
		`"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, key, strings.Join(words(rng, key, 50), ""))
	ops := []fakellm.Op{fakellm.Sleep(upTo(rng, 100)), fakellm.JSON(200, body)}
	return script{events: [][]byte{[]byte(body)}, status: 200, single: true, answers: playing(ops)}
}

func playing(answers ...[]fakellm.Op) [][]fakellm.Op { return answers }

func chat(rng *rand.Rand, key string, n int) [][]byte { return fakellm.Chat(words(rng, key, n)...) }

// words are texts of different lengths that name their call and their place.
func words(rng *rand.Rand, key string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%s.%d%s ", key, i, strings.Repeat("-", rng.IntN(100)))
	}
	return texts
}

func upTo(rng *rand.Rand, ms int) time.Duration {
	return time.Duration(rng.IntN(ms*1000)) * time.Microsecond
}

// first is the bytes of the first n events.
func (s script) first(n int64) []byte {
	if n > int64(len(s.events)) {
		return nil
	}
	return bytes.Join(s.events[:n], nil)
}

// all is all of the script's bytes.
func (s script) all() []byte { return s.first(int64(len(s.events))) }
