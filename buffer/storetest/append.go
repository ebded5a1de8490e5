package storetest

import (
	"bytes"
	"context"
	"net/http"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/provider"
)

var appends = map[string]func(*env){
	"Append_FactsStayUntilReplaced": func(v *env) {
		log, r := v.create(newRun())
		head := http.Header{"X-Request-Id": {"r1"}, "X-Odd": {"caf\xe9", ""}}
		v.check(log.Append(v.ctx(), texts(0, 1), buffer.Streaming, buffer.Closing{
			Status: 200, Header: head, Framing: frame.SSE, ProviderID: "resp_1", Notes: []string{"policy"}}))
		v.check(log.Append(v.ctx(), texts(1, 2), buffer.Streaming, buffer.Closing{Usage: &provider.Usage{InputTokens: 3}}))
		v.check(log.Append(v.ctx(), nil, buffer.Interrupted, buffer.Closing{Reason: buffer.EOFWithoutEnd,
			Notes: []string{"proof_weak"}, Partial: []byte("data: ha"),
			Usage: &provider.Usage{InputTokens: 3, OutputTokens: 9, Raw: []byte(`{"o":9}`)}}))

		got := v.get(r.ID)
		v.wantState(got, buffer.Interrupted, buffer.EOFWithoutEnd)
		if got.Status != 200 || got.Framing != frame.SSE || got.ProviderID != "resp_1" || got.Head != 3 || got.Committed.IsZero() {
			v.Fatalf("facts are %+v", got)
		}
		if diff := cmp.Diff(head, got.Header); diff != "" {
			v.Fatal("header:", diff)
		}
		if diff := cmp.Diff([]string{"policy", "proof_weak"}, got.Notes); diff != "" {
			v.Fatal("notes:", diff)
		}
		if diff := cmp.Diff(&provider.Usage{InputTokens: 3, OutputTokens: 9, Raw: []byte(`{"o":9}`)}, got.Usage); diff != "" {
			v.Fatal("usage:", diff)
		}
		if string(got.Partial) != "data: ha" || got.Bytes != int64(len(text(0)+text(1)+text(2))) {
			v.Fatalf("partial %q, %d bytes: a partial tail is kept and not counted", got.Partial, got.Bytes)
		}
		page, err := v.s.Read(v.ctx(), r.ID, 3, 1)
		v.check(err)
		got.Attempts = nil
		if diff := cmp.Diff(got, page.Run); diff != "" {
			v.Fatal("Read and Get differ:", diff)
		}
	},

	"Append_EndsInOneCommitFromIdle": func(v *env) {
		log, r := v.create(newRun())
		v.append(log, 0, 2, buffer.Completed)
		v.wantState(v.get(r.ID), buffer.Completed, "")
		v.wantTexts(r.ID, 2)
	},

	"Append_FailedKeepsItsBody": func(v *env) {
		log, r := v.create(newRun())
		v.check(log.Append(v.ctx(), texts(0, 1), buffer.Failed, buffer.Closing{Status: 400, Reason: buffer.Refused}))
		got := v.get(r.ID)
		v.wantState(got, buffer.Failed, buffer.Refused)
		if !got.Committed.IsZero() || got.Status != 400 {
			v.Fatalf("committed %s, status %d", got.Committed, got.Status)
		}
		v.wantTexts(r.ID, 1)
	},

	"Append_RefusesImpossibleTransitions": func(v *env) {
		states := []buffer.State{"", "odd", buffer.Idle, buffer.Streaming, buffer.Completed, buffer.Interrupted,
			buffer.Cancelled, buffer.Failed, buffer.Released}
		for _, from := range []buffer.State{buffer.Idle, buffer.Streaming} {
			for _, to := range states {
				log, r := v.create(newRun())
				v.append(log, 0, 1, from)
				err := log.Append(v.ctx(), texts(1, 1), to, buffer.Closing{})
				if (err == nil) != from.CanBecome(to) {
					v.Fatalf("%s to %q: %v", from, to, err)
				}
				if err != nil {
					v.wantTexts(r.ID, 1)
				}
			}
		}
	},

	"Append_RefusesACompletedRunWithAReason": func(v *env) {
		log, r := v.create(newRun())
		if log.Append(v.ctx(), texts(0, 1), buffer.Completed, buffer.Closing{Reason: buffer.Reset}) == nil {
			v.Fatal("a broken answer looks whole")
		}
		v.wantTexts(r.ID, 0)
	},

	"Append_LargeAndEmptyChunks": func(v *env) {
		log, r := v.create(newRun())
		large := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
		v.check(log.Append(v.ctx(), [][]byte{nil, large, {}, []byte("x"), large}, buffer.Completed, buffer.Closing{}))
		data := v.readAll(r.ID, 0, 1<<20)
		if len(data) != 5 || data[0] != "" || data[1] != string(large) || data[2] != "" || data[3] != "x" || data[4] != string(large) {
			v.Fatal("chunks are not what was appended")
		}
	},

	"Append_ManyRunsAtOnce": func(v *env) {
		const commits = 5
		runs := v.often(200)
		var wg sync.WaitGroup
		for range runs {
			wg.Go(func() {
				log, r, err := v.s.Create(v.ctx(), newRun())
				if err == nil {
					err = log.Attempt(v.ctx(), buffer.Attempt{N: 1})
				}
				for i := range commits {
					if err == nil {
						err = log.Append(v.ctx(), texts(i*3, 3), buffer.Streaming, buffer.Closing{})
					}
				}
				if err != nil {
					v.Error(err)
					return
				}
				page, err := v.s.Read(v.ctx(), r.ID, 0, 1<<20)
				if err != nil || len(page.Chunks) != 3*commits {
					v.Errorf("%d chunks, error %v", len(page.Chunks), err)
				}
			})
		}
		wg.Wait()
	},

	"Append_ACallerWhoHasLeftIsNotWaitedFor": func(v *env) {
		log, r := v.create(newRun())
		ctx, leave := context.WithCancel(v.ctx())
		leave()
		if err := log.Append(ctx, texts(0, 1), buffer.Streaming, buffer.Closing{}); err == nil {
			v.Fatal("no error for a context that has ended")
		}
		v.wantTexts(r.ID, 0)
	},

	"Probe_IsAWriteThatMeansNothing": func(v *env) {
		log, r := v.create(newRun())
		v.append(log, 0, 2, buffer.Streaming)
		v.check(v.s.Probe(v.ctx()))
		v.wantTexts(r.ID, 2)
		v.check(v.s.Close())
		v.want(v.s.Probe(v.ctx()), buffer.ErrClosed)
	},

	"Close_RefusesLaterCalls": func(v *env) {
		log, r := v.create(newRun())
		changed, stop := v.s.Watch(r.ID)
		defer stop()
		v.check(v.s.Close())
		v.ring(changed)
		_, _, err := v.s.Create(v.ctx(), newRun())
		v.want(err, buffer.ErrClosed)
		v.want(log.Append(v.ctx(), nil, buffer.Streaming, buffer.Closing{}), buffer.ErrClosed)
		_, err = v.s.Read(v.ctx(), r.ID, 0, 1)
		v.want(err, buffer.ErrClosed)
		_, err = v.s.Get(v.ctx(), r.ID)
		v.want(err, buffer.ErrClosed)
		for _, err := range v.s.List(v.ctx(), buffer.Filter{}) {
			v.want(err, buffer.ErrClosed)
		}
		v.check(v.s.Close())
	},
}
