package sqlite

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// listPage is how many runs are read at once. Between two pages nothing is held, so a consumer may
// take its time; it then sees each run as it was when its page was read.
const listPage = 128

// List implements buffer.Store. Newest is by the time of creation, then by id.
func (s *Store) List(ctx context.Context, f buffer.Filter) iter.Seq2[buffer.Run, error] {
	return func(yield func(buffer.Run, error) bool) {
		where, args, err := s.conditions(ctx, f)
		if err != nil {
			yield(buffer.Run{}, err)
			return
		}
		for left := f.Limit; ; {
			size := listPage
			if f.Limit > 0 {
				size = min(size, left)
			}
			page, err := s.listPage(ctx, listing(f, where), args, size)
			if err != nil {
				yield(buffer.Run{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			left -= len(page)
			if len(page) < size || f.Limit > 0 && left == 0 {
				return
			}
			where, args = before(f, page[len(page)-1])
		}
	}
}

// conditions are the filter's, with Before as a place in the order.
func (s *Store) conditions(ctx context.Context, f buffer.Filter) (string, []any, error) {
	if f.Before == (ulid.ULID{}) {
		where, args := matching(f)
		return where, args, nil
	}
	last := buffer.Run{ID: f.Before}
	err := s.snapshot(ctx, func(r reading) error {
		_, found, err := r.run(ctx, f.Before)
		last.Created = found.Created
		return err
	})
	if errors.Is(err, buffer.ErrNotFound) {
		// It was forgotten meanwhile: its id tells about when it was created.
		last.Created, err = ulid.Time(f.Before.Time()), nil
	}
	where, args := before(f, last)
	return where, args, err
}

// before continues a listing after the run last.
func before(f buffer.Filter, last buffer.Run) (string, []any) {
	where, args := matching(f)
	return where + " AND (r.created, r.id) < (?, ?)", append(args, last.Created.UnixMilli(), last.ID.String())
}

// pointed reports whether the filter names what few runs have: then the index of that column is the
// one to go by, and not the order of all runs or of all the caller's.
func pointed(f buffer.Filter) bool { return f.Key != "" || f.ProviderID != "" || f.BodyHash != "" }

// plus is SQLite's mark for a column whose index is not to be used.
func plus(f buffer.Filter) string {
	if pointed(f) {
		return "+"
	}
	return ""
}

// listing is the whole query.
func listing(f buffer.Filter, where string) string {
	return listColumns + where + " ORDER BY " + plus(f) + "r.created DESC, r.id DESC LIMIT ?"
}

func matching(f buffer.Filter) (string, []any) {
	var where strings.Builder
	where.WriteString("WHERE 1")
	var args []any
	add := func(value, condition string) {
		if value != "" {
			where.WriteString(" AND " + condition)
			args = append(args, value)
		}
	}
	add(f.Caller, plus(f)+"r.caller = ?")
	add(string(f.State), "r.state = ?")
	if f.Key != "" && f.Caller != "" { // the one run that the key names now
		where.WriteString(" AND r.run = (SELECT run FROM keys WHERE caller = ? AND key = ?)")
		args = append(args, f.Caller, f.Key)
	} else {
		add(f.Key, "c.key = ?")
	}
	add(f.Provider, "c.provider = ?")
	add(f.ProviderID, "c.provider_id = ?")
	add(f.BodyHash, "c.body_hash = ?")
	switch {
	case f.TagName != "" && f.TagValue != "":
		where.WriteString(" AND EXISTS (SELECT 1 FROM json_each(c.tags) WHERE key = ? AND value = ?)")
		args = append(args, f.TagName, f.TagValue)
	default:
		add(f.TagName, "EXISTS (SELECT 1 FROM json_each(c.tags) WHERE key = ?)")
		add(f.TagValue, "EXISTS (SELECT 1 FROM json_each(c.tags) WHERE value = ?)")
	}
	return where.String(), args
}

func (s *Store) listPage(ctx context.Context, query string, args []any, size int) (page []buffer.Run, err error) {
	err = s.snapshot(ctx, func(r reading) error {
		found, err := r.rows(ctx, query, append(args, size)...)
		if err != nil {
			return err
		}
		for _, row := range found {
			run, err := row.open(r.keys)
			if run.ID == (ulid.ULID{}) {
				return err
			}
			seen := s.seen(run.ID)
			if err == nil { // else it is listed as far as it can be read: one that is damaged hides no other
				run, _, err = r.grown(ctx, row, run, seen)
			}
			if ctx.Err() != nil {
				return err
			}
			s.told(run, seen)
			page = append(page, run)
		}
		return nil
	})
	return page, err
}

func (r reading) rows(ctx context.Context, query string, args ...any) (found []runRow, err error) {
	rows, err := r.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // Err below says whether all came
	for rows.Next() {
		var row runRow
		if err := rows.Scan(row.dest()...); err != nil {
			return nil, err
		}
		found = append(found, row)
	}
	return found, rows.Err()
}
