package jetstream

import (
	"context"
	"errors"
	"iter"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// listPage is how many runs are taken from the index at once. Between two pages nothing is held.
const listPage = 128

// List implements buffer.Store, from the index. The one run that a key names now is asked of the leader.
func (s *Store) List(ctx context.Context, f buffer.Filter) iter.Seq2[buffer.Run, error] {
	return func(yield func(buffer.Run, error) bool) {
		if err := s.closed(); err != nil {
			yield(buffer.Run{}, err)
			return
		}
		if f.Key != "" && f.Caller != "" {
			s.listKey(ctx, f, yield)
			return
		}
		var last *buffer.Run
		if f.Before != (ulid.ULID{}) {
			last = s.before(f.Before)
		}
		for left := f.Limit; ; {
			size := listPage
			if f.Limit > 0 {
				size = min(size, left)
			}
			page := s.index.page(last, size, func(e *entry) bool { return matches(f, e.run) })
			for _, e := range page {
				if err := ctx.Err(); err != nil {
					yield(buffer.Run{}, err)
					return
				}
				if !yield(e.run, nil) {
					return
				}
			}
			left -= len(page)
			if len(page) < size || f.Limit > 0 && left == 0 {
				return
			}
			last = &page[len(page)-1].run
		}
	}
}

func (s *Store) listKey(ctx context.Context, f buffer.Filter, yield func(buffer.Run, error) bool) {
	v, _, err := s.holder(ctx, f.Caller, f.Key)
	if errors.Is(err, buffer.ErrNotFound) {
		return
	}
	if err != nil {
		yield(buffer.Run{}, err)
		return
	}
	r := listed(v.Run)
	r.Partial = nil
	if before := s.before(f.Before); matches(f, r) && (f.Before == (ulid.ULID{}) || older(r, *before) < 0) {
		yield(r, nil)
	}
}

// before is a run's place in the order. Of one that is forgotten, the id tells about when it was created.
func (s *Store) before(id ulid.ULID) *buffer.Run {
	if e, ok := s.index.get(id); ok {
		return &e.run
	}
	return &buffer.Run{ID: id, Created: ulid.Time(id.Time()).UTC()}
}

func matches(f buffer.Filter, r buffer.Run) bool {
	switch {
	case f.Caller != "" && r.Caller != f.Caller,
		f.State != "" && r.State != f.State,
		f.Key != "" && r.Key != f.Key,
		f.Provider != "" && r.Provider != f.Provider,
		f.ProviderID != "" && r.ProviderID != f.ProviderID,
		f.BodyHash != "" && r.BodyHash != f.BodyHash:
		return false
	case f.TagName != "":
		value, ok := r.Tags[f.TagName]
		return ok && (f.TagValue == "" || value == f.TagValue)
	case f.TagValue != "":
		for _, value := range r.Tags {
			if value == f.TagValue {
				return true
			}
		}
		return false
	}
	return true
}
