package buffer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// The clocks of docs/providers.md, section 5. Each row is an answer that makes one clock run out, and
// when that must be, counted from the send. The provider notices at that very moment.

// asks are the calls whose clocks differ by default.
type asks struct {
	dialect provider.Dialect
	model   string
	whole   bool // no stream is asked for
}

func (a asks) of(c buffer.Call, set provider.Clocks) buffer.Call {
	c.Route.Clocks = set
	if a.dialect != "" {
		c.Run.Dialect = a.dialect
	}
	if a.model != "" {
		c.Run.Model = a.model
	}
	c.Run.Stream = !a.whole
	return c
}

func TestClock_BeforeContentMovesOn(t *testing.T) {
	t.Parallel()
	const second = time.Second
	silent, stalled := buffer.Silent, buffer.Stalled
	thinks := asks{model: "o3-mini"}
	reads := []fakellm.Op{hang}
	comments := answer(beats(1000, 15*second, comment))
	quiet := answer(fakellm.Bytes(role), hang)

	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			asks   asks
			set    provider.Clocks
			answer []fakellm.Op
			at     time.Duration
			reason buffer.Reason
			status int
		}{
			{"headers", asks{}, provider.Clocks{}, reads, 60 * second, silent, 504},
			{"headers, configured", asks{}, provider.Clocks{Headers: 7 * second}, reads, 7 * second, silent, 504},
			{"headers, Gemini", asks{dialect: provider.Gemini}, provider.Clocks{}, reads, 300 * second, silent, 504},
			{"headers, local server", asks{dialect: provider.Ollama}, provider.Clocks{}, reads, 300 * second, silent, 504},
			{"headers, Gemini, configured", asks{dialect: provider.Gemini}, provider.Clocks{Headers: 7 * second}, reads, 7 * second, silent, 504},
			{"headers, off", asks{}, provider.Clocks{Headers: -1}, reads, 120 * second, silent, 504},
			{"headers, a thinking model", thinks, provider.Clocks{}, reads, 60 * second, silent, 504},
			{"headers, no stream", asks{whole: true}, provider.Clocks{}, reads, 600 * second, silent, 504},
			{"first content", asks{}, provider.Clocks{}, comments, 120 * second, silent, 504},
			{"first content, after nothing but a head", asks{}, provider.Clocks{ByteIdle: -1}, answer(hang), 120 * second, silent, 504},
			{"first content, configured", asks{}, provider.Clocks{FirstContent: 9 * second}, comments, 9 * second, silent, 504},
			{"first content, a thinking model", thinks, provider.Clocks{}, comments, 600 * second, silent, 504},
			{"first content, late headers do not move it", asks{}, provider.Clocks{}, append([]fakellm.Op{fakellm.Sleep(59 * second)}, comments...), 120 * second, silent, 504},
			{"first content, an empty delta is none", asks{}, provider.Clocks{}, answer(beats(1000, 15*second, role)), 120 * second, silent, 504},
			{"byte idle", thinks, provider.Clocks{}, quiet, 120 * second, stalled, 502},
			{"byte idle, configured", asks{}, provider.Clocks{ByteIdle: 5 * second}, quiet, 5 * second, stalled, 502},
			{"byte idle, from the head", asks{}, provider.Clocks{ByteIdle: 5 * second}, append([]fakellm.Op{fakellm.Sleep(30 * second)}, answer(hang)...), 35 * second, stalled, 502},
			{"byte idle, a comment resets it", thinks, provider.Clocks{}, answer(beats(1, 100*second, comment), hang), 220 * second, stalled, 502},
			{"byte idle, so does half an event", thinks, provider.Clocks{}, answer(beats(3, 100*second, []byte("da")), hang), 420 * second, stalled, 502},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answer, whole("a ", "b "), row.answer)
			run := r.do(row.asks.of(r.call(), row.set))
			if len(run.Attempts) < 2 {
				r.Fatalf("%s %s: %+v", run.State, run.Reason, run.Attempts)
			}
			r.wantFired(run.Attempts[0], row.at)
			if got := entries(run)[0]; got != (entry{"primary", policy.Transient, policy.Retry, policy.SentUnknown, policy.BilledUnknown}) {
				r.Errorf("the row of the first send: %+v", got)
			}

			last := row.asks.of(r.call(), row.set)
			last.Run.Budget.Attempts = 1
			run = r.do(last)
			r.wantState(run, buffer.Failed, row.reason)
			r.wantFired(run.Attempts[0], row.at)
			r.wantLedger(run, entry{"primary", policy.Transient, policy.Fail, policy.SentUnknown, policy.BilledUnknown})
			if run.Status != row.status || run.Head != 0 {
				r.Errorf("status %d, head %d; want %d and an empty log", run.Status, run.Head, row.status)
			}
			r.wantSends(3)
		}
	})
}

// wantFired checks that an attempt ended so long after it was sent, and that the provider was let go
// at that moment.
func (r *rig) wantFired(a buffer.Attempt, after time.Duration) {
	r.Helper()
	if got := a.Ended.Sub(a.Sent); got != after {
		r.Errorf("the clock ran out after %s, want %s", got, after)
	}
	synctest.Wait() // the provider notices
	for _, q := range r.sends() {
		if q.At.Equal(a.Sent) && !q.Ended.Equal(a.Ended) {
			r.Errorf("the provider was let go at %s, want %s", q.Ended, a.Ended)
		}
	}
}

func TestClock_AfterContentInterrupts(t *testing.T) {
	t.Parallel()
	const second = time.Second
	stalled := buffer.Stalled
	content := fakellm.Bytes(token)

	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			set    provider.Clocks
			answer []fakellm.Op
			at     time.Duration
			reason buffer.Reason
		}{
			{"byte idle", provider.Clocks{}, answer(content, hang), 120 * second, stalled},
			{"byte idle, configured", provider.Clocks{ByteIdle: 5 * second}, answer(content, hang), 5 * second, stalled},
			{"byte idle, a comment resets it", provider.Clocks{}, answer(content, beats(1, 100*second, comment), hang), 220 * second, stalled},
			{"byte idle, half an event resets it", provider.Clocks{}, answer(content, beats(1, 100*second, []byte("data:")), hang), 220 * second, stalled},
			{"content gap, comments keep coming", provider.Clocks{}, answer(content, beats(1000, 15*second, comment)), 300 * second, stalled},
			{"content gap, empty deltas keep coming", provider.Clocks{}, answer(content, beats(1000, 15*second, role)), 300 * second, stalled},
			{"content gap, bytes without an end keep coming", provider.Clocks{}, answer(content, beats(1000, 15*second, []byte("x"))), 300 * second, stalled},
			{"content gap, configured", provider.Clocks{ContentGap: 20 * second}, answer(content, beats(1000, 15*second, comment)), 20 * second, stalled},
			{"content gap, content resets it", provider.Clocks{ByteIdle: -1}, answer(content, beats(2, 290*second, token), hang), 880 * second, stalled},
			{"content gap, idle off", provider.Clocks{ByteIdle: -1}, answer(content, hang), 300 * second, stalled},
			{"total", provider.Clocks{Total: 42 * second}, answer(beats(1000, 3*second, token)), 42 * second, buffer.Limit},
			{"total, content took the finish back", provider.Clocks{Total: 42 * second, FinishGrace: 3 * second},
				answer(content, fakellm.Sleep(41*second), fakellm.Bytes(finish), content, hang), 42 * second, buffer.Limit},
			{"grace after the provider's own error", provider.Clocks{},
				answer(content, fakellm.Sleep(second), fakellm.Data("data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}\n\n"), hang), 3 * second, buffer.ProviderError},
			{"grace after an error, content does not extend it", provider.Clocks{},
				answer(content, fakellm.Sleep(second), fakellm.Data("data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}\n\n"), beats(100, second/2, token)), 3 * second, buffer.ProviderError},
			{"content disarms the grace", provider.Clocks{}, answer(content, fakellm.Bytes(finish), beats(1, second, token), hang), 121 * second, stalled},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answer, whole("bought twice"))
			r.fake.Script("fallback", whole("bought twice"))
			c := asks{}.of(r.call(), row.set)
			c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
			run := r.do(c)
			r.wantState(run, buffer.Interrupted, row.reason)
			r.wantFired(run.Attempts[0], row.at)
			r.wantLedger(run, entry{"primary", policy.Transient, policy.Interrupt, policy.SentUnknown, policy.BilledYes})
			if got := run.Ended.Sub(run.Created); got != row.at {
				r.Errorf("the run ended after %s, want %s", got, row.at)
			}
			r.wantSends(1)
		}
	})
}

func TestClock_FinishGraceCompletes(t *testing.T) {
	t.Parallel()
	const second = time.Second
	content, end := fakellm.Bytes(token), fakellm.Bytes(finish)

	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			set    provider.Clocks
			answer []fakellm.Op
			at     time.Duration
		}{
			{"silence", provider.Clocks{}, answer(content, end, hang), 2 * second},
			{"configured", provider.Clocks{FinishGrace: 7 * second}, answer(content, end, hang), 7 * second},
			{"comments do not extend it", provider.Clocks{}, answer(content, end, beats(100, second/2, comment)), 2 * second},
			{"usage does not extend it", provider.Clocks{}, answer(content, end, beats(1, 3*second/2, figures), hang), 2 * second},
			{"nor a second finish", provider.Clocks{}, answer(content, end, beats(100, second/2, finish)), 2 * second},
			{"nor half an event", provider.Clocks{}, answer(content, end, beats(100, second/2, []byte("x"))), 2 * second},
			{"content disarms it until the next finish", provider.Clocks{}, answer(content, end, beats(1, second, token), beats(1, 5*second, finish), hang), 8 * second},
			{"after the last word, on an open connection", provider.Clocks{}, answer(content, end, fakellm.Bytes(figures), fakellm.Bytes(done), hang), 2 * second},
			{"an answer without content", provider.Clocks{}, answer(fakellm.Bytes(role), end, hang), 2 * second},
			{"longer clocks do not matter", provider.Clocks{ByteIdle: second, ContentGap: second}, answer(content, end, hang), 2 * second},
			{"the end of the connection is earlier", provider.Clocks{}, answer(content, end, fakellm.Sleep(second), fakellm.Fin()), second},
			{"a total in the grace", provider.Clocks{Total: second}, answer(content, end, hang), second},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answer, whole("bought twice"))
			run := r.do(asks{}.of(r.call(), row.set))
			r.wantState(run, buffer.Completed, "")
			if got := run.Ended.Sub(run.Created); got != row.at {
				r.Errorf("the run ended after %s, want %s", got, row.at)
			}
			r.wantLedger(run, entry{"primary", policy.None, policy.Complete, policy.SentUnknown, policy.BilledYes})
			r.wantSends(1)
		}
	})
}

// The proof of an end is there at once; only its commit waits for the end of the body, and not for long.
func TestClock_LastChunksAreReadableInTheGrace(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", answer(fakellm.Bytes(token), fakellm.Bytes(finish), fakellm.Bytes(done), hang))
		id := r.start(r.call())
		run := r.until(id, func(run buffer.Run) bool { return run.Head == 3 })
		if got := time.Since(run.Created); run.State != buffer.Streaming || got > 100*time.Millisecond {
			r.Errorf("run is %s, its last chunk was readable after %s", run.State, got)
		}
		r.wantState(r.ended(id), buffer.Completed, "")
	})
}

// Long and quiet is not dead: these answers must live.
func TestClock_LongAnswersLive(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			asks   asks
			answer []fakellm.Op
			lasts  time.Duration
		}{
			{"ten minutes of thought, with comments", asks{model: "o3-mini"}, answer(beats(39, 15*time.Second, comment), beats(1, 5*time.Second, token), fakellm.Bytes(done), fakellm.Done()), 590 * time.Second},
			{"a late head and a later word", asks{}, append([]fakellm.Op{fakellm.Sleep(59 * time.Second)}, answer(fakellm.Sleep(60*time.Second), fakellm.Bytes(token), fakellm.Bytes(done), fakellm.Done())...), 119 * time.Second},
			{"minutes of silence before a whole answer", asks{whole: true}, []fakellm.Op{fakellm.Sleep(590 * time.Second), fakellm.JSON(200, chatAnswer)}, 590 * time.Second},
			{"minutes before Gemini's head", asks{dialect: provider.Gemini}, append([]fakellm.Op{fakellm.Sleep(290 * time.Second)}, fakellm.Stream(eventStream, fakellm.Play(fakellm.GeminiSSE("a "), 0)...)...), 290 * time.Second},
			{"twenty-five minutes of words", asks{}, answer(beats(100, 15*time.Second, token), fakellm.Bytes(finish), fakellm.Bytes(done), fakellm.Done()), 25 * time.Minute},
			{"two hours of words", asks{}, answer(beats(72, 100*time.Second, token), fakellm.Bytes(finish), fakellm.Bytes(done), fakellm.Done()), 2 * time.Hour},
			{"thought between words, with comments", asks{}, answer(fakellm.Bytes(token), beats(19, 15*time.Second, comment), fakellm.Bytes(token), beats(19, 15*time.Second, comment), fakellm.Bytes(token), fakellm.Bytes(done), fakellm.Done()), 570 * time.Second},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answer)
			c := row.asks.of(r.call(), provider.Clocks{})
			c.Run.Budget.Elapsed = 5 * time.Minute // it bounds the deciding, not the answer
			run := r.do(c)
			r.wantState(run, buffer.Completed, "")
			if got := run.Ended.Sub(run.Created); got != row.lasts {
				r.Errorf("the run ended after %s, want %s", got, row.lasts)
			}
			r.wantSends(1)
		}
	})
}

const chatAnswer = `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`
