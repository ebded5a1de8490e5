package buffer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// conclude does what the policy says about an attempt that ended: close the run, or have another
// attempt made after a wait.
func (d *drain) conclude(ctx context.Context, e *ending) (wait time.Duration, again bool) {
	e.row.Ended = time.Now()
	if s, ok := errors.AsType[stopped](e.err); ok {
		d.closeStopped(ctx, e, s)
		return 0, false
	}
	v := policy.Classify(e.evidence())
	if d.way.onPrimary() || d.told == nil {
		d.told = e.refusal(v)
	}
	if !e.ours { // how much patience a caller has says nothing about the route
		d.circuit(outcome(v))
	}
	if e.verdict.Usage != nil {
		d.output += e.verdict.Usage.OutputTokens
	}
	if v.MaybeBilled() || e.delivered { // what it may have cost is gone before the next step is weighed
		d.way.spent += d.way.route.Price.Cost(d.way.needs)
	}
	next := policy.Decide(d.situation(v, e.row.N))
	wait = max(next.Delay, policy.Backoff(e.row.N, rand.Float64))
	if next.Action == policy.Retry && wait >= d.totalLeft() {
		next.Action, next.Why = policy.Fail, "the wait would reach beyond the run's total time"
	}
	e.row.Class, e.row.SentState, e.row.Hint = v.Class, v.Sent, v.Hint
	e.row.Action, e.row.Why, e.row.Billed = next.Action, next.Why+e.cause(), next.Billed
	d.zap.Info("attempt ended", zap.Int("n", e.row.N), zap.String("route", e.row.Route), zap.Int("status", e.row.Status),
		zap.String("class", string(v.Class)), zap.String("action", string(next.Action)), zap.String("why", e.row.Why))

	switch next.Action {
	case policy.Complete:
		d.close(ctx, e.pending, Completed, e.closing())
	case policy.Interrupt:
		c := e.closing()
		c.Reason = e.cut()
		d.close(ctx, e.pending, Interrupted, c)
	case policy.Retry:
		d.phase.set(phaseRetrying)
		return wait, d.record(ctx, &e.row)
	case policy.Fallback:
		d.phase.set(phaseFallback)
		if err := d.way.fallBack(d.started.Dialect, d.started.Model); err == nil {
			return 0, d.record(ctx, &e.row)
		}
		e.row.Action, e.row.Why = policy.Fail, "the call's body cannot name another model"
		d.fail(ctx, e, next)
	default:
		d.fail(ctx, e, next)
	}
	return 0, false
}

// record commits a row of the ledger. It is false where the log does not take it: then the run has
// ended.
func (d *drain) record(ctx context.Context, row *Attempt) bool {
	done := d.rs.writes.begin()
	err := d.log.Attempt(context.WithoutCancel(ctx), *row)
	done()
	if err != nil {
		d.unstored(ctx, err)
		return false
	}
	d.note(*row)
	return true
}

// closeStopped ends a run at somebody's word. Content that was received is kept; without content
// nothing was shown, so the run has failed.
func (d *drain) closeStopped(ctx context.Context, e *ending, s stopped) {
	e.row.Class, e.row.SentState, e.row.Action = policy.None, policy.SentUnknown, policy.Fail
	e.row.Why = "stopped: " + string(s.Reason)
	if !e.delivered {
		d.close(ctx, nil, Failed, Closing{Reason: s.Reason, Attempt: &e.row})
		return
	}
	e.row.Action, e.row.Billed = policy.Interrupt, policy.BilledYes
	c := e.closing()
	c.Reason = s.Reason
	d.close(ctx, e.pending, s.State, c)
}

// fail stores the primary route's last failure as the run's answer.
func (d *drain) fail(ctx context.Context, e *ending, next policy.Decision) {
	told := *d.told
	told.closing.Attempt = &e.row
	if next.Budget && d.started.Budget.Spent+e.row.N > 1 && told.closing.Reason != Silent && told.closing.Reason != Limit {
		told.closing.Reason = BudgetSpent
	}
	d.answerWith(ctx, &told)
}

// answerWith ends the run with a failure as its answer.
func (d *drain) answerWith(ctx context.Context, r *refusal) {
	var body [][]byte
	if len(r.body) > 0 {
		body = [][]byte{r.body}
	}
	d.close(ctx, body, Failed, r.closing)
}

// refusal is a failure as a caller is told of it: the provider's status, headers and body where it
// gave any.
type refusal struct {
	closing Closing
	body    []byte
}

func (e *ending) refusal(v policy.Verdict) *refusal {
	r := &refusal{closing: Closing{Reason: e.refused()}}
	c := &r.closing
	e.note(c)
	switch {
	case e.head == nil:
		c.Status = policy.FailStatus(v)
	case e.head.success(): // an error inside a 200: its own JSON under the status that it means
		c.Status = policy.FailStatus(v)
		if len(e.verdict.Failure) == 0 {
			break
		}
		r.body = e.verdict.Failure
		c.Header, c.Framing = provider.EndToEnd(e.head.Header), frame.Whole
		if json.Valid(r.body) { // else it is a page, and was announced as one
			c.Header.Set("Content-Type", "application/json")
		}
	case e.head.Status >= 300 && e.head.Status < 400: // no redirect is followed, by us or by the caller
		c.Status = http.StatusBadGateway
	case e.head.Status < 200: // no final status at all
		c.Status = http.StatusBadGateway
	default:
		c.Status, c.Header, c.Framing = e.head.Status, provider.EndToEnd(e.head.Header), frame.Whole
		r.body = e.body
	}
	return r
}

// maxCause bounds what a ledger row says of a broken connection, in bytes.
const maxCause = 200

// cause is the limit that was gone over, or why no connection came about, for people; empty for
// anything else, since what net/http says of an answer may quote it.
func (e *ending) cause() string {
	if o := e.over(); o != "" {
		return ": " + o.Error()
	}
	dial, isDial := errors.AsType[*net.OpError](e.err)
	dns, isDNS := errors.AsType[*net.DNSError](e.err)
	switch {
	case e.head != nil:
		return ""
	case isDNS:
		return ": " + dns.Error()[:min(len(dns.Error()), maxCause)]
	case isDial && dial.Op == "dial":
		return ": " + dial.Error()[:min(len(dial.Error()), maxCause)]
	}
	return ""
}

// closing is what the last commit of a run with content says.
func (e *ending) closing() Closing {
	c := e.opening
	if e.head == nil {
		return c
	}
	c.ProviderID = e.verdict.ProviderID
	c.Notes = e.verdict.Notes
	c.Usage = e.verdict.Usage
	c.Partial = e.partial
	c.Attempt = &e.row
	e.note(&c)
	return c
}

// cut is why an answer that had begun is not whole.
func (e *ending) cut() Reason {
	switch {
	case len(e.verdict.Failure) > 0:
		return ProviderError
	case e.over() != "":
		return Limit
	case e.alarm != noAlarm:
		return Stalled
	case e.err == io.EOF:
		return EOFWithoutEnd
	}
	return Reset
}

// refused is why a run without content ended.
func (e *ending) refused() Reason {
	switch e.alarm {
	case alarmHeaders, alarmFirstContent:
		return Silent
	case alarmByteIdle:
		return Stalled
	}
	switch {
	case e.over() != "":
		return Limit
	case e.head == nil:
		return Reset
	case !e.head.success(), len(e.verdict.Failure) > 0:
		return Refused
	case e.err == io.EOF:
		return EOFWithoutEnd
	}
	return Reset
}

// evidence is what the policy is told of the attempt.
func (e *ending) evidence() policy.Evidence {
	ev := policy.Evidence{
		Status:      e.row.Status,
		Transport:   e.transport(),
		RequestSent: e.row.RequestBytes > 0 || e.head != nil,
		ToolStarted: e.verdict.ToolStarted,
		Proven:      e.verdict.Proven,
		Refused:     e.verdict.Refused,
		Delivered:   e.delivered,
	}
	if e.head != nil {
		ev.Header = e.head.dated()
		ev.Body = e.body
		if e.head.success() {
			ev.Body = e.verdict.FailureChunk
		}
	}
	return ev
}
