package storetest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// list returns the operations of the runs that match.
func (v *env) list(f buffer.Filter) (operations []string) {
	v.Helper()
	for r, err := range v.s.List(v.ctx(), f) {
		v.check(err)
		operations = append(operations, r.Operation)
	}
	return operations
}

func (v *env) wantList(f buffer.Filter, want ...string) {
	v.Helper()
	if diff := cmp.Diff(want, v.list(f)); diff != "" {
		v.Fatalf("%+v: %s", f, diff)
	}
}

var lists = map[string]func(*env){
	"List_Filters": func(v *env) {
		for i, change := range []func(*buffer.Run){
			func(r *buffer.Run) { r.Caller, r.Key = "a", "k" },
			func(r *buffer.Run) { r.Caller, r.Key = "b", "k" },
			func(r *buffer.Run) { r.BodyHash, r.Provider = "h", "p" },
			func(r *buffer.Run) { r.Tags = map[string]string{"team": "x", "env": "y"} },
			func(r *buffer.Run) { r.Tags = map[string]string{"team": "z", `o"dd.$`: "x"} },
		} {
			r := newRun()
			r.Operation = fmt.Sprint(i)
			r.ID = ulid.MustNew(uint64(i+1), nil) // in this order, even if all within one millisecond
			change(&r)
			log, _ := v.create(r)
			if i == 2 {
				v.check(log.Append(v.ctx(), nil, buffer.Completed, buffer.Closing{ProviderID: "resp_2"}))
			}
		}
		v.wantList(buffer.Filter{}, "4", "3", "2", "1", "0")
		v.wantList(buffer.Filter{Limit: 2}, "4", "3")
		v.wantList(buffer.Filter{Caller: "a"}, "0")
		v.wantList(buffer.Filter{Caller: "agent", Limit: 2}, "4", "3")
		v.wantList(buffer.Filter{Key: "k"}, "1", "0")
		v.wantList(buffer.Filter{Key: "k", Caller: "b"}, "1")
		v.wantList(buffer.Filter{State: buffer.Completed}, "2")
		v.wantList(buffer.Filter{State: buffer.Idle}, "4", "3", "1", "0")
		v.wantList(buffer.Filter{Provider: "p"}, "2")
		v.wantList(buffer.Filter{Provider: "p", State: buffer.Idle})
		v.wantList(buffer.Filter{ProviderID: "resp_2"}, "2")
		v.wantList(buffer.Filter{BodyHash: "h"}, "2")
		v.wantList(buffer.Filter{TagName: "team"}, "4", "3")
		v.wantList(buffer.Filter{TagName: "team", TagValue: "x"}, "3")
		v.wantList(buffer.Filter{TagName: `o"dd.$`, TagValue: "x"}, "4")
		v.wantList(buffer.Filter{TagName: "env", TagValue: "x"})
		v.wantList(buffer.Filter{Caller: "nobody"})
	},

	"List_Pages": func(v *env) {
		const runs = 150
		for i := range runs {
			r := newRun()
			r.Operation = fmt.Sprint(i)
			r.ID = ulid.MustNew(uint64(i+1), nil)
			_, _, err := v.s.Create(v.ctx(), r)
			v.check(err)
		}
		all := v.list(buffer.Filter{})
		if len(all) != runs || all[0] != fmt.Sprint(runs-1) || all[runs-1] != "0" {
			v.Fatalf("%d runs, from %s to %s", len(all), all[0], all[len(all)-1])
		}
		var paged []string
		for f := (buffer.Filter{Limit: 40}); ; {
			n := 0
			for r, err := range v.s.List(v.ctx(), f) {
				v.check(err)
				paged = append(paged, r.Operation)
				f.Before = r.ID
				n++
			}
			if n == 0 {
				break
			}
		}
		if diff := cmp.Diff(all, paged); diff != "" {
			v.Fatal("pages:", diff)
		}
		for range v.s.List(v.ctx(), buffer.Filter{}) {
			v.create(newRun()) // a consumer may do what it likes meanwhile, and leave
			break
		}
	},
}
