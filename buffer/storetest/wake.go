package storetest

import (
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

var wakes = map[string]func(*env){
	"Watch_RingsForEveryCommit": func(v *env) {
		log, r := v.create(newRun())
		commits := []func(){
			func() { v.append(log, 0, 1, buffer.Streaming) },
			func() { v.append(log, 1, 0, buffer.Streaming) },
			func() { _, err := v.s.Seal(v.ctx(), r.ID, buffer.Cancelled, ""); v.check(err) },
			func() { _, err := v.s.Release(v.ctx(), r.ID); v.check(err) },
		}
		for _, commit := range commits {
			changed, stop := v.s.Watch(r.ID)
			second, stopSecond := v.s.Watch(r.ID)
			stopSecond()
			commit()
			v.ring(changed)
			v.ring(second)
			stop()
			stop()
		}
	},

	"Wake_RingsWithoutACommit": func(v *env) {
		log, r := v.create(newRun())
		for _, id := range []ulid.ULID{r.ID, v.ended(newRun(), 1).ID, ulid.Make()} {
			changed, stop := v.s.Watch(id)
			v.s.Wake(id)
			v.ring(changed)
			stop()
			next, stop := v.s.Watch(id)
			select {
			case <-next:
				v.Fatal("the next bell has rung as well")
			default:
			}
			stop()
		}
		var wg sync.WaitGroup
		wg.Go(func() { v.tail(r.ID, 100) })
		wg.Go(func() {
			for range 1000 {
				v.s.Wake(r.ID)
			}
		})
		for i := range 100 {
			v.append(log, i, 1, buffer.Streaming)
		}
		v.append(log, 100, 0, buffer.Completed)
		wg.Wait()
	},

	"Watch_BeforeTheRunExists": func(v *env) {
		r := newRun()
		changed, stop := v.s.Watch(r.ID)
		defer stop()
		v.create(r)
		v.ring(changed)
	},

	"Watch_LosesNoWakeUp": func(v *env) {
		const commits = 70
		runs := v.often(75)
		var wg sync.WaitGroup
		for range runs {
			log, r := v.create(newRun())
			wg.Go(func() {
				for i := range commits {
					state := buffer.Streaming
					if i == commits-1 {
						state = buffer.Completed
					}
					if err := log.Append(v.ctx(), texts(i, 1), state, buffer.Closing{}); err != nil {
						v.Error(err)
						return
					}
				}
			})
			wg.Go(func() { v.tail(r.ID, commits) })
		}
		wg.Wait()
	},
}

// tail reads to the end of the run as every reader does: watch, read, and only then wait.
func (v *env) tail(id ulid.ULID, want int) {
	var next int64
	for {
		changed, stop := v.s.Watch(id)
		page, err := v.s.Read(v.ctx(), id, next, 1<<20)
		if err != nil {
			stop()
			v.Error(err)
			return
		}
		for _, c := range page.Chunks {
			if string(c.Data) != text(int(next)) {
				v.Errorf("position %d holds %q", next, c.Data)
			}
			next++
		}
		if page.Run.State.Ended() && next == page.Run.Head {
			stop()
			if next != int64(want) {
				v.Errorf("the end came at %d, want %d", next, want)
			}
			return
		}
		if len(page.Chunks) == 0 && !rings(changed) {
			v.Errorf("no wake-up at position %d", next)
			stop()
			return
		}
		stop()
	}
}

func rings(changed <-chan struct{}) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
		return false
	}
}

func (v *env) ring(changed <-chan struct{}) {
	v.Helper()
	if !rings(changed) {
		v.Fatal("the bell does not ring")
	}
}
