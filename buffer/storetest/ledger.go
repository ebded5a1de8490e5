package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// at is a time as the ledger keeps it.
var at = time.UnixMilli(1_790_000_000_123).UTC()

// whole is an attempt with every field set.
func whole(n int) buffer.Attempt {
	return buffer.Attempt{N: n, Route: "main", Model: "m", Sent: at, Ended: at.Add(time.Second), Status: 503,
		RequestID: "req_1", Class: policy.Transient, SentState: policy.WasRefused, Action: policy.Retry,
		Why: "overloaded", Hint: 1500 * time.Millisecond, Billed: policy.BilledNo, ReusedConn: true,
		RequestBytes: 10, PreambleBytes: 20, ContentBytes: 30, Usage: &provider.Usage{InputTokens: 1, Raw: []byte("{}")}}
}

func open(n int) buffer.Attempt { return buffer.Attempt{N: n, Sent: at, Billed: policy.BilledUnknown} }

func (v *env) wantLedger(r buffer.Run, want ...buffer.Attempt) {
	v.Helper()
	if diff := cmp.Diff(want, r.Attempts); diff != "" {
		v.Fatal("ledger:", diff)
	}
	if r.Sends != len(want) {
		v.Fatalf("run says %d sends, the ledger has %d", r.Sends, len(want))
	}
}

var ledgers = map[string]func(*env){
	"Attempt_IsOpenedAndCompleted": func(v *env) {
		log, r, err := v.s.Create(v.ctx(), newRun())
		v.check(err)
		v.check(log.Attempt(v.ctx(), open(1)))
		v.wantLedger(v.get(r.ID), open(1))
		v.check(log.Attempt(v.ctx(), whole(1)))
		v.check(log.Attempt(v.ctx(), open(2)))
		v.wantLedger(v.get(r.ID), whole(1), open(2))
		page, err := v.s.Read(v.ctx(), r.ID, 0, 1)
		v.check(err)
		if page.Run.Sends != 2 {
			v.Fatalf("run says %d sends", page.Run.Sends)
		}
		if err := log.Attempt(v.ctx(), open(0)); err == nil {
			v.Fatal("attempt 0 was taken")
		}
	},

	"Attempt_IsOpenedWithTheClaim": func(v *env) {
		r := newRun()
		r.Attempts = []buffer.Attempt{{N: 1}}
		log, created, err := v.s.Create(v.ctx(), r)
		v.check(err)
		if created.Sends != 1 {
			v.Fatalf("created run says %d sends", created.Sends)
		}
		v.wantLedger(v.get(r.ID), buffer.Attempt{N: 1, Sent: created.Created, Billed: policy.BilledUnknown})
		v.check(log.Attempt(v.ctx(), whole(1)))
		v.check(log.Attempt(v.ctx(), open(2)))
		v.wantLedger(v.get(r.ID), whole(1), open(2))

		refused := newRun()
		refused.Attempts = []buffer.Attempt{open(0)}
		if _, _, err := v.s.Create(v.ctx(), refused); err == nil {
			v.Fatal("attempt 0 was taken")
		}
		v.crash()
		_, err = v.s.Recover(v.ctx())
		v.check(err)
		lost := open(2)
		lost.Ended = v.get(r.ID).Ended
		v.wantLedger(v.get(r.ID), whole(1), lost)
	},

	"Attempt_IsCompletedWithTheLastChunks": func(v *env) {
		log, r, err := v.s.Create(v.ctx(), newRun())
		v.check(err)
		v.check(log.Attempt(v.ctx(), open(1)))
		last := whole(1)
		v.check(log.Append(v.ctx(), texts(0, 2), buffer.Completed, buffer.Closing{Attempt: &last}))
		v.wantLedger(v.get(r.ID), last)
	},

	"Attempt_OfAnEndedRun": func(v *env) {
		log, r, err := v.s.Create(v.ctx(), newRun())
		v.check(err)
		v.check(log.Attempt(v.ctx(), open(1)))
		sealed, err := v.s.Seal(v.ctx(), r.ID, buffer.Failed, buffer.CancelAsked)
		v.check(err)
		closed := open(1)
		closed.Ended = sealed.Ended
		v.wantLedger(v.get(r.ID), closed)
		v.want(log.Attempt(v.ctx(), open(1)), buffer.ErrSealed)
		v.want(log.Attempt(v.ctx(), open(2)), buffer.ErrSealed)
		v.want(log.Attempt(v.ctx(), whole(2)), buffer.ErrSealed)
		v.check(log.Attempt(v.ctx(), whole(1)))
		v.wantLedger(v.get(r.ID), whole(1))
	},

	"Attempt_OpenAtACrashIsUnknown": func(v *env) {
		log, r, err := v.s.Create(v.ctx(), newRun())
		v.check(err)
		v.check(log.Attempt(v.ctx(), whole(1)))
		v.check(log.Attempt(v.ctx(), open(2)))
		v.crash()
		_, err = v.s.Recover(v.ctx())
		v.check(err)
		got := v.get(r.ID)
		v.wantState(got, buffer.Failed, buffer.OwnerLost)
		lost := open(2)
		lost.Ended = got.Ended
		v.wantLedger(got, whole(1), lost)
	},
}
