package storetest

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

var seals = map[string]func(*env){
	"Seal_StopsTheLog": func(v *env) {
		log, r := v.create(newRun())
		v.append(log, 0, 2, buffer.Streaming)
		sealed, err := v.s.Seal(v.ctx(), r.ID, buffer.Cancelled, buffer.CancelAsked)
		v.check(err)
		v.wantState(sealed, buffer.Cancelled, buffer.CancelAsked)
		v.want(log.Append(v.ctx(), texts(2, 1), buffer.Streaming, buffer.Closing{}), buffer.ErrSealed)
		v.want(log.Append(v.ctx(), nil, buffer.Cancelled, buffer.Closing{}), buffer.ErrSealed)
		v.wantTexts(r.ID, 2)
		again, err := v.s.Seal(v.ctx(), r.ID, buffer.Interrupted, buffer.Shutdown)
		v.check(err)
		if diff := cmp.Diff(sealed, again); diff != "" {
			v.Fatal("sealing again changed the run:", diff)
		}
	},

	"Seal_WithoutContentIsFailed": func(v *env) {
		for _, to := range []buffer.State{buffer.Interrupted, buffer.Cancelled, buffer.Failed} {
			_, r := v.create(newRun())
			sealed, err := v.s.Seal(v.ctx(), r.ID, to, buffer.Shutdown)
			v.check(err)
			v.wantState(sealed, buffer.Failed, buffer.Shutdown)
		}
	},

	"Seal_CannotComplete": func(v *env) {
		log, r := v.create(newRun())
		v.append(log, 0, 1, buffer.Streaming)
		for _, to := range []buffer.State{buffer.Completed, buffer.Streaming, buffer.Released, buffer.Failed, "odd"} {
			if _, err := v.s.Seal(v.ctx(), r.ID, to, ""); err == nil {
				v.Fatalf("sealed as %q", to)
			}
		}
		v.append(log, 1, 1, buffer.Completed)
		_, err := v.s.Seal(v.ctx(), ulid.Make(), buffer.Failed, "")
		v.want(err, buffer.ErrNotFound)
	},

	"Seal_AgainstAppend": func(v *env) {
		seed := rand.Uint64()
		v.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		var wg sync.WaitGroup
		for range v.often(100) {
			pauses := rnd.IntN(300)
			wg.Go(func() { v.sealAgainstAppend(pauses) })
		}
		wg.Wait()
	},

	"Zombie_CannotAppend": func(v *env) {
		log, r := v.create(newRun())
		v.append(log, 0, 3, buffer.Streaming)
		idle, i := v.create(newRun())
		zombie := v.crash()
		n, err := v.s.Recover(v.ctx())
		v.check(err)
		if n != 2 {
			v.Fatalf("recovered %d runs, want 2", n)
		}
		v.want(log.Append(v.ctx(), texts(3, 1), buffer.Streaming, buffer.Closing{}), buffer.ErrSealed)
		v.want(log.Attempt(v.ctx(), buffer.Attempt{N: 2}), buffer.ErrSealed)
		v.want(idle.Attempt(v.ctx(), buffer.Attempt{N: 2}), buffer.ErrSealed)
		v.want(idle.Append(v.ctx(), nil, buffer.Failed, buffer.Closing{Reason: buffer.Silent}), buffer.ErrSealed)
		v.wantState(v.get(r.ID), buffer.Interrupted, buffer.OwnerLost)
		v.wantState(v.get(i.ID), buffer.Failed, buffer.OwnerLost)
		v.wantTexts(r.ID, 3)

		sealed, err := zombie.Seal(v.ctx(), r.ID, buffer.Cancelled, buffer.CancelAsked)
		v.check(err)
		v.wantState(sealed, buffer.Interrupted, buffer.OwnerLost)
		page, err := zombie.Read(v.ctx(), r.ID, 3, 1)
		v.check(err)
		v.wantState(page.Run, buffer.Interrupted, buffer.OwnerLost)
	},

	"Recover_LeavesOwnRunsAlone": func(v *env) {
		log, r := v.create(newRun())
		n, err := v.s.Recover(v.ctx())
		v.check(err)
		if n != 0 {
			v.Fatalf("recovered %d runs, want none", n)
		}
		v.append(log, 0, 1, buffer.Completed)
		v.wantTexts(r.ID, 1)
	},

	"Recover_AfterACleanClose": func(v *env) {
		log, r := v.create(newRun())
		v.append(log, 0, 3, buffer.Streaming)
		done := v.ended(newRun(), 2)
		v.restart()
		v.wantTexts(r.ID, 3)
		v.wantState(v.get(r.ID), buffer.Streaming, "")
		_, err := v.s.Recover(v.ctx())
		v.check(err)
		v.wantState(v.get(r.ID), buffer.Interrupted, buffer.OwnerLost)
		v.wantTexts(r.ID, 3)
		v.wantState(v.get(done.ID), buffer.Completed, "")
		v.wantTexts(done.ID, 2)
	},
}

// sealAgainstAppend lets one goroutine append until it is refused, and another seal at some time.
func (v *env) sealAgainstAppend(pauses int) {
	log, r, err := v.s.Create(v.ctx(), newRun())
	if err != nil {
		v.Error(err)
		return
	}
	if err := log.Attempt(v.ctx(), buffer.Attempt{N: 1}); err != nil {
		v.Error(err)
		return
	}
	kept := make(chan int64)
	go func() {
		n := int64(0)
		for {
			err := log.Append(v.ctx(), texts(int(n), 1), buffer.Streaming, buffer.Closing{})
			if err != nil {
				if !errors.Is(err, buffer.ErrSealed) {
					v.Error(err)
				}
				kept <- n
				return
			}
			n++
		}
	}()
	for range pauses {
		runtime.Gosched()
	}
	sealed, err := v.s.Seal(v.ctx(), r.ID, buffer.Cancelled, buffer.CancelAsked)
	if err != nil {
		v.Error(err)
	}
	n := <-kept
	now, err := v.s.Get(v.ctx(), r.ID)
	if err != nil || sealed.Head != n || now.Head != n {
		v.Errorf("%d appends succeeded, head was %d when sealed, is %d; error %v", n, sealed.Head, now.Head, err)
	}
}
