package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

func (v *env) sweep(now time.Time, open ...ulid.ULID) buffer.Swept {
	v.Helper()
	swept, err := v.s.Sweep(v.ctx(), now, func(id ulid.ULID) bool {
		return slices.Contains(open, id)
	})
	v.check(err)
	return swept
}

func (v *env) wantSwept(got, want buffer.Swept) {
	v.Helper()
	if got != want {
		v.Fatalf("swept %+v, want %+v", got, want)
	}
}

var retentions = map[string]func(*env){
	"Release_KeepsTheTombstone": func(v *env) {
		r := newRun()
		r.Key = "k"
		r = v.ended(r, 3)
		released, err := v.s.Release(v.ctx(), r.ID)
		v.check(err)
		if released.State != buffer.Released || released.Outcome != buffer.Completed || released.Released.IsZero() || released.Head != 3 {
			v.Fatalf("released run is %+v", released)
		}
		v.wantTexts(r.ID, 3) // who is reading already gets to the end
		again, err := v.s.Release(v.ctx(), r.ID)
		v.check(err)
		if !again.Released.Equal(released.Released) {
			v.Fatal("releasing again changed the run")
		}
		v.wantSwept(v.sweep(released.Released), buffer.Swept{Chunks: 3})
		for _, from := range []int64{0, 3, 4} {
			page, err := v.s.Read(v.ctx(), r.ID, from, 1)
			v.want(err, buffer.ErrReleased)
			if page.Run.ID != r.ID || len(page.Chunks) != 0 {
				v.Fatalf("page is %+v", page)
			}
		}
		repeat := newRun()
		repeat.Key = "k"
		_, holder, err := v.s.Create(v.ctx(), repeat)
		v.want(err, buffer.ErrExists)
		if holder.ID != r.ID || holder.State != buffer.Released {
			v.Fatalf("the key is held by %s, which is %s", holder.ID, holder.State)
		}
	},

	"Release_Refusals": func(v *env) {
		_, r := v.create(newRun())
		_, err := v.s.Release(v.ctx(), r.ID)
		v.want(err, buffer.ErrLive)
		_, err = v.s.Release(v.ctx(), ulid.Make())
		v.want(err, buffer.ErrNotFound)
	},

	"Sweep_AfterTheTTL": func(v *env) {
		short, long := newRun(), newRun()
		short.TTL, long.TTL = time.Minute, 48*time.Hour
		s, l := v.ended(short, 2), v.ended(long, 2)
		_, live := v.create(newRun())
		ended := v.get(s.ID).Ended
		v.wantSwept(v.sweep(ended.Add(time.Minute-time.Millisecond)), buffer.Swept{})
		v.wantTexts(s.ID, 2)
		v.wantSwept(v.sweep(ended.Add(time.Minute)), buffer.Swept{Released: 1, Chunks: 2})
		_, err := v.s.Read(v.ctx(), s.ID, 0, 1)
		v.want(err, buffer.ErrReleased)
		v.wantTexts(l.ID, 2)
		v.wantState(v.get(live.ID), buffer.Idle, "")
	},

	"Sweep_KeepsWhatIsBeingRead": func(v *env) {
		r := newRun()
		r.TTL = 0
		r = v.ended(r, 3)
		late := v.get(r.ID).Ended.Add(2 * buffer.KeyTTL)
		v.wantSwept(v.sweep(late, r.ID), buffer.Swept{})
		v.wantTexts(r.ID, 3)
		_, err := v.s.Release(v.ctx(), r.ID)
		v.check(err)
		v.wantSwept(v.sweep(late, r.ID), buffer.Swept{})
		v.wantTexts(r.ID, 3)
		v.wantSwept(v.sweep(late), buffer.Swept{Chunks: 3, Forgotten: 1})
	},

	"Sweep_ForgetsAfterTheKeyTTL": func(v *env) {
		r := newRun()
		r.Key, r.TTL = "k", 0
		r = v.ended(r, 3)
		keyless := newRun()
		keyless.TTL = 0
		keyless = v.ended(keyless, 1)
		ended := v.get(keyless.ID).Ended
		v.wantSwept(v.sweep(ended), buffer.Swept{Released: 2, Chunks: 4})
		v.wantSwept(v.sweep(r.Created.Add(buffer.KeyTTL-time.Millisecond)), buffer.Swept{})
		v.wantSwept(v.sweep(ended.Add(buffer.KeyTTL)), buffer.Swept{Forgotten: 2})
		_, err := v.s.Get(v.ctx(), r.ID)
		v.want(err, buffer.ErrNotFound)
		_, err = v.s.Read(v.ctx(), r.ID, 0, 1)
		v.want(err, buffer.ErrNotFound)
		again := newRun()
		again.ID, again.Key, again.RetryOf = r.ID, "k", ulid.Make()
		v.create(again)
	},

	"Sweep_InSteps": func(v *env) {
		r := newRun()
		r.TTL = 0
		log, r := v.create(r)
		for i := range 3 {
			v.append(log, i*2000, 2000, buffer.Streaming)
		}
		v.check(log.Append(v.ctx(), [][]byte{make([]byte, 9<<20), make([]byte, 9<<20)}, buffer.Completed, buffer.Closing{}))
		other := v.ended(newRun(), 4)
		v.wantSwept(v.sweep(v.get(r.ID).Ended), buffer.Swept{Released: 1, Chunks: 6002})
		v.wantTexts(other.ID, 4)
	},

	"Sweep_ManyRuns": func(v *env) {
		runs := v.often(300)
		var wg sync.WaitGroup
		for range runs {
			wg.Go(func() {
				r := newRun()
				r.TTL = 0
				log, _, err := v.s.Create(v.ctx(), r)
				if err == nil {
					err = log.Attempt(v.ctx(), buffer.Attempt{N: 1})
				}
				if err == nil {
					err = log.Append(v.ctx(), texts(0, 1), buffer.Completed, buffer.Closing{})
				}
				if err != nil {
					v.Error(err)
				}
			})
		}
		wg.Wait()
		end := time.Now()
		v.wantSwept(v.sweep(end), buffer.Swept{Released: runs, Chunks: int64(runs)})
		v.wantSwept(v.sweep(end.Add(buffer.KeyTTL)), buffer.Swept{Forgotten: runs})
	},
}
