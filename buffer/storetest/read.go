package storetest

import (
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

var reads = map[string]func(*env){
	"Read_FromEveryPosition": func(v *env) {
		log, r := v.create(newRun())
		const n = 24
		for i := 0; i < n; i += 4 {
			v.append(log, i, 4, buffer.Streaming)
		}
		v.everyPosition(r.ID, n)
		v.append(log, n, 0, buffer.Completed)
		v.everyPosition(r.ID, n)
		v.restart()
		v.everyPosition(r.ID, n)
	},

	"Read_AtTheHead": func(v *env) {
		log, r := v.create(newRun())
		page, err := v.s.Read(v.ctx(), r.ID, 0, 1<<20)
		v.check(err)
		if len(page.Chunks) != 0 || page.Run.State != buffer.Idle || page.Next(0) != 0 {
			v.Fatalf("page is %+v", page)
		}
		v.append(log, 0, 2, buffer.Completed)
		page, err = v.s.Read(v.ctx(), r.ID, 2, 1<<20)
		v.check(err)
		if len(page.Chunks) != 0 || page.Run.Head != 2 {
			v.Fatalf("page is %+v", page)
		}
		v.wantState(page.Run, buffer.Completed, "")
	},

	"Read_Refusals": func(v *env) {
		_, err := v.s.Read(v.ctx(), ulid.Make(), 0, 1)
		v.want(err, buffer.ErrNotFound)
		_, err = v.s.Get(v.ctx(), ulid.Make())
		v.want(err, buffer.ErrNotFound)
		log, r := v.create(newRun())
		v.append(log, 0, 2, buffer.Streaming)
		page, err := v.s.Read(v.ctx(), r.ID, 3, 1)
		v.want(err, buffer.ErrAhead)
		if page.Run.ID != r.ID || page.Run.Head != 2 || len(page.Chunks) != 0 {
			v.Fatalf("ahead: page is %+v", page)
		}
		if _, err := v.s.Read(v.ctx(), r.ID, -1, 1); err == nil {
			v.Fatal("read before the beginning")
		}
	},

	"Read_PageSizes": func(v *env) {
		r := v.ended(newRun(), 20)
		one := len(text(0)) // the first ten are as long
		for _, size := range []struct{ max, want int }{{0, 0}, {1, 1}, {one, 1}, {2*one - 1, 1}, {2 * one, 2}, {5*one + 1, 5}, {1 << 20, 20}} {
			page, err := v.s.Read(v.ctx(), r.ID, 0, size.max)
			v.check(err)
			if len(page.Chunks) != size.want {
				v.Fatalf("%d bytes at most: %d chunks, want %d", size.max, len(page.Chunks), size.want)
			}
		}
	},

	"Read_AcrossACrash": func(v *env) {
		log, r := v.create(newRun())
		v.append(log, 0, 5, buffer.Streaming)
		head := v.readAll(r.ID, 0, 1<<20)
		v.crash()
		_, err := v.s.Recover(v.ctx())
		v.check(err)
		page, err := v.s.Read(v.ctx(), r.ID, int64(len(head)), 1<<20)
		v.check(err)
		if len(page.Chunks) != 0 || page.Run.Head != 5 {
			v.Fatalf("what was read is not what is there: head %d", page.Run.Head)
		}
		v.wantState(page.Run, buffer.Interrupted, buffer.OwnerLost)
		v.wantTexts(r.ID, 5)
	},
}

func (v *env) everyPosition(id ulid.ULID, n int) {
	v.Helper()
	for from := range n + 1 {
		for _, max := range []int{100, 1 << 20} {
			data := v.readAll(id, int64(from), max)
			if len(data) != n-from {
				v.Fatalf("from %d: %d chunks, want %d", from, len(data), n-from)
			}
			for i, d := range data {
				if d != text(from+i) {
					v.Fatalf("from %d: chunk %d is %q", from, from+i, d)
				}
			}
		}
	}
}
